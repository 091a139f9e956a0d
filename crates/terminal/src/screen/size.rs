//! The size of the terminal. One that says nothing, or nonsense, is taken for an ordinary one.

/// The size of a terminal that does not say.
const ORDINARY: (usize, usize) = (80, 24);
/// No terminal is larger.
const LARGEST: (usize, usize) = (1_000, 500);

/// Columns and rows.
pub(crate) fn terminal_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or(ORDINARY, |size| sensible(usize::from(size.ws_col), usize::from(size.ws_row)))
}

fn sensible(columns: usize, rows: usize) -> (usize, usize) {
    let columns = if columns == 0 { ORDINARY.0 } else { columns.min(LARGEST.0) };
    let rows = if rows == 0 { ORDINARY.1 } else { rows.min(LARGEST.1) };
    (columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_an_ordinary_size() {
        assert_eq!(sensible(0, 0), (80, 24));
        assert_eq!(sensible(1, 1), (1, 1));
        assert_eq!(sensible(65_535, 65_535), (1_000, 500));
    }
}
