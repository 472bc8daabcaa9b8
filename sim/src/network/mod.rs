//! A whole network under seeds 000 and 001, event by event, on the contract's own code.
//!
//! | module | what |
//! | --- | --- |
//! | [`host`] | the contract's storage, in memory |
//! | [`ledger`] | its calls, and the mirror that a test holds up to it |
//! | [`policy`] | other ways of choosing a node, for comparison |
//! | [`workload`] | nodes and tasks, made up or from traces |
//! | [`engine`] | the clock: what nodes and applications do |
//! | [`report`] | what it came to |
//! | [`single`] | one workload |
//! | [`study`] | the experiments |

pub mod engine;
pub mod host;
pub mod ledger;
pub mod policy;
pub mod report;
pub mod single;
pub mod study;

pub use study::Scale;

use std::error::Error;
use std::path::PathBuf;

/// What to do, and where to put it.
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
    study::run(&options.scale, options.seed)?;
    Ok(())
}
pub mod workload;
