//! Every parameter, each declared once: its meaning, where it lies, its default, its bounds, and how it may change.
//!
//! `script/abi` writes everything else from this table: the table of `docs/parameters.md`, `abi/parameters.json`, `abi/parameters.ts`, and
//! the descriptions of the fields in `docs/generated/storage.md`. A new parameter takes a line here, at the end, and a field in one of the
//! records.

use crate::abi::{emit, IMuster::*};
use crate::host::Host;
use crate::store::layout::{slot, LIMITS, RULES, TERMS};
use crate::store::owner::{ownership, NOTICE, UPGRADE_DELAY_MIN};
use crate::Result;
use muster_core::qos::PPM;
use muster_core::record::{Limits, Rules, Terms};
use muster_core::weight;
use muster_core::word::{place, Packed, Word};

/// A default, or the greatest value allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// The same in every network.
    Fixed(u64),
    /// The minimum stake at initialisation, in stake units, divided by this and rounded down.
    StakeOver(u64),
    /// The largest stake that the classes hold, in stake units: it follows from the minimum stake at initialisation.
    StakeLimit,
    /// This many seconds, or [`NOTICE`] less than the delay of upgrades if that is less.
    BeforeUpgrades(u64),
}
use Amount::*;

impl Amount {
    /// The number it is in a network that is initialised.
    fn resolve<H: Host>(self, host: &H) -> Result<u64> {
        let base = || host.get::<Rules>(slot(RULES)).base;
        Ok(match self {
            Fixed(n) => n,
            StakeOver(n) => base() / n,
            StakeLimit => weight::stake_limit(base()),
            BeforeUpgrades(n) => n.min(ownership(host)?.upgrade_delay.saturating_sub(NOTICE) as u64),
        })
    }

    /// The greatest number it is in any network.
    const fn ceiling(self) -> u64 {
        match self {
            Fixed(n) | BeforeUpgrades(n) => n,
            StakeOver(n) => BASE_MAX / n,
            StakeLimit => BASE_MAX << (2 * (weight::CLASSES as u32 - 1)),
        }
    }

    /// The least number it is in any network.
    const fn floor(self) -> u64 {
        const SOONEST: u64 = (UPGRADE_DELAY_MIN - NOTICE) as u64;
        match self {
            BeforeUpgrades(n) if n > SOONEST => SOONEST,
            Fixed(n) | BeforeUpgrades(n) => n,
            StakeOver(n) => 1 / n,
            StakeLimit => 1 << (2 * (weight::CLASSES as u32 - 1)),
        }
    }

    /// Whether it is at most `other` in every network.
    const fn at_most(self, other: Amount) -> bool {
        // For values that follow from the stake, all divisors are at least 1 and the limit is above the stake.
        self.ceiling() <= other.floor() || matches!((self, other), (StakeOver(1..), StakeLimit))
    }
}

/// Largest minimum stake at initialisation, in stake units.
pub const BASE_MAX: u64 = (1 << 30) - 1;

/// How a parameter may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// At once.
    AtOnce,
    /// At once, but it is lowered only while no task is Pending.
    LoweredWhileIdle,
    /// It reaches into stakes: a change is proposed, and takes effect after the delay of upgrades.
    Proposed,
}

/// The part of a parameter that programs carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    slot: u8,
    at: u8,
    width: u8,
    /// How it may change.
    pub change: Change,
    /// Least value allowed.
    pub least: u64,
    /// Greatest value allowed.
    pub most: Amount,
    /// Its default.
    pub default: Amount,
}

/// A parameter as tools and the documentation show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name everywhere outside of the contract.
    pub name: &'static str,
    /// Its meaning, in a sentence without its unit.
    pub doc: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// The record that it lies in.
    pub record: &'static str,
    /// The field of that record.
    pub field: &'static str,
    /// How it behaves.
    pub setting: Setting,
}

impl Parameter {
    /// Whether a change must be proposed.
    pub const fn delayed(&self) -> bool {
        matches!(self.setting.change, Change::Proposed)
    }
}

/// A record that parameters lie in.
trait Holds: Packed {
    const SLOT: u8;
}
impl Holds for Rules {
    const SLOT: u8 = RULES;
}
impl Holds for Terms {
    const SLOT: u8 = TERMS;
}
impl Holds for Limits {
    const SLOT: u8 = LIMITS;
}

macro_rules! parameters {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal in $unit:literal: $record:ident.$field:ident = $default:expr, $least:literal to $most:expr $(, $change:ident)?;
    )*) => {
        /// Every parameter's behaviour, by its number.
        pub const SETTINGS: &[Setting] = &[$({
            let (at, width) = place($record::FIELDS, stringify!($field));
            let changes = [Change::AtOnce $(, Change::$change)?];
            let setting = Setting {
                slot: <$record as Holds>::SLOT,
                at: at as u8,
                width: width as u8,
                change: changes[changes.len() - 1],
                least: $least,
                most: $most,
                default: $default,
            };
            assert!(width == 64 || setting.most.ceiling() >> width == 0, "the field is too narrow for the parameter");
            assert!(setting.least <= setting.default.floor() && setting.default.at_most(setting.most), "the default is out of bounds");
            setting
        }),*];

        /// Every parameter, by its number. For tools: a program that used it would carry all the texts.
        pub const PARAMETERS: &[Parameter] = {
            const TEXTS: &[[&str; 5]] =
                &[$([$name, concat!($($doc),+).trim_ascii(), $unit, stringify!($record), stringify!($field)]),*];
            const COUNT: usize = TEXTS.len();
            const ALL: [Parameter; COUNT] = {
                let mut all = [Parameter { name: "", doc: "", unit: "", record: "", field: "", setting: SETTINGS[0] }; COUNT];
                let mut i = 0;
                while i < COUNT {
                    let [name, doc, unit, record, field] = TEXTS[i];
                    all[i] = Parameter { name, doc, unit, record, field, setting: SETTINGS[i] };
                    i += 1;
                }
                all
            };
            &ALL
        };
    };
}

// Defaults are those of the seeds where they name one.
parameters! {
    /// Queue capacity per joined node
    "alphaMilli" in "thousandths of a task": Rules.alpha_milli = Fixed(2_000), 0 to Fixed(1_000_000_000);
    /// Least price of an estimated second
    "minPrice" in "wei": Terms.min_price = Fixed(1), 0 to Fixed(u64::MAX);
    /// Start fee
    "startFeeBps" in "ten-thousandths of the fee": Rules.start_fee_bps = Fixed(200), 0 to Fixed(5_000), Proposed;
    /// Time between creation and draw; 0 draws at creation
    "drawDelay" in "blocks": Rules.draw_delay = Fixed(1), 0 to Fixed(64), LoweredWhileIdle;
    /// Factor on H at a timeout
    "penaltyPpm" in "millionths": Rules.penalty_ppm = Fixed(300_000), 0 to Fixed(PPM);
    /// Added to H at a success
    "boostPpm" in "millionths": Rules.boost_ppm = Fixed(150_000), 0 to Fixed(PPM);
    /// H below this excludes
    "exclusionPpm" in "millionths": Rules.exclusion_ppm = Fixed(100_000), 0 to Fixed(900_000);
    /// Time constant of H's recovery
    "tau" in "seconds": Rules.tau = Fixed(1_800), 1 to Fixed(604_800);
    /// Stable Diffusion: time of a task before its first image
    "sdOverhead" in "seconds": Terms.sd_overhead = Fixed(30), 0 to Fixed(3_600);
    /// Stable Diffusion: time of an image
    "sdUnit" in "seconds": Terms.sd_unit = Fixed(20), 1 to Fixed(3_600);
    /// GPT: time of a task
    "gptOverhead" in "seconds": Terms.gpt_overhead = Fixed(60), 1 to Fixed(3_600);
    /// GPT: time of a unit
    "gptUnit" in "seconds": Terms.gpt_unit = Fixed(0), 0 to Fixed(3_600);
    /// Longest that a creator may state for fine-tuning
    "fineTuneMax" in "seconds": Terms.fine_tune_max = Fixed(86_400), 1 to Fixed(1_000_000);
    /// Shortest time limit of a running task
    "limitMin" in "seconds": Terms.limit_min = Fixed(60), 1 to Fixed(3_600);
    /// Longest time limit of a running task
    "limitMax" in "seconds": Terms.limit_max = Fixed(7_200), 60 to Fixed(65_535);
    /// Added to every time limit, for outages of the sequencer
    "grace" in "seconds": Terms.grace = Fixed(0), 0 to Fixed(7_200);
    /// Minimum stake
    "minStake" in "stake units": Terms.min_stake = StakeOver(1), 1 to StakeLimit, Proposed;
    /// Time before a returned stake can be withdrawn
    "unbonding" in "seconds": Rules.unbonding = Fixed(86_400), 0 to BeforeUpgrades(2_592_000), Proposed;
    /// Q_long below this kicks out
    "kickoutMilli" in "thousandths": Limits.kickout_milli = Fixed(2_000), 0 to Fixed(10_000), Proposed;
    /// Fewer available holders of a model than this start a pre-download
    "scarce" in "nodes": Rules.scarce = Fixed(3), 0 to Fixed(8);
    /// Holders that a pre-download aims at
    "spread" in "nodes": Rules.spread = Fixed(10), 0 to Fixed(16);
    /// For H to rise: candidates of a draw, active nodes where a task was queued, or right answers of an unscored group; 0: always
    "boostPool" in "nodes": Rules.boost_pool = Fixed(3), 0 to Fixed(8);
    /// Time after which anyone can end a queued task
    "queueTime" in "seconds": Limits.queue_time = Fixed(21_600), 60 to BeforeUpgrades(2_592_000), Proposed;
    /// Price of a GPU name that nobody ever joined with
    "groupFee" in "stake units": Limits.group_fee = StakeOver(100), 0 to StakeLimit, Proposed;
    /// Probability that a committed answer is validated
    "sampleBps" in "ten-thousandths": Limits.sample_bps = Fixed(1_000), 0 to Fixed(10_000);
    /// Blocks from a commitment to the one whose hash decides whether it is validated, and from there to the draw of validators
    "sampleDelay" in "blocks": Limits.sample_delay = Fixed(2), 2 to Fixed(64), LoweredWhileIdle;
    /// Time after a commitment within which an unvalidated answer must be revealed
    "sampleWindow" in "seconds": Limits.sample_window = Fixed(600), 60 to Fixed(65_535), Proposed;
    /// Time for the reveals of a validation group
    "revealWindow" in "seconds": Limits.reveal_window = Fixed(7_200), 3_600 to Fixed(65_535), Proposed;
    /// Open commitments with which a node gets no more work
    "openMost" in "commitments": Limits.open_most = Fixed(2), 1 to Fixed(8), Proposed;
    /// Slash for a wrong or withheld answer
    "slashTimes" in "fees": Limits.slash_times = Fixed(20), 0 to Fixed(255), Proposed;
    /// Nodes that a task's scope needs for scores, ratings, slashes and the reserve: joined ones of a sampled task, else idle ones
    "scorePool" in "nodes": Limits.score_pool = Fixed(9), 3 to Fixed(24), Proposed;
    /// Added to the time limit of a validator that lacks a model
    "downloadTime" in "seconds": Limits.download_time = Fixed(600), 0 to Fixed(65_535);
    /// Bits in which the perceptual hashes of two equal images may differ
    "hammingMost" in "bits": Limits.hamming_most = Fixed(8), 0 to Fixed(64), Proposed;
    /// Whether images slash too: 1, or 0 for scores and fees only
    "slashImages" in "yes or no": Limits.slash_images = Fixed(0), 0 to Fixed(1), Proposed;
    /// Longest that a freed node waits for others, for a task worth more than any that it could do alone
    "holdTime" in "seconds": Limits.hold_time = Fixed(60), 0 to Fixed(255);
}

/// The number of a parameter by its name.
pub fn number_of(name: &str) -> Option<u8> {
    PARAMETERS.iter().position(|p| p.name == name).map(|number| number as u8)
}

impl Setting {
    /// The value in force.
    pub fn get<H: Host>(&self, host: &H) -> u64 {
        host.load(slot(self.slot)).bits(self.at as u32, self.width as u32)
    }

    fn put<H: Host>(&self, host: &mut H, value: u64) {
        let mut word = host.load(slot(self.slot));
        word.set_bits(self.at as u32, self.width as u32, value);
        host.store(slot(self.slot), word);
    }
}

/// The parameter of a number and its bounds.
pub fn bounded<H: Host>(host: &H, number: u8) -> Result<(&'static Setting, u64, u64)> {
    let p = SETTINGS.get(number as usize).ok_or_else(|| refusal!(ParameterUnknown(number)))?;
    Ok((p, p.least, p.most.resolve(host)?))
}

/// Refuses a value outside of a parameter's bounds.
pub fn within<H: Host>(host: &H, number: u8, value: Word) -> Result<(&'static Setting, u64)> {
    let (p, least, most) = bounded(host, number)?;
    let [v, rest @ ..] = value.0;
    ensure!(rest == [0; 3] && v >= least && v <= most, ParameterOutOfBounds(number, value, least, most));
    Ok((p, v))
}

/// Puts a value into force.
pub fn put_parameter<H: Host>(host: &mut H, number: u8, p: &Setting, value: u64) {
    let before = p.get(host);
    p.put(host, value);
    remember(host, p, value);
    emit::<ParameterChanged>(host, (number,), (before, value));
}

/// Where a parameter of a record lies.
const fn lies<R: Holds>(field: &str) -> (u8, u8) {
    (R::SLOT, place(R::FIELDS, field).0 as u8)
}

/// Keeps the past and proposed values of parameters that bound fees. Nodes may have joined, and may have commitments open, since then. A
/// task that is queued when a value takes effect may be as old as its proposal.
pub fn remember<H: Host>(host: &mut H, p: &Setting, value: u64) {
    const MIN_STAKE: (u8, u8) = lies::<Terms>("min_stake");
    const OPEN_MOST: (u8, u8) = lies::<Limits>("open_most");
    match (p.slot, p.at) {
        MIN_STAKE => {
            let (limits, value): (Limits, _) = (host.get(slot(LIMITS)), value.min(BASE_MAX) as u32);
            if value < limits.least_stake_ever {
                host.put(slot(LIMITS), &Limits { least_stake_ever: value, ..limits });
            }
        }
        OPEN_MOST => {
            let (rules, value): (Rules, _) = (host.get(slot(RULES)), value as u8);
            if value > rules.open_most_ever {
                host.put(slot(RULES), &Rules { open_most_ever: value, ..rules });
            }
        }
        _ => {}
    }
}

/// Puts every default into force, in a network whose minimum stake in stake units is `base`.
///
/// Emits each as an event: readers of logs alone must know the defaults too.
pub fn put_defaults<H: Host>(host: &mut H, base: u64) -> Result<()> {
    host.put(slot(RULES), &Rules { base, ..Rules::default() });
    for (number, p) in SETTINGS.iter().enumerate() {
        let value = p.default.resolve(host)?;
        put_parameter(host, number as u8, p, value);
    }
    let limits: Limits = host.get(slot(LIMITS));
    host.put(slot(LIMITS), &Limits { least_stake_ever: base as u32, ..limits });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_parameters_share_a_name_or_a_bit() {
        for (i, p) in PARAMETERS.iter().enumerate() {
            assert_eq!(number_of(p.name), Some(i as u8));
            for q in &PARAMETERS[..i] {
                let (a, b) = (p.setting, q.setting);
                let apart = a.slot != b.slot || a.at >= b.at + b.width || b.at >= a.at + a.width;
                assert!(apart && p.name != q.name, "{} and {}", p.name, q.name);
            }
        }
        assert_eq!(number_of("alpha"), None);
    }

    /// Tests the comparisons that check the table when it is compiled: the least and the most of an amount over all networks.
    #[test]
    fn amounts_lie_between_their_floors_and_ceilings() {
        let limit = weight::stake_limit;
        for (amount, floor, ceiling) in [
            (Fixed(0), 0, 0),
            (Fixed(7), 7, 7),
            (StakeOver(1), 1, BASE_MAX),
            (StakeOver(100), 0, BASE_MAX / 100),
            (StakeLimit, limit(1), limit(BASE_MAX)),
            (BeforeUpgrades(9), 9, 9),
            (BeforeUpgrades(2_592_000), 86_400, 2_592_000),
        ] {
            assert_eq!((amount.floor(), amount.ceiling()), (floor, ceiling), "{amount:?}");
        }
        assert!(Fixed(1).at_most(Fixed(1)) && !Fixed(2).at_most(Fixed(1)));
        assert!(StakeOver(2).at_most(StakeLimit) && !StakeLimit.at_most(StakeOver(1)));
    }

    #[test]
    fn names_are_those_of_the_fields_as_solidity_spells_them() {
        for p in PARAMETERS {
            let mut parts = p.field.split('_');
            let first = parts.next().unwrap().to_string();
            let name = parts.fold(first, |name, part| name + &part[..1].to_uppercase() + &part[1..]);
            assert_eq!(p.name, name);
            assert!(!p.doc.is_empty() && !p.doc.ends_with('.') && !p.unit.is_empty());
        }
    }
}
