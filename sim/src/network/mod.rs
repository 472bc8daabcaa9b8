//! A whole network under the QoS and the dispatch document, event by event, on the contract's own code.
//!
//! | module | contents |
//! | --- | --- |
//! | [`ledger`] | the contract in memory, and the mirror that a test holds up to it |
//! | [`events`] | the contract's logs as events |
//! | [`policy`] | other ways of choosing a node, for comparison |
//! | [`workload`] | nodes and tasks, made up or from traces |
//! | [`agenda`] | planned events by tick |
//! | [`engine`] | the clock: actions of nodes and applications |
//! | [`report`] | the results |
//! | [`single`] | one workload |
//! | [`instances`] | one network divided into several |
//! | [`study`] | the experiments |
//! | [`page`] | their results, in words and pictures |

pub mod agenda;
pub mod engine;
pub mod events;
pub mod instances;
pub mod ledger;
pub mod page;
pub mod policy;
pub mod report;
pub mod single;
pub mod study;
pub mod workload;

pub use study::Scale;

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The study's options, and the folder of its output.
#[derive(Clone, Debug)]
pub struct Options {
    pub scale: Scale,
    /// Another seed gives other nodes, other tasks and other luck.
    pub seed: u64,
    /// The page goes here, pictures and tables into `figures` below.
    pub out: PathBuf,
}

/// Makes all experiments and writes the page, the pictures and the tables.
///
/// # Errors
/// A file that can't be written.
pub fn run(options: &Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let figures = options.out.join("figures");
    // Before the work, so that a wrong path costs no patience.
    fs::create_dir_all(&figures).map_err(|e| format!("can't create {}: {e}", figures.display()))?;
    let start = Instant::now();
    let found = study::run(&options.scale, options.seed)?;
    write(&figures.join("network.csv"), &page::figures::csv(&found))?;
    repaint(options)?;
    let path = options.out.join("simulator-network.md");
    let text = page::write(&found, options);
    write(&path, &text)?;
    eprintln!("All of it took {:.0} s.", start.elapsed().as_secs_f64());
    let said = format!("{}\n{}\n", page::tables(&text), path.display());
    // A reader may stop early.
    let _ = std::io::stdout().write_all(said.as_bytes());
    Ok(())
}

/// Paints the pictures from the table beside them: after a run, or again after a change of the painting.
///
/// # Errors
/// A table that is not there or was not written by [`run`], and a file that can't be written.
pub fn repaint(options: &Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let figures = options.out.join("figures");
    let path = figures.join("network.csv");
    let table = fs::read_to_string(&path).map_err(|e| format!("can't read {}: {e}", path.display()))?;
    let table = page::figures::Written::read(&table).map_err(|e| format!("{}: {e}", path.display()))?;
    for (name, svg) in page::figures::figures(&table, &options.scale) {
        write(&figures.join(format!("network-{name}.svg")), &svg)?;
    }
    Ok(())
}

/// Writes a file; the error names it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    fs::write(path, text).map_err(|e| format!("can't write {}: {e}", path.display()).into())
}
