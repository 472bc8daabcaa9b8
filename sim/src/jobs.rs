//! Many runs on all processors, with progress.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;

use crate::rounds::{self, Outcome, Run};

/// Plays all runs and returns their outcomes in the same order, for any number of threads.
///
/// Progress goes to standard error; where that is no terminal, only one line per call.
pub fn play(title: &str, runs: &[Run]) -> Vec<Outcome> {
    let work = |run: &Run| u64::from(run.rounds) * run.workers as u64;
    let bar = ProgressBar::with_draw_target(
        Some(runs.iter().map(work).sum()),
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
    );
    let style = ProgressStyle::with_template("{msg:46} {wide_bar} {percent:>3} % {elapsed:>5}, {eta:>5} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style);
    bar.set_message(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(250));
    let outcomes = runs
        .par_iter()
        .map(|run| {
            let outcome = rounds::play(run);
            bar.inc(work(run));
            outcome
        })
        .collect();
    let line = format!("{title}: {} runs in {:.1} s", runs.len(), bar.elapsed().as_secs_f64());
    bar.finish_and_clear();
    eprintln!("{line}");
    outcomes
}
