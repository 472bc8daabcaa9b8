//! Section 5 of the paper, every experiment, and our findings beyond it.

mod claims;
mod experiments;
mod figures;
pub mod fit;
mod known;
pub mod lab;
mod page;
mod series;
mod text;
mod variant;
mod verdict;

use crate::network::write;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

pub use variant::Scale;

/// The study's options, and the folder of its output.
#[derive(Clone, Debug)]
pub struct Options {
    pub scale: Scale,
    /// Another seed gives other workers and other luck.
    pub seed: u64,
    /// The page goes here, pictures and tables into `figures` below.
    pub out: PathBuf,
}

impl Options {
    /// How a seed other than the default is given to the command.
    fn seed_argument(&self) -> String {
        match self.seed {
            1 => String::new(),
            seed => format!(" --seed {seed}"),
        }
    }
}

/// Made before the work, so that a wrong path costs no patience.
fn figures_folder(options: &Options) -> Result<PathBuf, Box<dyn Error + Send + Sync>> {
    let folder = options.out.join("figures");
    fs::create_dir_all(&folder).map_err(|e| format!("can't create {}: {e}", folder.display()))?;
    Ok(folder)
}

/// Runs everything and writes the page, the pictures and the tables.
pub fn run(options: &Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let folder = figures_folder(options)?;
    let lab = experiments::play(&options.scale, options.seed);
    let variants = variant::Variant::all(options.scale, options.seed);
    for (name, svg) in figures::draw(&lab, &variants[3]) {
        write(&folder.join(format!("paper-{name}.svg")), &svg)?;
    }
    for (name, table) in figures::tables(&lab, &variants)? {
        write(&folder.join(format!("paper-{name}.csv")), &table)?;
    }
    let path = options.out.join("simulator-paper.md");
    write(&path, &page::write(&lab, &variants, options))?;
    println!("{}", path.display());
    Ok(())
}
