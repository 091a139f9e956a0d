//! The themes that come with the program, by name, and those of the user. The default names sixteen colours and leaves the
//! terminal's own foreground and background alone, so that it can be read on any of them.

use ratatui_core::style::Color;
use serde_json::Value;

use super::Palette;

/// The theme without a setting.
pub(crate) const DEFAULT: &str = "ANSI";

/// The names of the themes.
pub(crate) const NAMES: [&str; 19] = [
    "ANSI",
    "ANSILight",
    "AyuDark",
    "AyuLight",
    "AtomOneDark",
    "Dracula",
    "DefaultDark",
    "DefaultLight",
    "GitHubDark",
    "GitHubLight",
    "GoogleCode",
    "Holiday",
    "ShadesOfPurple",
    "SolarizedDark",
    "SolarizedLight",
    "XCode",
    "TokyoNight",
    "HighContrastDark",
    "HighContrastLight",
];

/// Text, dim, accent, good, warning, bad, heading, code, link, keyword, literal, comment, name, number.
type Row = [u32; 14];

/// The colours of a theme of ours.
pub(super) fn palette(name: &str) -> Option<Palette> {
    let row: Row = match name {
        "ANSI" => return Some(ansi()),
        "ANSILight" => return Some(Palette { warning: Color::Magenta, number: Color::Blue, ..ansi() }),
        "AyuDark" => [
            0xbfbdb6, 0x6c7380, 0x39bae6, 0xaad94c, 0xffb454, 0xf07178, 0xe6b450, 0x95e6cb, 0x59c2ff,
            0xff8f40, 0xaad94c, 0x6c7380, 0xffb454, 0xd2a6ff,
        ],
        "AyuLight" => [
            0x5c6166, 0x8a9199, 0x399ee6, 0x6c9e00, 0xc77a00, 0xd0414a, 0xa37acc, 0x349b7f, 0x2a7fc1,
            0xd8620b, 0x6c9e00, 0x8a9199, 0xb5760a, 0x8a63b8,
        ],
        "AtomOneDark" => [
            0xabb2bf, 0x7f848e, 0x61afef, 0x98c379, 0xe5c07b, 0xe06c75, 0xc678dd, 0x56b6c2, 0x61afef,
            0xc678dd, 0x98c379, 0x7f848e, 0xe5c07b, 0xd19a66,
        ],
        "Dracula" => [
            0xf8f8f2, 0x8a93bd, 0xbd93f9, 0x50fa7b, 0xf1fa8c, 0xff5555, 0xff79c6, 0x8be9fd, 0x8be9fd,
            0xff79c6, 0xf1fa8c, 0x8a93bd, 0x50fa7b, 0xbd93f9,
        ],
        "DefaultDark" => [
            0xd4d4d4, 0x8c8c8c, 0x4fc1ff, 0x89d185, 0xd7ba7d, 0xf48771, 0x569cd6, 0xce9178, 0x3794ff,
            0xc586c0, 0xce9178, 0x6a9955, 0xdcdcaa, 0xb5cea8,
        ],
        "DefaultLight" => [
            0x1f1f1f, 0x6b6b6b, 0x0451a5, 0x157a3c, 0x8a5a00, 0xb52a1d, 0x0000c0, 0xa31515, 0x0451a5,
            0xaf00db, 0xa31515, 0x3f7f3f, 0x795e26, 0x098658,
        ],
        "GitHubDark" => [
            0xe6edf3, 0x8b949e, 0x79c0ff, 0x56d364, 0xe3b341, 0xff7b72, 0xd2a8ff, 0xa5d6ff, 0x79c0ff,
            0xff7b72, 0xa5d6ff, 0x8b949e, 0xd2a8ff, 0x79c0ff,
        ],
        "GitHubLight" => [
            0x1f2328, 0x656d76, 0x0550ae, 0x116329, 0x7d4e00, 0xcf222e, 0x8250df, 0x0a3069, 0x0969da,
            0xcf222e, 0x0a3069, 0x656d76, 0x8250df, 0x0550ae,
        ],
        "GoogleCode" => [
            0x202124, 0x70757a, 0x000088, 0x006b00, 0x7a5000, 0x880000, 0x660066, 0x008800, 0x0000cc,
            0x000088, 0x008800, 0x880000, 0x660066, 0x006666,
        ],
        "Holiday" => [
            0xf5f1e6, 0xa9b8a9, 0xffd75f, 0x87d787, 0xffd75f, 0xff6f61, 0xff8787, 0xafd7af, 0x87d7ff,
            0xff6f61, 0xafd787, 0x9aab9a, 0xffd75f, 0xd7afff,
        ],
        "ShadesOfPurple" => [
            0xe3dfff, 0xa599e9, 0xfad000, 0xa5ff90, 0xffee80, 0xff628c, 0xff9d00, 0x9effff, 0x80ffbb,
            0xff9d00, 0xa5ff90, 0xb362ff, 0xfad000, 0xff628c,
        ],
        "SolarizedDark" => [
            0x93a1a1, 0x657b83, 0x268bd2, 0x859900, 0xb58900, 0xdc322f, 0xcb4b16, 0x2aa198, 0x268bd2,
            0x859900, 0x2aa198, 0x657b83, 0x268bd2, 0xd33682,
        ],
        "SolarizedLight" => [
            0x586e75, 0x839496, 0x268bd2, 0x718200, 0x9a7400, 0xc62a27, 0xb4430f, 0x20857d, 0x268bd2,
            0x718200, 0x20857d, 0x839496, 0x268bd2, 0xbb2a70,
        ],
        "XCode" => [
            0x262626, 0x707f8c, 0x0f68a0, 0x23762c, 0x78492a, 0xc41a16, 0x9b2393, 0x326d74, 0x0e0eff,
            0x9b2393, 0xc41a16, 0x5d6c79, 0x0f68a0, 0x1c00cf,
        ],
        "TokyoNight" => [
            0xc0caf5, 0x7982a9, 0x7aa2f7, 0x9ece6a, 0xe0af68, 0xf7768e, 0xbb9af7, 0x7dcfff, 0x73daca,
            0xbb9af7, 0x9ece6a, 0x7982a9, 0x7aa2f7, 0xff9e64,
        ],
        "HighContrastDark" => [
            0xffffff, 0xd0d0d0, 0x6fc3ff, 0x7dff7d, 0xffff66, 0xff8080, 0xffffff, 0x9cf0ff, 0x6fc3ff,
            0xffb0ff, 0xffd08a, 0xd0d0d0, 0xffff66, 0xa8ffb0,
        ],
        "HighContrastLight" => [
            0x000000, 0x3a3a3a, 0x00338f, 0x004d00, 0x5a3b00, 0x8b0000, 0x000000, 0x00394f, 0x00338f,
            0x5b0078, 0x6b2500, 0x3a3a3a, 0x3f3000, 0x00402a,
        ],
        _ => return None,
    };
    Some(of_row(row))
}

fn of_row(row: Row) -> Palette {
    let [text, dim, accent, good, warning, bad, heading, code, link, keyword, literal, comment, name, number] =
        row.map(rgb);
    Palette {
        text,
        dim,
        accent,
        good,
        warning,
        bad,
        heading,
        code,
        link,
        keyword,
        literal,
        comment,
        name,
        number,
    }
}

fn rgb(code: u32) -> Color {
    let [_, red, green, blue] = code.to_be_bytes();
    Color::Rgb(red, green, blue)
}

/// The named colours.
pub(super) fn ansi() -> Palette {
    Palette {
        text: Color::Reset,
        dim: Color::Reset,
        accent: Color::Cyan,
        good: Color::Green,
        warning: Color::Yellow,
        bad: Color::Red,
        heading: Color::Reset,
        code: Color::Cyan,
        link: Color::Blue,
        keyword: Color::Magenta,
        literal: Color::Green,
        comment: Color::Reset,
        name: Color::Blue,
        number: Color::Yellow,
    }
}

/// A theme of the user: colours by name, as `#rrggbb` or as a word. What it leaves out is the default's.
pub(super) fn custom(value: &Value) -> Option<Palette> {
    let colors = value.as_object()?;
    let mut palette = ansi();
    let fields: [(&str, &mut Color); 14] = [
        ("text", &mut palette.text),
        ("dim", &mut palette.dim),
        ("accent", &mut palette.accent),
        ("good", &mut palette.good),
        ("warning", &mut palette.warning),
        ("bad", &mut palette.bad),
        ("heading", &mut palette.heading),
        ("code", &mut palette.code),
        ("link", &mut palette.link),
        ("keyword", &mut palette.keyword),
        ("literal", &mut palette.literal),
        ("comment", &mut palette.comment),
        ("name", &mut palette.name),
        ("number", &mut palette.number),
    ];
    for (name, place) in fields {
        if let Some(color) = colors.get(name).and_then(Value::as_str).and_then(|text| text.parse().ok()) {
            *place = color;
        }
    }
    Some(palette)
}
