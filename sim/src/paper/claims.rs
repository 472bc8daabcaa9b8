//! Every claim of section 5, and how it fares under a set of populations and a reading of the text.

use super::experiments::{DEVIATIONS, GRANULARITIES, MAGNITUDES, STATIONARY, WAITS};
use super::fit::{self, Range};
use super::known;
use super::lab::Lab;
use super::series::{self, over, OfRounds};
use super::text::{fine, list, named, percent, plain, share, signed, span};
use super::variant::{wad, Case, Chooser, Key, TargetSearch, Variant, ALPHAS, LARGE, MAX, MAXES, MIN, SMALL, STRIKE};
use super::verdict::{self, apart, Noticed, Split, Verdict};
use crate::bound::likelihood_bound;
use crate::numbers;
use muster_core::reputation::{likelihood, MAX_GROUP};
use muster_core::wad::WAD;

use crate::population::Name;
use crate::rounds::{Algorithm, Measure, Outcome, Run};
use crate::statistics::Estimate;

/// One claim under one variant.
pub struct Claim {
    /// Section, and figure or table.
    pub place: &'static str,
    /// The claim, in the text's words as far as they fit.
    pub text: &'static str,
    /// Our criterion, where it needs to be stated.
    pub rule: &'static str,
    pub ours: String,
    pub verdict: Verdict,
    /// Whether the populations were fitted to it, or the reading was chosen by it.
    pub used: bool,
}

type Values = Vec<(Name, Estimate)>;

fn each(value: impl Fn(Name) -> Estimate) -> Values {
    Name::ALL.into_iter().map(|name| (name, value(name))).collect()
}

fn count(values: &Values, good: impl Fn(Estimate) -> bool) -> usize {
    values.iter().filter(|value| good(value.1)).count()
}

fn throughput(outcome: &Outcome) -> f64 {
    outcome.throughput
}

fn success(outcome: &Outcome) -> f64 {
    outcome.success
}

fn attempted(outcome: &Outcome) -> f64 {
    outcome.attempted
}

/// The threshold for far below the best static target: beyond the widest line that the text draws.
const FAR: f64 = 0.05;

/// The meaning of "minor", "similar" and "hardly affected" for a success rate.
const MINOR: f64 = 0.03;

/// Judges one variant.
struct Judge<'a> {
    lab: &'a Lab,
    v: &'a Variant,
    claims: Vec<Claim>,
}

/// All claims, in the text's order.
pub fn judge(lab: &Lab, variant: &Variant) -> Vec<Claim> {
    let mut judge = Judge { lab, v: variant, claims: Vec::new() };
    judge.comparison();
    judge.sizes();
    judge.scale();
    judge.adaptive();
    judge.weights();
    judge.blackout();
    judge.convergence();
    judge.overhead();
    judge.accuracy();
    judge.claims
}

impl Judge<'_> {
    fn add(&mut self, place: &'static str, text: &'static str, rule: &'static str, ours: String, verdict: Verdict) {
        self.claims.push(Claim { place, text, rule, ours, verdict, used: false });
    }

    /// Marks the last claim as one that the populations or the reading were chosen by.
    fn used(&mut self) {
        if let Some(claim) = self.claims.last_mut() {
            claim.used = true;
        }
    }

    fn over_fixed(&self, workers: usize, algorithm: Algorithm, of: fn(&Outcome) -> f64) -> Values {
        each(|name| {
            let key = |a| Key::new(name, workers, Measure::Bound, a);
            self.v.relative(self.lab, key(algorithm), key(Algorithm::Fixed), of)
        })
    }

    fn shortfall(&self, algorithm: Algorithm) -> Values {
        each(|name| {
            let fixed = Key::small(name, Algorithm::Fixed);
            self.v.difference(self.lab, Key::small(name, algorithm), fixed, success)
        })
    }

    /// Section 5.2.2, figure 3.
    fn comparison(&mut self) {
        let tight = self.v.tight_fit();
        let fixed = Key::small(Name::HeavyHigh, Algorithm::Fixed);
        let heavy = self.v.estimate(self.lab, fixed, success);
        self.add(
            "5.2.2",
            "\"For Rmax = 7, the theoretical success rate of a Fixed strategy under the realistic Heavy-High distribution is 90 percent\"",
            "within 0.89 to 0.91",
            share(heavy),
            Verdict::if_holds(fit::FIXED_SUCCESS.meets(heavy)),
        );
        self.used();
        // The text gives one range for both: its ends are those of all twelve.
        let greedy: Vec<Estimate> =
            self.v.greedy().iter().flat_map(|a| self.over_fixed(SMALL, *a, throughput)).map(|gain| gain.1).collect();
        let (least, largest) = verdict::ends_reached(fit::GREEDY_GAIN, &greedy);
        let ends = usize::from(least) + usize::from(largest);
        for (algorithm, text) in [
            (
                Algorithm::FirstFit,
                "\"First-fit [...] improve[s] on the throughput of Fixed by 25-250 percent, depending on the worker reliability distribution\"",
            ),
            (tight, "Tight-fit does too"),
        ] {
            let gains = self.over_fixed(SMALL, algorithm, throughput);
            let good = count(&gains, |e| fit::GREEDY_GAIN.meets(e));
            self.add(
                "5.2.2, figure 3a",
                text,
                "every population in the range, and of both algorithms the least and the largest gain within a tenth of its ends",
                format!(
                    "{}; {good} of 6 in the range; of both, 25 %{} reached, 250 %{} reached",
                    span(&gains, percent),
                    if least { "" } else { " not" },
                    if largest { "" } else { " not" }
                ),
                Verdict::of(good + ends, 8),
            );
            self.used();
        }
        let gains = self.over_fixed(SMALL, Algorithm::RandomFit, throughput);
        let good = count(&gains, |e| Range(0.2, 0.5).meets(e));
        self.add(
            "5.2.2, figure 3a",
            "Random-fit \"still outperforms Fixed by about 20-50 percent\"",
            "every population in the range",
            format!("{}; {good} of 6 in the range", span(&gains, percent)),
            Verdict::of(good, 6),
        );
        let below: Vec<Name> = Name::ALL
            .into_iter()
            .filter(|name| {
                [Algorithm::FirstFit, tight].into_iter().all(|better| {
                    let key = |a| Key::small(*name, a);
                    let gap = self.v.relative(self.lab, key(Algorithm::RandomFit), key(better), throughput);
                    gap.high() < 0.0
                })
            })
            .collect();
        self.add(
            "5.2.2, figure 3a",
            "Random-fit is \"not performing as well as First-fit and Tight-fit\"",
            "throughput clearly below both, in every population",
            format!("below both in {} of 6", below.len()),
            Verdict::of(below.len(), 6),
        );
        let mut clear = 0;
        let mut high = 0;
        for algorithm in self.v.rated() {
            clear += count(&self.over_fixed(SMALL, algorithm, throughput), |e| e.low() > 0.0);
            high += count(&self.shortfall(algorithm), |e| e.high() > -MINOR);
        }
        self.add(
            "5.2.2",
            "\"reputation-based scheduling algorithms significantly increase the average throughput for all of the reliability distributions\"",
            "clearly above Fixed for three algorithms and six populations",
            format!("{clear} of 18"),
            Verdict::of(clear, 18),
        );
        self.add(
            "5.2.2",
            "\"while maintaining a high success rate\"",
            "not (clearly) more than 0.03 below Fixed's",
            format!("{high} of 18"),
            Verdict::of(high, 18),
        );
        for (algorithm, text) in [
            (
                Algorithm::RandomFit,
                "\"The success rate of Random-fit [...] is equal to or greater than that of Fixed\", but for \"minor shortfalls in some cases\"",
            ),
            (tight, "Tight-fit's is too"),
        ] {
            let gaps = self.shortfall(algorithm);
            let short = gaps.iter().filter(|gap| gap.1.high() < 0.0);
            let major = count(&gaps, |e| e.high() < -MINOR);
            self.add(
                "5.2.2, figure 3b",
                text,
                "nowhere (clearly) more than 0.03 below Fixed's",
                format!(
                    "difference {}; below Fixed's: {}",
                    span(&gaps, signed),
                    named(short.map(|gap| gap.0))
                ),
                Verdict::of(6 - major, 6),
            );
        }
        self.causes();
        let first = self.shortfall(Algorithm::FirstFit);
        let off = count(&first, |e| e.low() > MINOR || e.high() < -MINOR);
        self.add(
            "5.2.2, figure 3b",
            "\"First-fit deviates significantly for most of the distributions\"",
            "by (clearly) more than 0.03 in at least four",
            format!("difference {}; more than 0.03 in {off} of 6", span(&first, signed)),
            if off >= 4 { Verdict::Holds } else { Verdict::of(off, 6) },
        );
        let of =
            |values: &Values, names: [Name; 2]| -> Values { values.iter().filter(|v| names.contains(&v.0)).copied().collect() };
        let low = of(&first, [Name::NormalLow, Name::HeavyLow]);
        let high = of(&first, [Name::NormalHigh, Name::HeavyHigh]);
        self.add(
            "5.2.2, figure 3b",
            "First-fit \"can form highly reliable groups for distributions with low average reliability\"",
            "above Fixed's success rate under normal-low and heavy-low",
            format!("difference {}", span(&low, signed)),
            Verdict::of(count(&low, |e| e.low() > 0.0), 2),
        );
        self.add(
            "5.2.2, figure 3b",
            "\"Conversely, it also forms several unreliable groups for high-reliability distributions\"",
            "below Fixed's success rate under normal-high and heavy-high",
            format!("difference {}", span(&high, signed)),
            Verdict::of(count(&high, |e| e.high() < 0.0), 2),
        );
        let tighter = of(&self.shortfall(tight), [Name::NormalHigh, Name::HeavyHigh]);
        // Both fall short: whose rate is the lower deviates further.
        let less: Vec<Estimate> = [Name::NormalHigh, Name::HeavyHigh]
            .map(|name| {
                let key = |a| Key::small(name, a);
                self.v.difference(self.lab, key(Algorithm::FirstFit), key(tight), success)
            })
            .to_vec();
        let further = less.iter().filter(|e| e.high() < 0.0).count();
        let contrary = less.iter().filter(|e| e.low() > 0.0).count();
        self.add(
            "5.2.2, figure 3b",
            "Under high reliability it is First-fit whose success rate deviates, not Tight-fit",
            "First-fit's clearly lower under normal-high and heavy-high; in part if it is in one, or none is clearly lower",
            format!(
                "First-fit {}; Tight-fit {}; First-fit less Tight-fit {}",
                span(&high, signed),
                span(&tighter, signed),
                list(&less.iter().map(|e| signed(*e)).collect::<Vec<_>>())
            ),
            match (further, contrary) {
                (2, _) => Verdict::Holds,
                (0, 1..) => Verdict::Differs,
                _ => Verdict::Partly,
            },
        );
    }

    /// Section 5.2.2, figure 4 and table 2.
    fn sizes(&mut self) {
        let greedy = self.v.greedy();
        let sizes = greedy.map(|algorithm| {
            each(|name| {
                let key = Key::small(name, algorithm);
                self.v.estimate(self.lab, key, |o| o.group_size)
            })
        });
        let smaller: usize = sizes.iter().map(|s| count(s, |e| e.high() < 6.0)).sum();
        self.add(
            "5.2.2, figure 4",
            "\"Both First-fit and Tight-fit are able to form substantially smaller groups satisfying the target LOC requirement\"",
            "at least one member fewer than Fixed's 7",
            format!(
                "members: First-fit {}; Tight-fit {}",
                span(&sizes[0], plain),
                span(&sizes[1], plain)
            ),
            Verdict::of(smaller, 12),
        );
        let more = greedy.map(|algorithm| self.over_fixed(SMALL, algorithm, attempted));
        let good: usize = more.iter().map(|m| count(m, |e| e.low() > 0.1)).sum();
        self.add(
            "5.2.2",
            "\"these algorithms attempt significantly more tasks in each round\"",
            "clearly more than 10 % more",
            format!("First-fit {}; Tight-fit {}", span(&more[0], percent), span(&more[1], percent)),
            Verdict::of(good, 12),
        );
        let gap = |max, algorithm| {
            let key = |algorithm| Key { max, ..Key::small(Name::HeavyHigh, algorithm) };
            self.v.relative(self.lab, key(algorithm), key(Algorithm::Fixed), throughput)
        };
        let rows = self.v.rated().map(|algorithm| {
            let gaps = MAXES.map(|max| format!("{:+.0} %", gap(max, algorithm).mean * 100.0));
            format!("{} {}", algorithm.name(), gaps.join(", "))
        });
        let falls = |algorithm: &Algorithm| MAXES.windows(2).all(|m| gap(m[0], *algorithm).mean <= gap(m[1], *algorithm).high());
        let falling = self.v.rated().iter().filter(|a| falls(a)).count();
        let equal = self.v.rated().iter().filter(|a| gap(MIN, **a).mean.abs() < 0.03).count();
        let rows = format!("over Fixed at Rmax 3, 5, 7, 9: {}", rows.join("; "));
        self.add(
            "5.2.2, table 2",
            "\"As the Rmax parameter is reduced, the gap between the Fixed algorithm and the reputation-based algorithms starts to narrow\"",
            "for each algorithm, from each Rmax to the next",
            rows,
            Verdict::of(falling, 3),
        );
        let least = self.v.rated().map(|a| format!("{} {}", a.name(), percent(gap(MIN, a))));
        self.add(
            "5.2.2, table 2",
            "\"if we set Rmin = Rmax [...] nearly the same throughput\"",
            "within 3 % of Fixed's",
            least.join("; "),
            Verdict::of(equal, 3),
        );
    }
}

/// Cases whose mean deviation from the best static target is at most a limit.
pub struct Within {
    pub all: usize,
    /// Of the distinct ones.
    pub distinct: usize,
    /// Distinct cases whose intervals hold the limit.
    pub straddling: Vec<usize>,
    /// How many there would be if all whose intervals hold the limit were within.
    pub most: usize,
}

/// Deviations of all cases of figures 6 to 8 from the best static targets.
pub struct Deviations {
    pub cases: Vec<Case>,
    pub estimates: Vec<Estimate>,
    /// For each case, the first that is like it to the last digit.
    pub alike: Vec<usize>,
}

impl Deviations {
    pub fn of(lab: &Lab, v: &Variant) -> Self {
        let cases = Variant::cases(&v.greedy(), Measure::Bound);
        let climb = v.reading.climb;
        let estimates = cases.iter().map(|case| v.deviation(lab, case, climb.targeting(case.alpha))).collect();
        let alike = v.distinct(lab, &cases);
        Self { cases, estimates, alike }
    }

    pub fn distinct(&self) -> usize {
        self.alike.iter().enumerate().filter(|(i, j)| i == *j).count()
    }

    pub fn within(&self, limit: f64) -> Within {
        let inside = |i: &usize| self.estimates[*i].mean > -limit;
        let all: Vec<usize> = (0..self.cases.len()).filter(inside).collect();
        let straddles = |e: &Estimate| e.low() <= -limit && -limit <= e.high();
        Within {
            distinct: all.iter().filter(|i| self.alike[**i] == **i).count(),
            straddling: (0..self.cases.len()).filter(|i| straddles(&self.estimates[*i]) && self.alike[*i] == *i).collect(),
            most: self.estimates.iter().filter(|e| e.high() > -limit).count(),
            all: all.len(),
        }
    }

    /// A case in words.
    pub fn name(&self, i: usize) -> String {
        let case = &self.cases[i];
        format!("{} {} {}", case.algorithm.name(), case.name.text(), case.alpha)
    }

    /// Cases in words, a line for each algorithm that has some: "Tight-fit uniform 1 and bimodal 0.5".
    pub fn names(&self, cases: &[usize]) -> Vec<String> {
        let name = |case: &Case| format!("{} {}", case.name.text(), case.alpha);
        let runs = cases.chunk_by(|a, b| self.cases[*a].algorithm == self.cases[*b].algorithm);
        let line = |run: &[usize]| {
            let names: Vec<String> = run.iter().map(|i| name(&self.cases[*i])).collect();
            format!("{} {}", self.cases[run[0]].algorithm.name(), list(&names))
        };
        if cases.is_empty() {
            vec!["none".into()]
        } else {
            runs.map(line).collect()
        }
    }
}

impl Judge<'_> {
    /// The causes of success rates that fall short of Fixed's: each computed again for a server that knows every probability, with groups
    /// of up to seven and of up to fifteen.
    fn causes(&mut self) {
        let mut texts = Vec::new();
        let (mut gone, mut all) = (0, 0);
        for algorithm in [Algorithm::RandomFit, self.v.tight_fit()] {
            for (name, gap) in self.shortfall(algorithm).into_iter().filter(|gap| gap.1.high() < 0.0) {
                let known = [MAX, MAX_GROUP].map(|max| known::under(self.v, name, algorithm, max).shortfall);
                all += 1;
                gone += usize::from(known[1].high() >= 0.0);
                texts.push(format!(
                    "{} {} {}, with known reliabilities {}, and groups of up to {MAX_GROUP} {}",
                    algorithm.name(),
                    name.text(),
                    signed(gap),
                    signed(known[0]),
                    signed(known[1])
                ));
            }
        }
        self.add(
            "5.2.2, figure 3b",
            "Their \"minor shortfalls in some cases are due to the use of approximate worker reliability measures and maximum group sizes\"",
            "each is gone for a server that knows every reliability and may form groups of up to 15",
            if texts.is_empty() { "no shortfalls".to_owned() } else { texts.join("; ") },
            Verdict::of(gone, all),
        );
    }

    /// Section 5.2.3, figure 5.
    fn scale(&mut self) {
        let mut proportional = Vec::new();
        let mut moved = Vec::new();
        let mut relative = Vec::new();
        for algorithm in std::iter::once(Algorithm::Fixed).chain(self.v.rated()) {
            let of = |workers, value: fn(&Outcome) -> f64| {
                each(|name| {
                    let key = Key::new(name, workers, Measure::Bound, algorithm);
                    self.v.estimate(self.lab, key, value)
                })
            };
            let factor = (LARGE / SMALL) as f64;
            let pairs = |value| of(SMALL, value).into_iter().zip(of(LARGE, value));
            proportional.extend(pairs(throughput).map(|((name, small), (_, large))| {
                let ratio = large.mean / small.mean / factor;
                // Both are uncertain: errors of a ratio add up in squares.
                let square = |e: Estimate| (e.margin / e.mean) * (e.margin / e.mean);
                let estimate =
                    Estimate { mean: ratio - 1.0, margin: ratio * (square(small) + square(large)).sqrt(), count: large.count };
                (name, estimate)
            }));
            moved.extend(pairs(success).map(|((name, small), (_, large))| (name, apart(small, large))));
            if algorithm != Algorithm::Fixed {
                let small = self.over_fixed(SMALL, algorithm, throughput);
                let large = self.over_fixed(LARGE, algorithm, throughput);
                let pairs = small.into_iter().zip(large);
                relative.extend(pairs.map(|((name, s), (_, l))| (name, apart(s, l))));
            }
        }
        let estimates = |values: &Values| -> Vec<Estimate> { values.iter().map(|v| v.1).collect() };
        for (text, rule, values, range, show) in [
            (
                "\"Scaling the size of the network up to 1,000 workers causes a proportional increase in the throughput\"",
                "per worker within 5 %, with the whole interval, for four algorithms and six populations",
                &proportional,
                Range(-0.05, 0.05),
                (percent as fn(Estimate) -> String, "throughput per worker"),
            ),
            (
                "\"without affecting success rate much\"",
                "within 0.03, with the whole interval",
                &moved,
                Range(-MINOR, MINOR),
                (signed, "difference"),
            ),
            (
                "\"scaling up the network will have little to no impact on the relative throughput\"",
                "the gain over Fixed within 5 points, with the whole interval",
                &relative,
                Range(-0.05, 0.05),
                (percent, "gain over Fixed, 1,000 less 100 workers:"),
            ),
        ] {
            let split = Split::of(range, &estimates(values));
            self.add(
                "5.2.3, figure 5",
                text,
                rule,
                format!(
                    "{} {}; {} of {} within, {} outside, the others straddle the line",
                    show.1,
                    span(values, show.0),
                    split.within,
                    split.all,
                    split.outside
                ),
                split.verdict(),
            );
        }
    }

    /// Section 5.3.1, figures 6 to 8.
    fn adaptive(&mut self) {
        let deviations = Deviations::of(self.lab, self.v);
        let (two, five) = (deviations.within(0.02), deviations.within(0.05));
        let (distinct, all) = (deviations.distinct(), deviations.cases.len());
        let worst = |i: &usize, j: &usize| {
            let of = |i: usize| deviations.estimates[i].mean;
            of(*i).total_cmp(&of(*j))
        };
        let worst = (0..all).min_by(worst).unwrap_or(0);
        self.add(
            "5.3.1, figures 6-8",
            "The adaptive algorithm's gain \"is very close to the maximum gain possible using a static target value in all instances\"",
            "within 5 %, the widest line that the text itself draws; by its own count 32 of 36 are",
            format!(
                "{} of {all}; furthest: {} {}",
                five.all,
                deviations.name(worst),
                percent(deviations.estimates[worst])
            ),
            Verdict::of(five.all, all),
        );
        for (place, text, within, paper) in [
            (
                "5.3.1, figures 6-8",
                "Of \"36 algorithm/worker-distribution configurations\" it \"deviated [...] by less than 2 percent in 25 cases\"",
                &two,
                25,
            ),
            ("5.3.1, figures 6-8", "\"and by less than 5 percent in 32 cases\"", &five, 32),
        ] {
            self.add(
                place,
                text,
                "at least as many; in part if the cases whose intervals straddle the line could make up for it",
                format!(
                    "{} of {all} ({} of {distinct} distinct ones); {} straddle the line",
                    within.all,
                    within.distinct,
                    within.straddling.len()
                ),
                if within.all >= paper {
                    Verdict::Holds
                } else if within.most >= paper {
                    Verdict::Partly
                } else {
                    Verdict::Differs
                },
            );
        }
        let far: Vec<usize> = (0..all).filter(|i| deviations.estimates[*i].mean < -FAR && deviations.alike[*i] == *i).collect();
        let meant = |i: &usize| {
            let case = &deviations.cases[*i];
            (case.algorithm, case.name) == (Algorithm::FirstFit, Name::NormalLow)
        };
        let low: Vec<(Name, Estimate)> = deviations
            .cases
            .iter()
            .zip(&deviations.estimates)
            .filter(|(case, _)| (case.algorithm, case.name) == (Algorithm::FirstFit, Name::NormalLow))
            .map(|(case, e)| (case.name, *e))
            .collect();
        let there = count(&low, |e| e.mean < -FAR) > 0;
        let elsewhere = far.iter().filter(|i| !meant(i)).count();
        self.add(
            "5.3.1",
            "\"The only meaningful deviation experienced was for the Normal-Low worker distribution using the First-fit algorithm\"",
            "more than 5 % on average: there, and nowhere else; in part if elsewhere, too",
            format!(
                "First-fit normal-low {}; beyond 5 %: {}",
                list(&low.iter().map(|l| percent(l.1)).collect::<Vec<_>>()),
                deviations.names(&far).join("; ")
            ),
            verdict::only(there, elsewhere),
        );
        self.stuck();
    }

    /// Of each algorithm and population, the share of climbs that fall far short of the best static target, over three alphas.
    fn stuck(&mut self) {
        let climb = self.v.reading.climb;
        let share = |algorithm, name| {
            let of = |alpha: f64| {
                let case = Case { name, algorithm, measure: Measure::Bound, alpha };
                self.v.deviations(self.lab, &case, climb.targeting(alpha))
            };
            let all: Vec<f64> = ALPHAS.into_iter().flat_map(of).collect();
            (all.iter().filter(|deviation| **deviation < -FAR).count(), all.len())
        };
        let meant = (Algorithm::FirstFit, Name::NormalLow);
        let others: Vec<(usize, usize)> = self
            .v
            .greedy()
            .iter()
            .flat_map(|a| Name::ALL.map(|name| (*a, name)))
            .filter(|pair| *pair != meant)
            .map(|(algorithm, name)| share(algorithm, name))
            .collect();
        let here = share(meant.0, meant.1);
        let part = |(far, all): (usize, usize)| far as f64 / all as f64;
        let elsewhere: Vec<f64> = others.iter().map(|other| part(*other)).collect();
        let sum = others.iter().fold((0, 0), |sum, other| (sum.0 + other.0, sum.1 + other.1));
        self.add(
            "5.3.1",
            "There, \"the algorithm has a higher likelihood of getting stuck in a local minimum\"",
            "of its runs more fall over 5 % short of the best static target than of any other algorithm and population; in part if more than on \
             average",
            format!(
                "First-fit normal-low {} of {}; all others {} of {}, at most {:.0} % of one",
                here.0,
                here.1,
                sum.0,
                sum.1,
                elsewhere.iter().copied().fold(0.0, f64::max) * 100.0
            ),
            verdict::likelier(part(here), &elsewhere),
        );
    }

    /// Section 5.3.2, figure 9: the ends of the range of alpha.
    fn weights(&mut self) {
        let of = |alpha, value: fn(&Outcome) -> f64| {
            Name::ALL.map(|name| {
                let case = Case { name, algorithm: Algorithm::FirstFit, measure: Measure::Bound, alpha };
                let climb = self.v.reading.climb;
                self.v.of_case(self.lab, &case, climb.targeting(alpha), value)
            })
        };
        let change = |value: fn(&Outcome) -> f64| -> Values {
            let (zero, one) = (of(0.0, value), of(1.0, value));
            let pairs = zero.iter().zip(&one);
            let ratio = |(zero, one): (&Vec<f64>, &Vec<f64>)| {
                let ratios = zero.iter().zip(one).map(|(z, o)| o / z - 1.0);
                Estimate::of(&ratios.collect::<Vec<_>>())
            };
            Name::ALL.into_iter().zip(pairs.map(ratio)).collect()
        };
        let (rates, counts) = (change(success), change(throughput));
        let obeyed = rates.iter().zip(&counts).filter(|(rate, count)| rate.1.high() < 0.0 && count.1.low() > 0.0);
        let obeyed: Vec<Name> = obeyed.map(|(rate, _)| rate.0).collect();
        for (text, rule, values, sign) in [
            (
                "\"an increase in alpha results in a decreasing success rate\"",
                "from alpha 0 to 1 clearly lower; in part if nowhere clearly higher",
                &rates,
                -1.0,
            ),
            ("\"and increasing throughput\"", "from alpha 0 to 1 clearly higher; in part if nowhere clearly lower", &counts, 1.0),
        ] {
            let right = count(values, |e| e.mean * sign > e.margin);
            let wrong = count(values, |e| -e.mean * sign > e.margin);
            self.add(
                "5.3.2, figure 9",
                text,
                rule,
                format!("{}; clearly in {right} of 6, the contrary in {wrong}", span(values, percent)),
                match (right, wrong) {
                    (6, _) => Verdict::Holds,
                    (0, _) => Verdict::Differs,
                    (_, 0) => Verdict::Partly,
                    _ => Verdict::of(usize::from(right > wrong), 2),
                },
            );
        }
        self.add(
            "5.3.2, figure 9",
            "\"This result implies that the gain G is an effective metric for incorporating user preferences\"",
            "under every population alpha 0 brings a clearly higher success rate than alpha 1, and alpha 1 a clearly higher throughput",
            format!("in {} of 6: {}", obeyed.len(), named(obeyed.iter().copied())),
            Verdict::of(obeyed.len(), 6),
        );
    }
}

/// Rounds, from and to, of the phases of the blackout.
pub const BEFORE: (usize, usize) = (STRIKE as usize - 100, STRIKE as usize);
const AT_ONCE: (usize, usize) = (STRIKE as usize, STRIKE as usize + 10);
/// The rounds in which a climb can measure a target and then try another.
const TWO_PERIODS: u32 = 20;
const SOON: (usize, usize) = (STRIKE as usize + 10, STRIKE as usize + 40);
const LATER: (usize, usize) = (STRIKE as usize + 90, STRIKE as usize + 140);
const QUIET: (usize, usize) = (500, 550);
const PROBING: (usize, usize) = (550, 600);
const AT_LAST: (usize, usize) = (700, 1000);

/// The runs of one way to choose targets in a blackout.
pub struct Course<'a>(Vec<&'a Outcome>);

impl<'a> Course<'a> {
    pub fn of(lab: &'a Lab, runs: &[Run]) -> Self {
        Self(runs.iter().map(|run| lab.outcome(run)).collect())
    }

    pub fn outcomes(&self) -> &[&'a Outcome] {
        &self.0
    }

    pub fn mean(&self, (from, to): (usize, usize), value: OfRounds) -> Estimate {
        Estimate::of(&over(&self.0, from, to, value))
    }

    /// The change from one phase to another, run by run.
    fn change(&self, from: (usize, usize), to: (usize, usize), value: OfRounds) -> Estimate {
        let (a, b) = (over(&self.0, from.0, from.1, value), over(&self.0, to.0, to.1, value));
        Estimate::of(&a.iter().zip(&b).map(|(a, b)| b - a).collect::<Vec<_>>())
    }

    /// The same relative to the former.
    fn ratio(&self, from: (usize, usize), to: (usize, usize), value: OfRounds) -> Estimate {
        let (a, b) = (over(&self.0, from.0, from.1, value), over(&self.0, to.0, to.1, value));
        Estimate::of(&a.iter().zip(&b).map(|(a, b)| b / a - 1.0).collect::<Vec<_>>())
    }

    /// How many runs lower their target in the two periods after a round, below its value in that round.
    fn reducing(&self, after: u32) -> usize {
        let after = after as usize;
        let lowers = |outcome: &&&Outcome| {
            let target = |round: usize| outcome.per_round[round].target;
            (after..after + TWO_PERIODS as usize).any(|round| target(round) < target(after - 1))
        };
        self.0.iter().filter(lowers).count()
    }

    /// Whether throughput is clearly higher at last than before.
    pub fn rises(&self) -> bool {
        self.ratio(BEFORE, AT_LAST, series::throughput).low() > 0.0
    }

    /// Before, at once, about 100 rounds later, at last.
    pub fn phases(&self, value: OfRounds) -> String {
        [BEFORE, AT_ONCE, LATER, AT_LAST].map(|phase| plain(self.mean(phase, value))).join(", ")
    }
}

impl Judge<'_> {
    /// Section 5.3.3, figure 10.
    fn blackout(&mut self) {
        let course = |chooser| {
            let runs = self.v.blackout(self.lab, chooser, Measure::Bound);
            Course::of(self.lab, &runs)
        };
        let fixed = course(Chooser::Static);
        let climb = course(Chooser::TargetSearch(self.v.reading.climb, 0.5));
        let (rho, rate) = (series::throughput as OfRounds, series::success as OfRounds);
        let dip = fixed.ratio(BEFORE, (STRIKE as usize, STRIKE as usize + 100), rho);
        self.add(
            "5.3.3, figure 10a",
            "With a static target there is \"a considerable dip in throughput after the blackout\"",
            "by (clearly) more than a tenth over 100 rounds",
            format!("{}; before, at once, 100 rounds later, after round 700: {}", percent(dip), fixed.phases(rho)),
            Verdict::if_holds(dip.high() < -0.1),
        );
        let grown = fixed.change(BEFORE, AT_LAST, series::size);
        self.add(
            "5.3.3, figure 10a",
            "\"it ends up forming very large (and thus fewer) groups in an attempt to satisfy this high\" target",
            "after round 700 clearly within half a member of Rmax; in part if clearly larger than before. The reading was chosen by it",
            format!("members: {}", fixed.phases(series::size)),
            verdict::very_large(fixed.mean(AT_LAST, series::size), grown, MAX),
        );
        self.used();
        let drop = climb.ratio(BEFORE, AT_ONCE, rho);
        self.add(
            "5.3.3, figure 10b",
            "With an adaptive target \"the throughput drops drastically in round 300 (immediately after the blackout)\"",
            "by (clearly) more than a tenth over 10 rounds",
            percent(drop),
            Verdict::if_holds(drop.high() < -0.1),
        );
        let lowered = climb.change(BEFORE, SOON, series::target);
        let (reduced, otherwise) = (climb.reducing(STRIKE), climb.reducing(STRIKE - TWO_PERIODS));
        self.add(
            "5.3.3, figure 10b",
            "\"the system immediately starts compensating for the drop in reliability by reducing\" the target",
            "in nine runs of ten within two periods, 20 rounds; in part if the mean is clearly lower from 10 to 40 rounds after it",
            format!(
                "{reduced} of {} runs (in the 20 rounds before it: {otherwise}); mean from 10 to 40 rounds after it {}; target before, at once, 100 \
                 rounds later, after round 700: {}",
                climb.0.len(),
                signed(lowered),
                climb.phases(series::target)
            ),
            verdict::at_once(reduced, climb.0.len(), lowered),
        );
        let back = climb.ratio(BEFORE, LATER, rho);
        let runs = self.v.kept(self.lab);
        let kept = Course::of(self.lab, &runs);
        let lead = |other: &Course, phase: (usize, usize)| -> Vec<f64> {
            let of = |course: &Course| over(&course.0, phase.0, phase.1, rho);
            of(&climb).into_iter().zip(of(other)).map(|(a, s)| a / s - 1.0).collect()
        };
        let (before, after) = (lead(&fixed, BEFORE), lead(&fixed, AT_LAST));
        let grown: Vec<f64> = before.iter().zip(&after).map(|(b, a)| (1.0 + a) / (1.0 + b) - 1.0).collect();
        let (grown, over_kept) = (Estimate::of(&grown), Estimate::of(&lead(&kept, AT_LAST)));
        self.add(
            "5.3.3, figure 10b",
            "\"The average throughput returns to near preblackout levels approximately 100 rounds later\"",
            "not (clearly) more than a tenth below it; in part if it has risen since the blackout",
            format!("{}: {}", percent(back), climb.phases(rho)),
            if back.high() >= -0.1 {
                Verdict::Holds
            } else {
                Verdict::of(usize::from(climb.change(AT_ONCE, LATER, rho).low() > 0.0), 2)
            },
        );
        let slight = climb.ratio(QUIET, PROBING, rho);
        let higher = climb.change(QUIET, PROBING, series::target);
        let probes = climb.0.iter().filter(|outcome| {
            let target = |round: usize| outcome.per_round[round].target;
            (PROBING.0..PROBING.1).any(|round| target(round) > target(PROBING.0 - 1))
        });
        let probes = probes.count();
        self.add(
            "5.3.3, figure 10b",
            "\"There is a slight drop in the throughput between rounds 550 and 600, because the system is probing for higher\" targets",
            "throughput clearly lower and target clearly higher than from 500 to 550; in part if at least a fifth of the runs probe upwards then",
            format!(
                "throughput {}, target {}; {probes} of {} runs probe upwards",
                percent(slight),
                signed(higher),
                climb.0.len()
            ),
            if slight.high() < 0.0 && higher.low() > 0.0 {
                Verdict::Holds
            } else {
                Verdict::of(usize::from(probes * 5 >= climb.0.len()), 2)
            },
        );
        let rise = climb.ratio(BEFORE, AT_LAST, rho);
        self.add(
            "5.3.3, figure 10b",
            "It \"stabilizes near round 700 at a higher throughput [...] than it was achieving before the blackout\"",
            "clearly higher; in part if not clearly lower",
            percent(rise),
            if rise.low() > 0.0 { Verdict::Holds } else { Verdict::of(usize::from(rise.high() >= 0.0), 2) },
        );
        let rates = (climb.mean(BEFORE, rate), climb.mean(AT_LAST, rate));
        let met = usize::from(fit::BEFORE.meets(rates.0)) + usize::from(fit::AFTER.meets(rates.1));
        self.add(
            "5.3.3",
            "\"(but a considerably lower success rate - 80 percent versus 96 percent)\"",
            "within 0.02 before and 0.03 after",
            format!("{} versus {}", share(rates.1), share(rates.0)),
            Verdict::of(met, 2),
        );
        self.used();
        self.add(
            "5.3.3",
            "\"This experiment clearly demonstrates the value of dynamically updating\" the target",
            "after round 700 throughput is clearly above what it is if the climb keeps the target it had in round 300, and its lead over the \
             static target of figure 10a has clearly grown since; in part if one of both",
            format!(
                "{} over its own target kept; over the static one {} before, {} after round 700, which is {} more",
                percent(over_kept),
                percent(Estimate::of(&before)),
                percent(Estimate::of(&after)),
                percent(grown)
            ),
            Verdict::of(usize::from(over_kept.low() > 0.0) + usize::from(grown.low() > 0.0), 2),
        );
    }

    fn converged(&self, runs: &[Run]) -> Vec<f64> {
        let rounds = |run: &Run| self.lab.outcome(run).converged.unwrap_or(run.rounds);
        runs.iter().map(|run| f64::from(rounds(run))).collect()
    }

    /// Section 5.3.4.
    fn convergence(&mut self) {
        let v = self.v;
        let climb = v.reading.climb;
        let least = climb.least_rounds();
        let earliest = self.converged(&v.climbs(climb)).into_iter().fold(f64::INFINITY, f64::min);
        self.add(
            "5.3.4, table 3",
            "Wait 10 rounds, 5 stationary ones: \"the minimum number of rounds for convergence is 50\"",
            "where the gain never changes. The reading was chosen by it",
            format!("{least}; earliest of all runs {earliest}"),
            Verdict::if_holds(least == 50),
        );
        self.used();
        let by_wait = WAITS.map(|period| {
            let runs = v.climbs(TargetSearch { period, ..climb });
            let gains: Vec<f64> = runs.iter().map(|run| self.lab.outcome(run).gain(0.5)).collect();
            (self.converged(&runs), gains)
        });
        let mean = |values: &[f64]| numbers::estimate(Estimate::of(values), 0);
        let paired = |a: &[f64], b: &[f64]| Estimate::of(&a.iter().zip(b).map(|(a, b)| b - a).collect::<Vec<_>>());
        let sooner = [0, 1].map(|i| paired(&by_wait[i].0, &by_wait[i + 1].0).low() > 0.0);
        self.add(
            "5.3.4",
            "\"Selecting a smaller wait time will cause the average time to convergence to decrease\"",
            "clearly, from 20 to 10 and from 10 to 5 rounds",
            format!("rounds with a wait of 5, 10, 20: {}", by_wait.each_ref().map(|w| mean(&w.0)).join(", ")),
            Verdict::of(sooner.into_iter().filter(|s| *s).count(), 2),
        );
        let loss = paired(&by_wait[1].1, &by_wait[0].1);
        self.add(
            "5.3.4",
            "\"but may result in a loss of average gain due to noisy feedback measures\"",
            "gain clearly lower with a wait of 5 than of 10",
            signed(loss),
            Verdict::if_holds(loss.high() < 0.0),
        );
        let ends = |runs: [Vec<Run>; 3]| {
            let times = runs.each_ref().map(|runs| self.converged(runs));
            let change = paired(&times[0], &times[2]);
            (times.each_ref().map(|t| mean(t)).join(", "), change)
        };
        let parts = [
            ("wait", ends(WAITS.map(|period| v.climbs(TargetSearch { period, ..climb })))),
            (
                "steps of half, once, twice the size",
                ends(GRANULARITIES.map(|granularity| v.climbs(TargetSearch { granularity, ..climb }))),
            ),
            ("3, 5, 8 stationary periods", ends(STATIONARY.map(|stationary| v.climbs(TargetSearch { stationary, ..climb })))),
            ("normal workers around 0.5, deviation 0.05, 0.15, 0.3", ends(DEVIATIONS.map(|deviation| v.spread(deviation)))),
        ];
        let moved = parts.iter().filter(|(_, (_, change))| change.low() > 0.0 || change.high() < 0.0).count();
        let texts = parts.each_ref().map(|(what, (times, _))| format!("{what}: {times}"));
        self.add(
            "5.3.4",
            "\"The time to converge [...] is dependent on several different variables - variance in the underlying client distribution, the wait time [...], the granularity of adjustments, and the number of stationary rounds\"",
            "a clear difference between the ends of what was tried, for each of the four",
            format!("{}; clear for {moved} of 4", texts.join("; ")),
            Verdict::of(moved, 4),
        );
        let (after, end) = v.scale.change();
        let changes = MAGNITUDES.map(|percent| {
            let runs = v.change(percent);
            let noticing = runs.iter().map(|run| self.lab.outcome(run)).filter(|outcome| outcome.restarted.is_some());
            // A run that is not done by the end has needed at least all there was.
            let rounds: Vec<f64> = noticing.map(|o| f64::from(o.resettled.unwrap_or(end) - after)).collect();
            Noticed { runs: rounds.len(), all: runs.len(), rounds: Estimate::of(&rounds) }
        });
        let texts = MAGNITUDES.iter().zip(&changes).map(|(percent, change)| {
            let time = if change.runs == 0 { "no".to_owned() } else { numbers::estimate(change.rounds, 0) };
            format!("{percent} %: {} of {} notice it, {time} rounds", change.runs, change.all)
        });
        self.add(
            "5.3.4",
            "\"the time to converge due to a change in the underlying client distribution will depend on the magnitude of the change\"",
            "of the runs that notice it, clearly different between the least and the greatest change that two or more notice; in part if there \
             is a change that most do not notice",
            texts.collect::<Vec<_>>().join("; "),
            verdict::depends(&changes),
        );
    }

    /// Section 5.4, figure 11.
    fn overhead(&mut self) {
        let growth = |algorithm| -> Values {
            each(|name| {
                let of = |workers| {
                    let key = Key::new(name, workers, Measure::Bound, algorithm);
                    self.v.estimate(self.lab, key, |o| o.evaluations)
                };
                let (small, large) = (of(SMALL), of(LARGE));
                Estimate { mean: large.mean / small.mean, margin: 0.0, count: large.count }
            })
        };
        let factor: fn(Estimate) -> String = |e| format!("{:.1}", e.mean);
        let [first, tight, random] = self.v.rated().map(growth);
        let linear = |values: &Values| count(values, |e| (9.0..11.0).contains(&e.mean));
        let linear = linear(&first) + linear(&random);
        self.add(
            "5.4",
            "\"the theoretical overhead is O(n) for First-fit and Random-fit\"",
            "ten times the workers, 9 to 11 times the calls of the LOC function",
            format!("First-fit {}, Random-fit {}", span(&first, factor), span(&random, factor)),
            Verdict::of(linear, 12),
        );
        // 10 log 1000 / log 100 = 15; the searches for the size do not grow, so less.
        let more = count(&tight, |e| e.mean > 11.0 && e.mean <= 15.0);
        self.add(
            "5.4",
            "\"and O(n log n) for Tight-fit\"",
            "11 to 15 times: 10 log 1,000 / log 100 is 15",
            format!("Tight-fit {}", span(&tight, factor)),
            Verdict::of(more, 6),
        );
        let faster = (0..6).filter(|i| tight[*i].1.mean > 1.1 * first[*i].1.mean.max(random[*i].1.mean)).count();
        self.add(
            "5.4, figure 11",
            "\"the number of calls to the LOC function grows significantly faster for Tight-fit\"",
            "by a tenth more than both others'",
            format!("in {faster} of 6"),
            Verdict::of(faster, 6),
        );
    }

    fn error(&self, algorithm: Algorithm) -> Values {
        each(|name| self.v.estimate(self.lab, Key::small(name, algorithm), |o| o.bound_error))
    }

    fn exact_gain(&self, algorithm: Algorithm) -> Values {
        exact_gain(self.lab, self.v, algorithm)
    }

    /// Section 5.5, table 4 and figure 12.
    fn accuracy(&mut self) {
        let errors = by_spread();
        let rising = errors.iter().filter(|errors| errors.windows(2).all(|pair| pair[0] < pair[1])).count();
        let of = |index: fn(&Vec<f64>) -> Option<&f64>| -> Vec<f64> { errors.iter().filter_map(index).copied().collect() };
        let (none, most) = (of(|errors| errors.first()), of(|errors| errors.last()));
        self.add(
            "5.5",
            "\"as the disparity between the low and high-reliability ratings within a group increases, the lower bound diverges more and more\" from the \
             actual likelihood",
            "the error rises with every step of 0.05 that half of a group's ratings lie above their mean and half below it, for groups of 3, 5 and 7 \
             and means from 0.1 to 0.9",
            format!(
                "in {rising} of {}; at most {:.4} among equals, at most {:.4} in the most different",
                errors.len(),
                none.iter().copied().fold(0.0, f64::max),
                most.iter().copied().fold(0.0, f64::max)
            ),
            Verdict::of(rising, errors.len()),
        );
        let rated = self.v.rated();
        let [first, tight, random] = rated.map(|a| self.error(a));
        let good = count(&random, |e| fit::RANDOM_ERROR.meets(e));
        self.add(
            "5.5, table 4",
            "The bound's error for Random-fit \"was quite high (0.05-0.3)\"",
            "every population in the range",
            format!("{}; {good} of 6 in the range", span(&random, fine)),
            Verdict::of(good, 6),
        );
        self.used();
        let least = count(&first, |e| e.low() <= 0.001);
        self.add(
            "5.5, table 4",
            "First-fit \"had a negligible error\" (a lost sign, then 0.001)",
            "not (clearly) above 0.001 in any population: the lost sign is most likely \"at most\"",
            format!("{}; at most 0.001 in {least} of 6", span(&first, fine)),
            Verdict::of(least, 6),
        );
        let good = count(&tight, |e| fit::TIGHT_ERROR.meets(e));
        self.add(
            "5.5, table 4",
            "\"The error for Tight-fit [...] is still relatively small (0.002-0.09)\"",
            "every population in the range",
            format!("{}; {good} of 6 in the range", span(&tight, fine)),
            Verdict::of(good, 6),
        );
        self.used();
        let middle = (0..6).filter(|i| first[*i].1.mean < tight[*i].1.mean && tight[*i].1.mean < random[*i].1.mean).count();
        self.add(
            "5.5, table 4",
            "\"The error for Tight-fit fell in the middle\"",
            "between First-fit's and Random-fit's in every population",
            format!("in {middle} of 6"),
            Verdict::of(middle, 6),
        );
        let gains = rated.map(|a| self.exact_gain(a));
        let errors: Vec<f64> = [&first, &tight, &random].into_iter().flatten().map(|e| e.1.mean).collect();
        let benefits: Vec<f64> = gains.iter().flatten().map(|e| e.1.mean).collect();
        let correlation = rank_correlation(&errors, &benefits);
        self.add(
            "5.5, figure 12",
            "\"these results show a correlation between the error experienced by an algorithm and the benefit associated with using\" the exact LOC",
            "rank correlation above 0.5 over three algorithms and six populations",
            format!("{correlation:.2}"),
            Verdict::if_holds(correlation > 0.5),
        );
        let top = |values: &Values| -> Vec<Name> {
            let mut order = values.clone();
            order.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
            order.iter().take(2).map(|v| v.0).collect()
        };
        let expected = [Name::Uniform, Name::Bimodal];
        let hits = |values: &Values| top(values).iter().filter(|n| expected.contains(n)).count();
        let (benefit, error) = (hits(&gains[2]), hits(&random));
        self.add(
            "5.5, figure 12",
            "\"the benefit is the highest for the distributions where the error was the worst (uniform and bimodal)\"",
            "these two have the highest benefit, and the worst error, for Random-fit",
            format!("benefit: {}; error: {}", named(top(&gains[2]).into_iter()), named(top(&random).into_iter())),
            Verdict::of(benefit + error, 4),
        );
        for (gains, text, most) in [
            (&gains[1], "\"Tight-fit could improve its throughput by up to 10 percent\"", 0.10),
            (&gains[2], "\"Random-fit could gain up to 35 percent\"", 0.35),
        ] {
            let largest = gains.iter().map(|g| g.1.mean).fold(0.0, f64::max);
            self.add(
                "5.5, figure 12",
                text,
                "the largest within five points; in part if there is one",
                span(gains, percent),
                if (largest - most).abs() <= 0.05 { Verdict::Holds } else { Verdict::of(usize::from(largest > 0.0), 2) },
            );
        }
    }
}

/// The gap of the bound (2) below the exact likelihood, for each group of 3, 5 and 7 and each mean in tenths. Its ratings lie ever further
/// above and below that mean, the middle one on it.
fn by_spread() -> Vec<Vec<f64>> {
    let mut errors = Vec::new();
    for size in [3usize, 5, 7] {
        for mean in (2..=18).step_by(2) {
            // In twentieths; none of the ratings becomes 0 or 1.
            let spreads = 0..mean.min(20 - mean);
            errors.push(spreads.map(|spread| bound_error(size, f64::from(mean) / 20.0, f64::from(spread) / 20.0)).collect());
        }
    }
    errors
}

fn bound_error(size: usize, mean: f64, spread: f64) -> f64 {
    let half = size / 2;
    let ratings: Vec<u64> = (0..size)
        .map(|i| match i {
            _ if i < half => wad(mean + spread),
            _ if i == half => wad(mean),
            _ => wad(mean - spread),
        })
        .collect();
    let of = |value: Option<u64>| value.map_or(f64::NAN, |value| value as f64 / WAD as f64);
    (of(likelihood(&ratings)) - of(likelihood_bound(&ratings))).max(0.0)
}

/// Throughput with the exact likelihood over that with the bound, minus one.
pub fn exact_gain(lab: &Lab, v: &Variant, algorithm: Algorithm) -> Values {
    each(|name| {
        let key = |measure| Key::new(name, SMALL, measure, algorithm);
        v.relative(lab, key(Measure::Exact), key(Measure::Bound), throughput)
    })
}

/// Spearman's, without ties.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |values: &[f64]| -> Vec<f64> {
        let rank = |x: &f64| values.iter().filter(|y| *y < x).count() as f64;
        values.iter().map(rank).collect()
    };
    let n = a.len() as f64;
    let squares: f64 = ranks(a).iter().zip(ranks(b)).map(|(x, y)| (x - y) * (x - y)).sum();
    1.0 - 6.0 * squares / (n * (n * n - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_three_by_hand() {
        // Of ratings 0.7, 0.5, 0.3: exactly two are right with 0.7 x 0.5 x 0.7 + 0.7 x 0.5 x 0.3 + 0.3 x 0.5 x 0.3 = 0.395, three with 0.105.
        // The bound takes 3 (0.105^(2/3) 0.105^(1/3)) = 0.315 for two and 0.105 for three.
        assert!((bound_error(3, 0.5, 0.2) - 0.08).abs() < 1e-6, "{}", bound_error(3, 0.5, 0.2));
        assert!(bound_error(3, 0.5, 0.0) < 1e-6);
        // Nine means for each of three sizes, the middle one with the most spreads.
        let errors = by_spread();
        assert_eq!(errors.len(), 27);
        assert_eq!((errors[0].len(), errors[4].len(), errors[8].len()), (2, 10, 2));
    }

    #[test]
    fn rank_correlation_by_hand() {
        let up = [1.0, 2.0, 5.0, 9.0];
        assert_eq!(rank_correlation(&up, &[0.1, 0.2, 0.3, 0.4]), 1.0);
        assert_eq!(rank_correlation(&up, &[4.0, 3.0, 2.0, 1.0]), -1.0);
        // Two neighbours exchanged: 1 - 6 x 2 / (4 x 15).
        assert!((rank_correlation(&up, &[2.0, 1.0, 3.0, 4.0]) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn cases_straddle_the_line_their_interval_holds() {
        let estimate = |mean, margin| Estimate { mean, margin, count: 6 };
        let case = Case { name: Name::Uniform, algorithm: Algorithm::FirstFit, measure: Measure::Bound, alpha: 0.5 };
        let deviations = Deviations {
            cases: vec![case; 4],
            estimates: vec![estimate(-0.01, 0.005), estimate(-0.015, 0.01), estimate(-0.03, 0.02), estimate(-0.03, 0.02)],
            // The last is the third once more.
            alike: vec![0, 1, 2, 2],
        };
        let within = deviations.within(0.02);
        assert_eq!((within.all, within.distinct, within.most), (2, 2, 4));
        assert_eq!(within.straddling, [1, 2]);
        assert_eq!(deviations.distinct(), 3);
    }
}
