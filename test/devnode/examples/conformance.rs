//! Prints, as Markdown, what every conformance program must cost and what it does:
//! `cargo run -p muster-devnode --example conformance > docs/conformance.md`. Fails if anything differs.

#[path = "../tests/support/mod.rs"]
mod support;

use support::cases::{cases, run, End};

const HEAD: &str = "\
# Conformance of the development node

Made by `cargo run -p muster-devnode --example conformance`; `test/devnode/tests/conformance.rs` checks the same.

Each row is a program of a few instructions (`test/devnode/tests/support/cases.rs`). What it must cost is a sum made by
hand from the price lists of public sources (Nitro's release branch of ArbOS 60, read for facts), not by the code that
meters it. Ink is what the program itself uses, 10,000 ink are one gas. Gas is what the receipt shows before refunds:
21,000, calldata, the program's start and its ink, rounded up. The start follows from the file: 8,832 + 8.252 per function +
1.059 per parameter and result + 0.1286 per byte uncached; 352 + 0.1342 per function + 0.00089 per parameter and result +
0.00122 per byte + 1.628 per global (4 more than in the file) + 0.75244 per byte of data and element segments + 5 per page
always, each term rounded down; 1,000 per page beyond two. L1 data costs nothing on this node.

Rows that say \"Nitro's own figure\" compare with what Nitro's own tests record for a single host function
(`system_tests/program_ink_test.go` of the release branch, run there on Nitro itself).

A program that fails keeps what gas is left; one that runs out of ink or stack loses all 20,000,000 it was given.

| program | ends | ink expected | ink got | gas expected | gas got | cached: expected | cached: got | how |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
";

fn main() {
    print!("{HEAD}");
    let mut wrong = 0;
    for case in cases() {
        let row = run(&case);
        let ends = match row.ended {
            End::Success => "success",
            End::Failure => "failure",
            End::Burnt => "all gas",
        };
        println!(
            "| {} | {ends} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            row.ink.0,
            row.ink.1,
            row.gas.0,
            row.gas.1,
            row.gas_cached.0,
            row.gas_cached.1,
            if row.terms.is_empty() { "all there is".into() } else { row.terms }
        );
        if row.ink.0 != row.ink.1
            || row.gas.0 != row.gas.1
            || row.gas_cached.0 != row.gas_cached.1
            || row.end != row.ended
        {
            wrong += 1;
        }
    }
    if wrong > 0 {
        eprintln!("{wrong} programs don't cost what they must");
        std::process::exit(1);
    }
}
