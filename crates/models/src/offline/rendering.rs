//! Reads what tools return, line by line, and writes it down for people: numbered
//! lines, listings and the remarks behind them; fences, bullets and cuts.
//! Nothing here decides anything.

/// Text of results longer than this is cut in answers.
const MOST_TEXT: usize = 20_000;

/// The paths in a listing; remarks of the tool are left out.
pub(super) fn paths(output: &str) -> Vec<String> {
    output
        .lines()
        .map(str::trim)
        .filter(|line| {
            !line.is_empty()
                && !line.starts_with('(')
                && !is_remark(line)
                && !line.starts_with("No files")
                && !line.contains(": ")
        })
        .filter(|line| line.contains('/') || line.contains('.') || !line.contains(' '))
        .map(str::to_owned)
        .collect()
}

/// Number and text of a line as the Read tool shows it.
pub(super) fn line_number(line: &str) -> Option<(u64, &str)> {
    let trimmed = line.trim_start();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, rest) = trimmed.split_at(digits);
    let text = rest.strip_prefix('\t').or_else(|| rest.strip_prefix('→'))?;
    Some((number.parse().ok()?, text))
}

/// What Read shows, without its line numbers.
pub(super) fn without_numbers(output: &str) -> String {
    let lines: Vec<&str> =
        output.lines().map(|line| line_number(line).map_or(line, |(_, text)| text)).collect();
    lines.join("\n")
}

/// A text between fences.
pub(super) fn fenced(text: &str) -> String {
    // A fence must be longer than any inside the text.
    let mut fence = String::from("```");
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}\n{fence}", cut(text))
}

/// A text of bearable length.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((at, _)) => format!("{}\n… (cut here)", &text[..at]),
        None => text.to_owned(),
    }
}

/// Items as a list.
pub(super) fn bullets(items: &[String]) -> String {
    items.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
}

/// The remark that a tool puts behind a listing that is not complete.
pub(super) fn remark(output: &str) -> Option<&str> {
    output.lines().map(str::trim).rfind(|line| is_remark(line))
}

fn is_remark(line: &str) -> bool {
    line.starts_with('[') && line.ends_with(']') && line.contains(' ')
}
