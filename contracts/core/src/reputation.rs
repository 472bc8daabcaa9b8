//! Reputation-based scheduling: ratings, the likelihood that a group is right, and how groups are formed.
//!
//! After Sonnek, Chandra and Weissman, "Adaptive Reputation-Based Scheduling on Unreliable Distributed Infrastructures"
//! (IEEE TPDS 18(11), 2007), called "the paper" here; section numbers are its own. The target of a group is chosen in
//! [`crate::adaptive`].
//!
//! Ratings, likelihoods and targets are wads between 0 and 1e18.

use crate::wad::{binary_fraction, mul_div_u64, mul_fraction, WAD};

/// The largest group any function here handles.
pub const MAX_GROUP: usize = 15;

/// The fewest equal answers that are more than half of a group of `size`.
pub const fn majority(size: usize) -> usize {
    size / 2 + 1
}

/// A worker's record so far: its responses held correct, among all that it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    correct: u32,
    attempted: u32,
}

impl Record {
    /// `None` if more were correct than attempted.
    pub const fn new(correct: u32, attempted: u32) -> Option<Self> {
        if correct > attempted {
            return None;
        }
        Some(Self { correct, attempted })
    }

    /// How many were correct.
    pub const fn correct(self) -> u32 {
        self.correct
    }

    /// Out of how many.
    pub const fn attempted(self) -> u32 {
        self.attempted
    }

    /// r = (n + 1) / (N + 2), rounded down (section 4.1): one half for a newcomer, never 0 and never 1.
    pub fn rating(self) -> u64 {
        let (n, total) = (u64::from(self.correct) + 1, u64::from(self.attempted) + 2);
        mul_div_u64(n, WAD, total).unwrap_or(WAD)
    }

    /// Counts one more response; a missing or late one is an incorrect one. At 2^32 - 1 responses the record is closed.
    pub fn note(&mut self, correct: bool) {
        if self.attempted < u32::MAX {
            self.attempted += 1;
            self.correct += u32::from(correct);
        }
    }
}

/// Counts a group's answers and judges each member; `None` stands for a missing answer, which never agrees with any.
///
/// Returns the position of the first member of the majority, or `None` without one. A member is judged correct if it
/// agrees with the majority; without a majority, if it agrees with anyone (the Optimistic heuristic of section 4.1: two
/// equal wrong answers are unlikely). Judgements beyond the shorter of both slices are left alone. Quadratic in the
/// number of members.
pub fn vote<T: PartialEq>(answers: &[Option<T>], correct: &mut [bool]) -> Option<usize> {
    vote_by(answers, correct, |a, b| a == b)
}

/// [`vote`], where `same` says whether two answers agree: each with itself, and if one with another then the other with the one. It need
/// not be transitive. Right are the members that agree with the first one that more than half agree with.
pub fn vote_by<T>(answers: &[Option<T>], correct: &mut [bool], same: impl Fn(&T, &T) -> bool) -> Option<usize> {
    let agree = |a: &Option<T>, b: &Option<T>| a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| same(a, b));
    let agreeing = |answer: &Option<T>| answers.iter().filter(|other| agree(other, answer)).count();
    let winner = answers.iter().position(|answer| agreeing(answer) >= majority(answers.len()));
    for (verdict, answer) in correct.iter_mut().zip(answers) {
        *verdict = match winner {
            Some(winner) => agree(answer, &answers[winner]),
            None => agreeing(answer) >= 2,
        };
    }
    winner
}

/// The likelihood of correctness of a growing group whose members are described by a `T`.
pub trait Likelihood<T: ?Sized>: Default {
    /// Adds a member. One beyond [`MAX_GROUP`] is not counted.
    fn push(&mut self, member: &T);

    /// The likelihood that more than half of the members so far answer correctly, as a wad; 0 for an empty group.
    fn value(&self) -> u64;
}

/// The exact likelihood of correctness, equation (1): the upper tail of a Poisson-binomial distribution.
///
/// Instead of enumerating 2^n subsets it keeps the probability of each number of correct answers and folds in one member
/// at a time: O(n^2) for a group, O(n) for a member. Even groups need one answer more than half, like odd ones.
///
/// Never above the true value for the given ratings, and less than 1e-17 + 1e-18 below it. Probabilities are scaled by 2^64. Each product
/// is rounded so that mass stays at the smaller number of correct answers, at most 120 times in a group of 15; none is lost.
#[derive(Clone, Debug)]
pub struct Exact {
    probability: [u64; MAX_GROUP + 1],
    size: usize,
}

impl Default for Exact {
    fn default() -> Self {
        let mut probability = [0; MAX_GROUP + 1];
        probability[0] = u64::MAX;
        Self { probability, size: 0 }
    }
}

impl Exact {
    /// Adds a member given the binary fraction of its rating.
    fn fold(&mut self, right: u64) {
        if self.size == MAX_GROUP {
            return;
        }
        for j in (0..=self.size).rev() {
            let moved = mul_fraction(self.probability[j], right);
            self.probability[j] -= moved;
            self.probability[j + 1] += moved;
        }
        self.size += 1;
    }
}

impl Likelihood<u64> for Exact {
    fn push(&mut self, rating: &u64) {
        self.fold(binary_fraction(*rating));
    }

    fn value(&self) -> u64 {
        tail(&self.probability, self.size)
    }
}

/// The probability of a majority of `size`, as a wad, rounded down, from that of each number of correct answers as a binary fraction.
pub fn tail(probability: &[u64; MAX_GROUP + 1], size: usize) -> u64 {
    // Terms that were rounded up can add up to more than one.
    let sum = probability.iter().take(size + 1).skip(majority(size)).fold(0u64, |sum, p| sum.saturating_add(*p));
    mul_fraction(sum, WAD)
}

/// The exact likelihood of correctness of a group with these ratings. `None` if it is empty or above [`MAX_GROUP`].
pub fn likelihood(ratings: &[u64]) -> Option<u64> {
    if ratings.is_empty() || ratings.len() > MAX_GROUP {
        return None;
    }
    let mut group = Exact::default();
    ratings.iter().for_each(|rating| group.push(rating));
    Some(group.value())
}

/// The fallback of [`tight_fit`] where no group meets the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fallback {
    /// Rmax members, or all if fewer are left: the largest group that comes closest to the target.
    Largest,
    /// The group that comes closest to the target, whatever its size.
    Closest,
}

/// The rule for a group: Rmin, Rmax and the target likelihood of correctness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    min: usize,
    max: usize,
    target: u64,
}

/// Why a [`Rule`] is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// Rmin must be at least 1.
    NoMember,
    /// Rmin must not exceed Rmax.
    MinAboveMax {
        /// Rmin.
        min: usize,
        /// Rmax.
        max: usize,
    },
    /// Rmax must not exceed [`MAX_GROUP`].
    TooLarge {
        /// Rmax.
        max: usize,
    },
    /// A target is a probability: at most 1e18.
    TargetAboveOne {
        /// The target, a wad.
        target: u64,
    },
}

impl core::fmt::Display for RuleError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoMember => write!(f, "the smallest group size must be at least 1"),
            Self::MinAboveMax { min, max } => write!(f, "the smallest group size {min} is above the largest, {max}"),
            Self::TooLarge { max } => {
                write!(f, "the largest group size {max} is above {MAX_GROUP}")
            }
            Self::TargetAboveOne { target } => {
                write!(f, "the target {target} is above 1e18, which is certainty")
            }
        }
    }
}

impl core::error::Error for RuleError {}

impl Rule {
    /// `target` is a wad. [`RuleError`] lists the refused values.
    pub const fn new(min: usize, max: usize, target: u64) -> Result<Self, RuleError> {
        if min == 0 {
            return Err(RuleError::NoMember);
        }
        if min > max {
            return Err(RuleError::MinAboveMax { min, max });
        }
        if max > MAX_GROUP {
            return Err(RuleError::TooLarge { max });
        }
        if target > WAD {
            return Err(RuleError::TargetAboveOne { target });
        }
        Ok(Self { min, max, target })
    }

    /// Rmin.
    pub const fn min(&self) -> usize {
        self.min
    }

    /// Rmax.
    pub const fn max(&self) -> usize {
        self.max
    }

    /// The target likelihood of correctness, a wad.
    pub const fn target(&self) -> u64 {
        self.target
    }
}

/// A group that was formed: the first `size` of the slice it was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formed {
    /// How many members it has.
    pub size: usize,
    /// The likelihood by the measure used, a wad; `None` where the algorithm never asks for it.
    pub likelihood: Option<u64>,
    /// How often the likelihood of a group was asked for.
    pub evaluations: u32,
}

/// An algorithm of section 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Algorithm {
    /// [`fixed_size`].
    Fixed = 0,
    /// [`first_fit`].
    FirstFit = 1,
    /// [`tight_fit`], [`Fallback::Largest`].
    TightFit = 2,
    /// [`random_fit`].
    RandomFit = 3,
}

impl Algorithm {
    /// The algorithm with this number.
    pub const fn new(n: u8) -> Option<Self> {
        match n {
            0 => Some(Self::Fixed),
            1 => Some(Self::FirstFit),
            2 => Some(Self::TightFit),
            3 => Some(Self::RandomFit),
            _ => None,
        }
    }

    /// Forms a group at the front of `free`, which must be sorted by falling rating. Algorithms that need this order keep it among the
    /// nodes outside the group. `pick` as in [`fixed_size`].
    pub fn form<T, L: Likelihood<T>>(self, free: &mut [T], rule: &Rule, pick: impl FnMut(usize) -> usize) -> Option<Formed> {
        match self {
            Self::Fixed => fixed_size(free, rule, pick),
            Self::FirstFit => first_fit::<T, L>(free, rule),
            Self::TightFit => tight_fit::<T, L>(free, rule, Fallback::Largest),
            Self::RandomFit => random_fit::<T, L>(free, rule, pick),
        }
    }
}

/// Fixed-size (section 4.3.1): Rmax members at random, moved to the front. `None` if fewer are free.
///
/// `pick(n)` must return a uniform number below n; a larger one is taken modulo n.
pub fn fixed_size<T>(free: &mut [T], rule: &Rule, mut pick: impl FnMut(usize) -> usize) -> Option<Formed> {
    if free.len() < rule.max {
        return None;
    }
    for i in 0..rule.max {
        draw(free, i, &mut pick);
    }
    Some(Formed { size: rule.max, likelihood: None, evaluations: 0 })
}

/// Moves a random one of `free[i..]` to position i.
fn draw<T>(free: &mut [T], i: usize, pick: &mut impl FnMut(usize) -> usize) {
    let left = free.len() - i;
    free.swap(i, i + pick(left) % left);
}

/// First-fit (section 4.3.2): the best members until the target or Rmax is reached. `None` if fewer than Rmin are free.
///
/// `free` must be sorted by falling rating and stays so; the group is its front.
pub fn first_fit<T, L: Likelihood<T>>(free: &mut [T], rule: &Rule) -> Option<Formed> {
    grow::<T, L>(free, rule, |_, _| ())
}

/// Random-fit (section 4.3.4): random members until the target or Rmax is reached, moved to the front. `None` if fewer
/// than Rmin are free. `pick` as in [`fixed_size`].
pub fn random_fit<T, L: Likelihood<T>>(free: &mut [T], rule: &Rule, mut pick: impl FnMut(usize) -> usize) -> Option<Formed> {
    grow::<T, L>(free, rule, |free, i| draw(free, i, &mut pick))
}

fn grow<T, L: Likelihood<T>>(free: &mut [T], rule: &Rule, mut next: impl FnMut(&mut [T], usize)) -> Option<Formed> {
    if free.len() < rule.min {
        return None;
    }
    let mut group = L::default();
    let mut formed = Formed { size: 0, likelihood: None, evaluations: 0 };
    while formed.size < rule.max.min(free.len()) {
        next(free, formed.size);
        group.push(&free[formed.size]);
        formed.size += 1;
        if formed.size >= rule.min {
            let value = group.value();
            formed.likelihood = Some(value);
            formed.evaluations += 1;
            if value >= rule.target {
                break;
            }
        }
    }
    Some(formed)
}

/// Tight-fit (section 4.3.3): the smallest group that reaches the target, by a small margin; if none does, the group that `fallback` names.
/// `None` if fewer than Rmin are free.
///
/// `free` must be sorted by falling rating, so that the likelihood falls along the slice. The paper names a binary search and its cost, and
/// this is how we read it. For each size from Rmin on, the last run of neighbours that reaches the target is searched. The last member of
/// the first such run is then moved as far down the slice as the target allows, by a second search. No smaller group reaches the target.
/// Others of that size can come closer to it, for all members but the last stay neighbours. If not even the best members of any size reach
/// it, one of those fronts is taken. The group is moved to the front, the others stay sorted. At most (Rmax - Rmin + 1) + 2 log2(free)
/// evaluations.
pub fn tight_fit<T, L: Likelihood<T>>(free: &mut [T], rule: &Rule, fallback: Fallback) -> Option<Formed> {
    fit::<T, L, true>(free, rule, fallback)
}

/// [`tight_fit`] without the second search: all members are neighbours. At most log2(free) evaluations fewer, and a larger margin.
pub fn tight_fit_of_neighbours<T, L: Likelihood<T>>(free: &mut [T], rule: &Rule, fallback: Fallback) -> Option<Formed> {
    fit::<T, L, false>(free, rule, fallback)
}

/// The likelihood of `size` neighbours from `start` on, but for the last, which is at `last`.
fn likelihood_at<T, L: Likelihood<T>>(free: &[T], start: usize, size: usize, last: usize) -> u64 {
    let mut group = L::default();
    (start..start + size - 1).chain([last]).for_each(|i| group.push(&free[i]));
    group.value()
}

fn fit<T, L: Likelihood<T>, const APART: bool>(free: &mut [T], rule: &Rule, fallback: Fallback) -> Option<Formed> {
    let mut evaluations = 0;
    let mut best: Option<(u64, usize, usize, usize)> = None;
    for size in rule.min..=rule.max.min(free.len()) {
        evaluations += 1;
        let mut reached = likelihood_at::<T, L>(free, 0, size, size - 1);
        if reached < rule.target {
            let closer = best.is_none_or(|(highest, ..)| reached > highest);
            if closer || fallback == Fallback::Largest {
                best = Some((reached, 0, size, size - 1));
            }
            continue;
        }
        // First the run is moved, then its last member: by `low` places the target is reached, by `high` it is not known to be.
        let (mut start, mut last) = (0, size - 1);
        for moves_last in [false, true].into_iter().take(1 + APART as usize) {
            let (mut low, mut high) = (0, free.len() - last);
            let first = start;
            while high - low > 1 {
                let mid = low + (high - low) / 2;
                let at = if moves_last { first } else { mid };
                evaluations += 1;
                let value = likelihood_at::<T, L>(free, at, size, last + mid);
                if value >= rule.target {
                    (low, reached) = (mid, value);
                } else {
                    high = mid;
                }
            }
            start += if moves_last { 0 } else { low };
            last += low;
        }
        best = Some((reached, start, size, last));
        break;
    }
    best.map(|(value, start, size, last)| {
        (start + size..=last).rev().for_each(|i| free.swap(i, i - 1));
        free[..start + size].rotate_right(size);
        Formed { size, likelihood: Some(value), evaluations }
    })
}
