//! Groups chosen by ratings on the contract's own code: the paper's populations, targets, and farmed ratings.
//!
//! | module | contents |
//! | --- | --- |
//! | [`field`] | the contract, by the calls that users send |
//! | [`game`] | the paper's rounds on it |
//! | [`farm`] | an application that feeds its own nodes |
//! | [`study`] | the experiments |
//! | [`page`] | their results, in words and pictures |

pub mod farm;
pub mod field;
pub mod game;
pub mod page;
pub mod study;

pub use study::Scale;

use crate::network::write;
use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// How much to do, and where to put it.
#[derive(Clone, Debug)]
pub struct Options {
    pub scale: Scale,
    /// Another seed gives other nodes and other luck.
    pub seed: u64,
    /// The page goes here, pictures into `figures` below.
    pub out: PathBuf,
}

/// Makes all experiments and writes the page and the pictures.
///
/// # Errors
/// A file that can't be written.
pub fn run(options: &Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let figures = options.out.join("figures");
    // Before the work, so that a wrong path costs no patience.
    fs::create_dir_all(&figures).map_err(|e| format!("can't create {}: {e}", figures.display()))?;
    let start = Instant::now();
    let found = study::run(&options.scale, options.seed);
    for (name, svg) in page::figures(&found) {
        write(&figures.join(format!("reputation-{name}.svg")), &svg)?;
    }
    let path = options.out.join("simulator-reputation.md");
    let text = page::write(&found, options);
    write(&path, &text)?;
    eprintln!("All of it took {:.0} s.", start.elapsed().as_secs_f64());
    // A reader may stop early.
    let _ = std::io::stdout().write_all(format!("{text}\n{}\n", path.display()).as_bytes());
    Ok(())
}
