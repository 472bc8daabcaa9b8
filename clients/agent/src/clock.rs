//! The agent's estimate of the chain's time. A block has the time of its creation: on a quiet chain that may be long ago, while
//! deadlines pass all the same.

use std::time::{Duration, Instant, SystemTime};

use muster_client::Head;

/// The later of the machine's time and the newest block's: results are kept for some days from then on.
pub fn latest(chain: Option<u64>) -> u64 {
    machine().as_secs().max(chain.unwrap_or_default())
}

/// The earlier of the two. Results are removed by it: a machine whose clock jumps ahead must not lose them.
pub fn earliest(chain: Option<u64>) -> u64 {
    machine().as_secs().min(chain.unwrap_or_default())
}

/// How long a new clock waits for a block before it believes the machine, and by how much the machine may be ahead all the same.
const UNSURE: Duration = Duration::from_secs(5);

fn machine() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// The expected time of the next block.
#[derive(Default)]
pub struct Clock {
    /// The number of the newest block that was seen.
    block: Option<u64>,
    /// The latest time of any block, in seconds since 1970, and when it was seen.
    shown: Option<(u64, Instant)>,
    /// Whether a block came while this clock ran, so that the machine's own clock is not needed.
    live: bool,
    /// When the first block was seen.
    begun: Option<Instant>,
}

impl Clock {
    /// Notes the newest block.
    pub fn see(&mut self, head: &Head) {
        self.note(head.number, head.timestamp, Instant::now());
    }

    /// Seconds since 1970.
    pub fn now(&self) -> u64 {
        self.reckon(Instant::now(), machine())
    }

    /// The newest block's time, while the machine's is much later and may be wrong: the next block will show it.
    pub fn doubted(&self) -> Option<u64> {
        self.doubts(Instant::now(), machine())
    }

    fn doubts(&self, at: Instant, machine: Duration) -> Option<u64> {
        let new = self.begun.is_some_and(|begun| at.saturating_duration_since(begun) < UNSURE);
        let ahead = |shown: &u64| *shown + UNSURE.as_secs() < machine.as_secs();
        self.shown(at).filter(|shown| new && !self.live && ahead(shown))
    }

    fn note(&mut self, block: u64, timestamp: u64, at: Instant) {
        self.begun.get_or_insert(at);
        self.live |= self.block.is_some_and(|known| known < block);
        // A node that is behind shows an older block.
        self.block = self.block.max(Some(block));
        if self.shown(at).is_none_or(|known| known < timestamp) {
            self.shown = Some((timestamp, at));
        }
    }

    fn shown(&self, at: Instant) -> Option<u64> {
        self.shown.map(|(timestamp, then)| timestamp + at.saturating_duration_since(then).as_secs())
    }

    fn reckon(&self, at: Instant, machine: Duration) -> u64 {
        match self.shown(at) {
            Some(shown) if self.live => shown,
            shown => shown.unwrap_or_default().max(machine.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_outlive_a_clock_that_is_wrong() {
        let (past, future) = (Some(1), Some(u64::MAX));
        assert!(latest(past) > 1 && latest(future) == u64::MAX);
        assert!(earliest(past) == 1 && earliest(future) < u64::MAX);
        // Before any block was seen, nothing is removed.
        assert_eq!(earliest(None), 0);
    }

    #[test]
    fn a_deadline_passes_on_a_quiet_chain() {
        let (mut clock, begun) = (Clock::default(), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        let machine = |seconds: u64| Duration::from_secs(1_000 + seconds);
        // A new clock does not know the newest block's age, and uses the machine's time.
        clock.note(7, 900, begun);
        assert_eq!(clock.reckon(begun, machine(0)), 1_000);
        assert_eq!(clock.reckon(after(30), machine(30)), 1_030);
        // A chain whose time was moved is ahead of every machine.
        clock.note(7, 5_000, after(40));
        assert_eq!(clock.reckon(after(50), machine(50)), 5_010);
    }

    #[test]
    fn a_machine_that_is_ahead_is_doubted_until_a_block_comes_or_none_does() {
        let (mut clock, begun) = (Clock::default(), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        let machine = Duration::from_secs;
        assert_eq!(clock.doubts(begun, machine(9_000)), None);
        clock.note(7, 1_000, begun);
        assert_eq!(clock.doubts(after(1), machine(9_001)), Some(1_001));
        // A right clock is a little ahead of the newest block.
        assert_eq!(clock.doubts(after(1), machine(1_006)), None);
        // The newest block is old.
        assert_eq!(clock.doubts(after(5), machine(9_005)), None);
        clock.note(8, 1_002, after(2));
        assert_eq!(clock.doubts(after(2), machine(9_002)), None);
    }

    #[test]
    fn a_machine_whose_clock_is_wrong_is_not_believed_for_long() {
        let (mut clock, begun) = (Clock::default(), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        let wrong = Duration::from_secs(9_001);
        clock.note(7, 1_000, begun);
        clock.note(8, 1_005, after(5));
        assert_eq!(clock.reckon(after(5), wrong), 1_005);
        assert_eq!(clock.reckon(after(25), wrong), 1_025);
        // A node that is behind does not set the clock back.
        clock.note(7, 1_000, after(30));
        clock.note(9, 1_010, after(30));
        assert_eq!(clock.reckon(after(30), wrong), 1_030);
    }
}
