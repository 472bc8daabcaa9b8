//! The points where tests kill the agent: between any two steps, as `kill -9` and power cuts do. Absent from releases.

/// The environment variable that names the step.
#[cfg(debug_assertions)]
const POINT: &str = "MUSTER_AGENT_DIES_AT";

/// Ends the process here, if a test asks for it.
#[cfg(debug_assertions)]
pub fn at(point: &str) {
    if std::env::var(POINT).is_ok_and(|wanted| wanted == point) {
        eprintln!("muster-agent: dies at {point}");
        let own = rustix::process::getpid();
        // Nothing refuses it, and nothing runs after it.
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
pub fn at(_point: &str) {}
