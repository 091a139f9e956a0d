//! Output of commands: colours and styles survive, everything else that would steer a terminal is shown and not obeyed. A
//! carriage return begins the line anew, as a progress bar means it.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::safe::{expand_tabs, prose};

/// Output as lines. `colors` is false where none may be shown.
pub(crate) fn lines(text: &str, colors: bool) -> Vec<Line<'static>> {
    let mut style = Style::default();
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(|line| one(line, &mut style, colors)).collect()
}

/// One line; the style is carried to the next.
fn one(line: &str, style: &mut Style, colors: bool) -> Line<'static> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(['\u{1b}', '\r']) {
        push(&mut spans, &rest[..start], *style);
        if rest[start..].starts_with('\r') {
            spans.clear();
            rest = &rest[start + 1..];
            continue;
        }
        match sequence(&rest[start..]) {
            Some((codes, length)) => {
                if colors {
                    apply(style, codes);
                }
                rest = &rest[start + length..];
            }
            None => {
                push(&mut spans, &rest[start..=start], *style);
                rest = &rest[start + 1..];
            }
        }
    }
    push(&mut spans, rest, *style);
    Line::from(spans)
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    if !text.is_empty() {
        spans.push(Span::styled(expand_tabs(&prose(text)), style));
    }
}

/// The codes of a sequence that sets colours or styles, and its length. Any other sequence is not one.
fn sequence(text: &str) -> Option<(&str, usize)> {
    let body = text.strip_prefix("\u{1b}[")?;
    let end = body.find(|sign: char| !matches!(sign, '0'..='9' | ';' | ':'))?;
    body[end..].starts_with('m').then_some((&body[..end], end + 3))
}

fn apply(style: &mut Style, codes: &str) {
    let mut numbers = codes.split([';', ':']).map(|code| code.parse::<u16>().unwrap_or(0));
    while let Some(code) = numbers.next() {
        match code {
            0 => *style = Style::default(),
            1 => *style = style.add_modifier(Modifier::BOLD),
            2 => *style = style.add_modifier(Modifier::DIM),
            3 => *style = style.add_modifier(Modifier::ITALIC),
            4 => *style = style.add_modifier(Modifier::UNDERLINED),
            7 => *style = style.add_modifier(Modifier::REVERSED),
            9 => *style = style.add_modifier(Modifier::CROSSED_OUT),
            22 => *style = style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            23 => *style = style.remove_modifier(Modifier::ITALIC),
            24 => *style = style.remove_modifier(Modifier::UNDERLINED),
            27 => *style = style.remove_modifier(Modifier::REVERSED),
            29 => *style = style.remove_modifier(Modifier::CROSSED_OUT),
            30..=37 => *style = style.fg(named(code - 30)),
            38 => *style = extended(&mut numbers).map_or(*style, |color| style.fg(color)),
            39 => style.fg = None,
            40..=47 => *style = style.bg(named(code - 40)),
            48 => *style = extended(&mut numbers).map_or(*style, |color| style.bg(color)),
            49 => style.bg = None,
            90..=97 => *style = style.fg(named(code - 90 + 8)),
            100..=107 => *style = style.bg(named(code - 100 + 8)),
            _ => {}
        }
    }
}

fn named(code: u16) -> Color {
    match code {
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        3 => Color::Yellow,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        7 => Color::Gray,
        8 => Color::DarkGray,
        9 => Color::LightRed,
        10 => Color::LightGreen,
        11 => Color::LightYellow,
        12 => Color::LightBlue,
        13 => Color::LightMagenta,
        14 => Color::LightCyan,
        _ => Color::White,
    }
}

fn extended(numbers: &mut impl Iterator<Item = u16>) -> Option<Color> {
    let byte = |number: u16| u8::try_from(number).ok();
    match numbers.next()? {
        5 => Some(Color::Indexed(byte(numbers.next()?)?)),
        2 => Some(Color::Rgb(byte(numbers.next()?)?, byte(numbers.next()?)?, byte(numbers.next()?)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(output: &str) -> Vec<String> {
        let joined = |line: &Line<'_>| line.spans.iter().map(|span| &*span.content).collect::<String>();
        lines(output, true).iter().map(joined).collect()
    }

    #[test]
    fn colours_survive_and_reach_the_next_line() {
        let shown = lines("\u{1b}[1;31mbad\nstill\u{1b}[0m done", true);
        assert_eq!(shown[0].spans[0].style, Style::default().fg(Color::Red).add_modifier(Modifier::BOLD));
        assert_eq!(shown[1].spans[0].style.fg, Some(Color::Red));
        assert_eq!(shown[1].spans[1].style, Style::default());
        assert_eq!(
            lines("\u{1b}[38;5;208mx\u{1b}[48;2;1;2;3my", true)[0].spans[1].style.bg,
            Some(Color::Rgb(1, 2, 3))
        );
    }

    #[test]
    fn without_colours_the_codes_vanish() {
        let shown = lines("\u{1b}[31mbad", false);
        assert_eq!((&*shown[0].spans[0].content, shown[0].spans[0].style), ("bad", Style::default()));
    }

    #[test]
    fn what_steers_a_terminal_is_shown() {
        for hostile in [
            "\u{1b}[2J",
            "\u{1b}]0;title\u{7}",
            "\u{1b}]52;c;aGk=\u{7}",
            "\u{1b}[?1049h",
            "\u{1b}[?1000h",
            "\u{1b}[6n",
            "\u{1b}c",
            "\u{9b}2J",
            "\u{1b}P+q\u{1b}\\",
            "\u{8}",
            "\u{1b}[31",
        ] {
            let shown = texts(hostile).concat();
            assert!(!shown.chars().any(char::is_control), "{hostile:?}: {shown:?}");
            assert!(shown.contains("\\u{"), "{hostile:?}: {shown:?}");
        }
    }

    #[test]
    fn a_carriage_return_begins_the_line_anew() {
        assert_eq!(texts("10 %\r50 %\r100 %\r\nnext\r\n"), ["100 %", "next"]);
    }
}
