//! How things look: what a text means, and the style that a theme gives to it. Nothing is said by colour alone: signs and words
//! carry it, and without colours bold and underline stay.

mod look;
mod named;

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;
use serde_json::{Map, Value};

pub(crate) use look::{Extent, Look, Signs};
pub(crate) use named::{DEFAULT, NAMES};

/// What a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Ordinary text.
    Text,
    /// What matters less.
    Dim,
    /// What stands out, such as a name.
    Accent,
    /// Strong text.
    Strong,
    /// It worked.
    Good,
    /// Take care.
    Warning,
    /// It failed.
    Bad,
    /// A heading.
    Heading,
    /// Code inside prose.
    Code,
    /// A link's address.
    Link,
    /// A quotation.
    Quote,
    /// What the person wrote.
    Prompt,
    /// A line that was added.
    Added,
    /// The part of it that differs.
    AddedWord,
    /// A line that was removed.
    Removed,
    /// The part of it that differs.
    RemovedWord,
    /// The chosen row of a list.
    Selected,
    /// A keyword of a program.
    Keyword,
    /// A text in a program.
    Literal,
    /// A comment in a program.
    Comment,
    /// The name of a function or type in a program.
    Name,
    /// A number or constant in a program.
    Number,
}

/// The colours of a theme, by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Palette {
    pub(crate) text: Color,
    pub(crate) dim: Color,
    pub(crate) accent: Color,
    pub(crate) good: Color,
    pub(crate) warning: Color,
    pub(crate) bad: Color,
    pub(crate) heading: Color,
    pub(crate) code: Color,
    pub(crate) link: Color,
    pub(crate) keyword: Color,
    pub(crate) literal: Color,
    pub(crate) comment: Color,
    pub(crate) name: Color,
    pub(crate) number: Color,
}

/// A theme in force.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    palette: Palette,
    colors: bool,
}

impl Theme {
    /// The theme of a name, as far as the terminal shows it. `custom` are the user's own; a name that is not known, or needs
    /// more colours than there are, is the default.
    pub(crate) fn new(name: Option<&str>, custom: &Map<String, Value>, support: ColorSupport) -> Self {
        let wanted = name.unwrap_or(DEFAULT);
        let palette = custom.get(wanted).and_then(named::custom).or_else(|| named::palette(wanted));
        let fits = |palette: &Palette| support == ColorSupport::True || !palette.is_true_color();
        let palette = palette.filter(fits).unwrap_or_else(named::ansi);
        Self { palette, colors: support != ColorSupport::None }
    }

    /// True when colours are shown.
    pub(crate) fn has_colors(&self) -> bool {
        self.colors
    }

    /// The style of a text that means this.
    pub(crate) fn style(&self, ink: Ink) -> Style {
        let palette = &self.palette;
        let plain = Style::default();
        let style = match ink {
            Ink::Text => plain.fg(palette.text),
            Ink::Dim => plain.fg(palette.dim).add_modifier(Modifier::DIM),
            Ink::Accent => plain.fg(palette.accent),
            Ink::Strong => plain.fg(palette.text).add_modifier(Modifier::BOLD),
            Ink::Good => plain.fg(palette.good),
            Ink::Warning => plain.fg(palette.warning),
            Ink::Bad => plain.fg(palette.bad),
            Ink::Heading => plain.fg(palette.heading).add_modifier(Modifier::BOLD),
            Ink::Code => plain.fg(palette.code),
            Ink::Link => plain.fg(palette.link).add_modifier(Modifier::UNDERLINED),
            Ink::Quote => plain.fg(palette.dim).add_modifier(Modifier::ITALIC),
            Ink::Prompt => plain.fg(palette.accent).add_modifier(Modifier::BOLD),
            Ink::Added => plain.fg(palette.good),
            Ink::AddedWord => plain.fg(palette.good).add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Ink::Removed => plain.fg(palette.bad),
            Ink::RemovedWord => plain.fg(palette.bad).add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            Ink::Selected => plain.fg(palette.accent).add_modifier(Modifier::BOLD),
            Ink::Keyword => plain.fg(palette.keyword),
            Ink::Literal => plain.fg(palette.literal),
            Ink::Comment => plain.fg(palette.comment).add_modifier(Modifier::DIM),
            Ink::Name => plain.fg(palette.name),
            Ink::Number => plain.fg(palette.number),
        };
        // The terminal's own foreground needs no code.
        let style = if style.fg == Some(Color::Reset) { Style { fg: None, ..style } } else { style };
        if self.colors { style } else { Style { fg: None, bg: None, ..style } }
    }

    /// A text that means this.
    pub(crate) fn span(&self, ink: Ink, text: impl Into<String>) -> Span<'static> {
        Span::styled(text.into(), self.style(ink))
    }
}

impl Palette {
    fn is_true_color(&self) -> bool {
        matches!(self.accent, Color::Rgb(..)) || matches!(self.text, Color::Rgb(..))
    }
}

/// How many colours a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColorSupport {
    /// None are wanted.
    None,
    /// The sixteen named ones.
    Named,
    /// All.
    True,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_the_weight_stays() {
        let theme = Theme::new(Some("Dracula"), &Map::new(), ColorSupport::None);
        let style = theme.style(Ink::Heading);
        assert_eq!((style.fg, style.add_modifier), (None, Modifier::BOLD));
        assert!(!theme.has_colors());
    }

    #[test]
    fn a_theme_needs_the_colours_it_has() {
        let named = Theme::new(Some("Dracula"), &Map::new(), ColorSupport::Named);
        assert_eq!(named.style(Ink::Good).fg, Some(Color::Green));
        let full = Theme::new(Some("Dracula"), &Map::new(), ColorSupport::True);
        assert!(matches!(full.style(Ink::Good).fg, Some(Color::Rgb(..))));
    }

    #[test]
    fn a_theme_of_the_user_counts_before_ours() {
        let custom = serde_json::json!({ "mine": { "accent": "#102030", "good": "green" } });
        let theme = Theme::new(Some("mine"), custom.as_object().unwrap(), ColorSupport::True);
        assert_eq!(theme.style(Ink::Accent).fg, Some(Color::Rgb(0x10, 0x20, 0x30)));
        assert_eq!(theme.style(Ink::Good).fg, Some(Color::Green));
    }

    #[test]
    fn every_documented_name_has_colours() {
        for name in NAMES {
            assert!(named::palette(name).is_some(), "{name}");
        }
    }
}
