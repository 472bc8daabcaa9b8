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
/// How long no block after the newest one must be seen, but earlier ones, before that one counts as false: a node may be behind.
const ALONE: Duration = Duration::from_secs(20);

fn machine() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// The chain's time, as blocks show it.
#[derive(Clone, Copy)]
struct Shown {
    /// The newest block, and its time in seconds since 1970.
    block: u64,
    timestamp: u64,
    /// The time that is reckoned from, of this block or one before, and when that was seen.
    base: u64,
    at: Instant,
}

impl Shown {
    fn new(block: u64, timestamp: u64, at: Instant) -> Self {
        Self { block, timestamp, base: timestamp, at }
    }

    fn now(&self, at: Instant) -> u64 {
        self.base.saturating_add(at.saturating_duration_since(self.at).as_secs())
    }

    /// Notes the next block, or the same one.
    fn see(&mut self, block: u64, timestamp: u64, at: Instant) {
        // No block is earlier than the one before: that one's time was false.
        if timestamp < self.timestamp || self.now(at) < timestamp {
            (self.base, self.at) = (timestamp, at);
        }
        (self.block, self.timestamp) = (block, timestamp);
    }
}

/// The expected time of the next block.
#[derive(Default)]
pub struct Clock {
    shown: Option<Shown>,
    /// The times of earlier blocks that were seen since the newest one, and since when.
    other: Option<(Instant, Shown)>,
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
        let ahead = |shown: &u64| shown.saturating_add(UNSURE.as_secs()) < machine.as_secs();
        self.shown(at).filter(|shown| new && !self.live && ahead(shown))
    }

    fn note(&mut self, block: u64, timestamp: u64, at: Instant) {
        self.begun.get_or_insert(at);
        let seen = Shown::new(block, timestamp, at);
        let Some(mut shown) = self.shown else {
            self.shown = Some(seen);
            return;
        };
        self.live |= shown.block < block;
        if (block, timestamp) >= (shown.block, shown.timestamp) {
            shown.see(block, timestamp, at);
            (self.shown, self.other) = (Some(shown), None);
            return;
        }
        // A node is behind, or another one has made up the newest block.
        let (since, mut other) = self.other.unwrap_or((at, seen));
        if block >= other.block {
            other.see(block, timestamp, at);
        }
        self.other = Some((since, other));
        if at.saturating_duration_since(since) >= ALONE {
            (self.shown, self.other) = (Some(other), None);
        }
    }

    fn shown(&self, at: Instant) -> Option<u64> {
        self.shown.map(|shown| shown.now(at))
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
    fn a_block_from_the_future_is_not_believed_for_long() {
        let (mut clock, begun) = (Clock::default(), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        let machine = Duration::from_secs(1);
        clock.note(7, 1_000, begun);
        clock.note(8, u64::MAX, after(1));
        assert_eq!(clock.reckon(after(2), machine), u64::MAX);
        clock.note(9, 1_002, after(2));
        assert_eq!(clock.reckon(after(2), machine), 1_002);
        // Its number is made up, too, so that no block comes after it.
        clock.note(900, 90_000, after(3));
        clock.note(10, 1_004, after(4));
        clock.note(11, 1_010, after(10));
        assert_eq!(clock.reckon(after(23), machine), 90_020);
        clock.note(16, 1_024, after(24));
        assert_eq!(clock.reckon(after(24), machine), 1_024);
        // Nodes that are behind now and then do not set it back.
        for seconds in [30, 45, 60] {
            clock.note(15, 1_020, after(seconds));
            clock.note(17 + seconds, 1_000 + seconds, after(seconds + 1));
        }
        assert_eq!(clock.reckon(after(61), machine), 1_061);
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
