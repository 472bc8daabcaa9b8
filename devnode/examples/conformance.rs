//! Prints, as Markdown, what every conformance program must cost and what it does (`script/bench conformance`). Fails if
//! anything differs.

#[path = "../tests/support/mod.rs"]
mod support;

use support::cases::{cases, page, run, Row};

fn main() {
    let rows: Vec<Row> = cases().iter().map(run).collect();
    print!("{}", page(&rows));
    let wrong = rows.iter().filter(|row| !row.is_right()).count();
    if wrong > 0 {
        eprintln!("{wrong} programs don't cost what they must");
        std::process::exit(1);
    }
}
