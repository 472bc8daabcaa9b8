//! Hashes of PNG files, as a node answers with them: a line each.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let [hash, ..] = muster_hashes::of_result(&std::fs::read(path)?, 1)?;
        println!("{hash:016x}");
    }
    Ok(())
}
