//! Section 5 of the paper, every experiment, and what we found beyond it.

mod experiments;
mod figures;
mod page;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use experiments::Scale;

/// What to do, and where to put it.
#[derive(Clone, Debug)]
pub struct Options {
    pub scale: Scale,
    /// Another seed gives other workers and other luck.
    pub seed: u64,
    /// The page goes here, pictures and tables into `figures` below.
    pub out: PathBuf,
}

/// Runs everything and writes the page, the pictures and the tables.
pub fn run(options: &Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let figures_dir = options.out.join("figures");
    // Before the work, so that a wrong path costs no patience.
    fs::create_dir_all(&figures_dir)
        .map_err(|e| format!("can't create {}: {e}", figures_dir.display()))?;
    let start = Instant::now();
    let results = experiments::run(&options.scale, options.seed);
    for (name, svg) in figures::draw(&results) {
        write(&figures_dir.join(format!("paper-{name}.svg")), &svg)?;
    }
    for (name, table) in figures::tables(&results)? {
        write(&figures_dir.join(format!("paper-{name}.csv")), &table)?;
    }
    write(
        &options.out.join("simulator-paper.md"),
        &page::write(&results, options),
    )?;
    eprintln!("All of it took {:.0} s.", start.elapsed().as_secs_f64());
    println!("{}", options.out.join("simulator-paper.md").display());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    fs::write(path, text).map_err(|e| format!("can't write {}: {e}", path.display()).into())
}
