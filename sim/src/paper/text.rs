//! Numbers, lists and tables as the pages show them.

use std::fmt::Write;

use crate::numbers;
use crate::population::Name;
use crate::statistics::Estimate;

/// To the nearest thousandth; minus zero is zero.
fn thousandths(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0 + 0.0
}

pub fn percent(estimate: Estimate) -> String {
    let sign = if thousandths(estimate.mean) < 0.0 { "" } else { "+" };
    let (mean, margin) = (thousandths(estimate.mean) * 100.0, estimate.margin * 100.0);
    format!("{sign}{} % ± {}", numbers::fixed(mean, 1), numbers::fixed(margin, 1))
}

/// Of three decimals, with its sign.
pub fn signed(estimate: Estimate) -> String {
    numbers::signed(Estimate { mean: thousandths(estimate.mean), ..estimate }, 3)
}

pub fn share(estimate: Estimate) -> String {
    numbers::estimate(estimate, 3)
}

pub fn fine(estimate: Estimate) -> String {
    numbers::estimate(estimate, 4)
}

pub fn plain(estimate: Estimate) -> String {
    numbers::estimate(estimate, 2)
}

/// "a, b and c".
pub fn list(items: &[String]) -> String {
    match items {
        [] => "none".into(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

pub fn named(names: impl Iterator<Item = Name>) -> String {
    list(&names.map(|name| name.text().to_owned()).collect::<Vec<_>>())
}

/// Smallest and largest mean, with their names.
pub fn span(values: &[(Name, Estimate)], show: fn(Estimate) -> String) -> String {
    let by_mean = |a: &&(Name, Estimate), b: &&(Name, Estimate)| a.1.mean.total_cmp(&b.1.mean);
    let (low, high) = (values.iter().min_by(by_mean), values.iter().max_by(by_mean));
    let (Some(low), Some(high)) = (low, high) else {
        return "nothing".into();
    };
    let of = |(name, estimate): &(Name, Estimate)| format!("{} ({})", show(*estimate), name.text());
    format!("{} to {}", of(low), of(high))
}

/// A Markdown table.
pub fn table<H: AsRef<str>>(page: &mut String, headings: &[H], rows: &[Vec<String>]) {
    let headings: Vec<&str> = headings.iter().map(AsRef::as_ref).collect();
    let _ = writeln!(page, "| {} |", headings.join(" | "));
    let _ = writeln!(page, "|{}", " --- |".repeat(headings.len()));
    for row in rows {
        let _ = writeln!(page, "| {} |", row.join(" | "));
    }
    page.push('\n');
}

/// A table with a column for each population.
pub fn by_name(page: &mut String, first: &str, rows: &[(String, Vec<String>)]) {
    let mut headings = vec![first];
    headings.extend(Name::ALL.map(Name::text));
    let rows: Vec<Vec<String>> = rows.iter().map(|(name, cells)| std::iter::once(name).chain(cells).cloned().collect()).collect();
    table(page, &headings, &rows);
}

pub fn figure(page: &mut String, name: &str, alt: &str) {
    let _ = writeln!(page, "![{alt}](figures/paper-{name}.svg)\n");
}
