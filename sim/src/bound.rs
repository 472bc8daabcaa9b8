//! The lower bound that the paper's algorithms use in place of the likelihood of correctness. The contracts compute the likelihood itself.

use muster_core::reputation::{tail, Likelihood, MAX_GROUP};
use muster_core::wad::{binary_fraction, exp_neg_wad, mul_fraction, neg_ln_wad, WAD};

/// A rating with the logarithms the lower bound needs, so that they are taken once per change of the rating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRating {
    rating: u64,
    neg_ln_right: u128,
    neg_ln_wrong: u128,
}

impl LogRating {
    /// Of a rating up to 1e18; a larger one counts as 1e18.
    pub fn new(rating: u64) -> Self {
        // Stands for infinity: even divided by the largest group it makes the exponential vanish.
        const IMPOSSIBLE: u128 = 1_000 * WAD as u128;
        let rating = rating.min(WAD);
        let neg_ln = |p| neg_ln_wad(p).unwrap_or(IMPOSSIBLE);
        Self { rating, neg_ln_right: neg_ln(rating), neg_ln_wrong: neg_ln(WAD - rating) }
    }

    /// The rating it was made of.
    pub const fn rating(&self) -> u64 {
        self.rating
    }
}

/// The paper's lower bound on the likelihood of correctness, equation (2), extended to even groups.
///
/// By the inequality of the means each sum over the subsets of m members is at least their number times the geometric
/// mean of its terms. A member occurs in a share a_m = C(n-1, m-1) / C(n, m) = m / n of those subsets. With the
/// geometric means R of all r and Q of all 1 - r, the bound is thus the sum over m >= majority of C(n, m) R^m Q^(n-m).
/// Nothing in this requires an odd n; an even group needs n/2 + 1 answers.
///
/// Unlike the likelihood itself the bound may fall when a rating rises (it is 0 as soon as one rating is 0, and only
/// the product of all ratings when one is 1). Within 1e-16 of the true value of the bound.
#[derive(Clone, Debug, Default)]
pub struct Bound {
    neg_ln_right: u128,
    neg_ln_wrong: u128,
    size: usize,
}

impl Likelihood<LogRating> for Bound {
    fn push(&mut self, member: &LogRating) {
        if self.size < MAX_GROUP {
            self.neg_ln_right += member.neg_ln_right;
            self.neg_ln_wrong += member.neg_ln_wrong;
            self.size += 1;
        }
    }

    fn value(&self) -> u64 {
        if self.size == 0 {
            return 0;
        }
        let mean = |sum: u128| binary_fraction(exp_neg_wad(sum / self.size as u128));
        let (right, wrong) = (mean(self.neg_ln_right), mean(self.neg_ln_wrong));
        // C(n, m) R^m Q^(n-m) for all m at once, with no factor above one: the coefficients of (Q + R x)^n.
        let mut term = [0; MAX_GROUP + 1];
        term[0] = u64::MAX;
        for size in 0..self.size {
            for j in (0..=size).rev() {
                term[j + 1] = term[j + 1].saturating_add(mul_fraction(term[j], right));
                term[j] = mul_fraction(term[j], wrong);
            }
        }
        tail(&term, self.size)
    }
}

/// The lower bound (2) of the likelihood of correctness. `None` if the group is empty or above [`MAX_GROUP`].
pub fn likelihood_bound(ratings: &[u64]) -> Option<u64> {
    if ratings.is_empty() || ratings.len() > MAX_GROUP {
        return None;
    }
    let mut group = Bound::default();
    ratings.iter().for_each(|rating| group.push(&LogRating::new(*rating)));
    Some(group.value())
}
