//! Prints, as Markdown, the expected gas and the effect of every conformance program, and which block calls and estimates see
//! (`script/bench conformance`). Fails if anything differs.

#[path = "../tests/support/mod.rs"]
mod support;

use support::cases::{cases, page, run, Row};
use support::heads;

fn main() {
    let rows: Vec<Row> = cases().iter().map(run).collect();
    let seen = heads::rows();
    print!("{}{}", page(&rows), heads::section(&seen));
    let wrong = rows.iter().filter(|row| !row.is_right()).count() + seen.iter().filter(|row| !row.is_right()).count();
    if wrong > 0 {
        eprintln!("{wrong} rows are not as they must be");
        std::process::exit(1);
    }
}
