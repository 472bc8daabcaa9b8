//! Helpers for the pages that are written from the sources.

/// Lines of Solidity with the text of the `///` comment right above each, in order. Comments are joined to one line.
pub(crate) fn documented(solidity: &str) -> Vec<(String, &str)> {
    let mut comment = Vec::new();
    let mut lines = Vec::new();
    for line in solidity.lines().map(str::trim) {
        match line.strip_prefix("///") {
            Some(text) => comment.push(text.trim()),
            None => lines.push((std::mem::take(&mut comment).join(" "), line)),
        }
    }
    lines
}

/// A row of a Markdown table.
pub(crate) fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}
