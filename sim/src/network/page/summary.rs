//! The conclusions from the figures, in sentences that depend on them.

use std::fmt::Write;

use super::{attack, choices, contract, node_share, rule_text, show, signed, stake_share, without_h};
use crate::network::policy::Merit;
use crate::network::study::{merit_name, scenarios, Findings, Rule, Scale, DEFENCES, KICKOUT, LOAD};
use crate::network::Options;
use crate::numbers::thousands;
use crate::statistics::Estimate;

pub(super) fn write(page: &mut String, found: &Findings, options: &Options) {
    let of = Said { found, scale: &options.scale };
    of.size(page);
    of.reliability(page);
    of.exclusion(page);
    of.recommended(page);
    of.choosing(page);
    of.income(page);
    of.splitting(page, options.seed);
    of.kickout(page);
    of.search(page);
    super::policies::summary(page, found);
    super::validation::summary(page, found);
}

struct Said<'a> {
    found: &'a Findings,
    scale: &'a Scale,
}

impl Said<'_> {
    /// A measure of the contract's choice at the usual load.
    fn get(&self, id: &str) -> Estimate {
        self.found.results.get(&contract(LOAD), id)
    }

    /// A difference between arrangements, with the interval that holds for all that the summary makes.
    fn difference(&self, name: &str, from: &str, id: &str) -> Estimate {
        // H, the recommended rule in every scenario, W against uniform and QoS, and the contract's search against all.
        let comparisons = 1 + scenarios(self.scale).len() + 2 + 2;
        self.found.results.difference(name, from, id).among(comparisons)
    }

    /// How much all of it rests on.
    fn size(&self, page: &mut String) {
        let (scale, results) = (self.scale, &self.found.results);
        let split = scale.splits.iter().max().copied().unwrap_or_default();
        let _ = writeln!(
            page,
            "From {} runs with {} tasks in all, each of {} to {} nodes, with {} to {} seeds. Nodes do not adapt to their income, cheats do \
             not collude, and no network was larger. The results hold for these runs, and a recommendation is the best of the settings that \
             were tried, no more.\n",
            thousands(results.runs() as u64),
            thousands(results.tasks),
            thousands(u64::from(scale.nodes / 2)),
            thousands(u64::from(scale.sybil_nodes + split)),
            scale.grid_seeds,
            scale.seeds,
        );
    }

    fn reliability(&self, page: &mut String) {
        let (usual, load) = (contract(LOAD), f64::from(LOAD) / 1e3);
        let h = self.difference(&usual, &without_h(LOAD), "failed");
        let verdict = |e: Estimate| match () {
            () if e.high() < 0.0 => "H prevents failures",
            () if e.low() > 0.0 => "H causes failures",
            () => "H makes no difference that these runs can show",
        };
        let _ = writeln!(
            page,
            "- **{}.** At load {load}, {} % of tasks fail with it and {} % without ({} points).",
            verdict(h),
            show(self.get("failed")),
            show(self.found.results.get(&without_h(LOAD), "failed")),
            signed(h)
        );
    }

    fn exclusion(&self, page: &mut String) {
        let _ = writeln!(
            page,
            "- **Exclusion under the default rule is short**: median {} s, the longest of a run {} s. Dead nodes are excluded {} % of their time, and broken ones {} %.",
            show(self.get("exclusion50")),
            show(self.get("exclusion-max")),
            show(self.get("out-dead")),
            show(self.get("out-broken")),
        );
    }

    fn recommended(&self, page: &mut String) {
        match &self.found.recommended {
            Some(rule) => {
                let gains: Vec<String> = scenarios(self.scale)
                    .iter()
                    .map(|(name, ..)| {
                        let d = self.difference(&rule.name(name), &Rule::DEFAULT.name(name), "failed");
                        format!("{name} {}", signed(d))
                    })
                    .collect();
                let _ = writeln!(
                    page,
                    "- **Recommended rule: {}.** It needs only the contract's parameters (`penaltyPpm` {}, `boostPpm` {}, `exclusionPpm` {}, \
                     `tau` {}). Failed tasks against the default rule, in points: {}. In usual circumstances steady nodes are excluded {} % of their time, \
                     flaky ones {} % (by default: {} and {} %).{}{}",
                    rule_text(rule),
                    rule.penalty,
                    rule.boost,
                    rule.threshold,
                    rule.tau,
                    gains.join(", "),
                    show(self.found.results.get(&rule.name("usual"), "out-steady")),
                    show(self.found.results.get(&rule.name("usual"), "out-flaky")),
                    show(self.found.results.get(&Rule::DEFAULT.name("usual"), "out-steady")),
                    show(self.found.results.get(&Rule::DEFAULT.name("usual"), "out-flaky")),
                    if rule.penalty >= rule.threshold {
                        let from = rule.threshold as f64 / rule.penalty as f64;
                        format!(" A timeout excludes only a node whose H was below {from:.2} before it: nobody by a first one.")
                    } else {
                        String::new()
                    },
                    if self.scale.grid.tau.last() == Some(&rule.tau) { " Its tau is the longest that was tried." } else { "" },
                );
            }
            None => {
                let _ = writeln!(
                    page,
                    "- **No rule of the grid is better than the default one** without costing steady nodes or waiting time."
                );
            }
        }
    }

    fn choosing(&self, page: &mut String) {
        let usual = contract(LOAD);
        let qos = format!("choice/{LOAD}/{}", merit_name(Some(Merit::Qos)));
        let uniform = format!("choice/{LOAD}/{}", merit_name(Some(Merit::Uniform)));
        let (against_chance, of_qos) = (self.difference(&usual, &uniform, "failed"), self.difference(&qos, &usual, "failed"));
        let compared = |e: Estimate| match () {
            () if e.high() < 0.0 => "fails less",
            () if e.low() > 0.0 => "fails more",
            () => "fails no differently, as far as these runs can show,",
        };
        let failures: Vec<String> = choices()
            .iter()
            .map(|(heading, name)| format!("{heading} {:.2}", self.found.results.get(name, "failed").mean))
            .collect();
        let _ = writeln!(
            page,
            "- **A network that chooses by W {} than one that chooses uniformly** ({} points), **and one that chooses by QoS alone {} than \
             W** ({} points). Failed tasks (%): {}.",
            compared(against_chance),
            signed(against_chance),
            compared(of_qos),
            signed(of_qos),
            failures.join(", "),
        );
    }

    fn income(&self, page: &mut String) {
        let spread = |id: &str| -> Vec<String> {
            choices()
                .iter()
                .filter(|(h, _)| h != "W (exact)")
                .map(|(h, name)| format!("{h} {:.2}", self.found.results.get(name, id).mean))
                .collect()
        };
        let (speed, stake) =
            (self.get("speed5").mean - self.get("speed1").mean, self.get("stake5").mean - self.get("stake1").mean);
        let _ = writeln!(
            page,
            "- **A node's income depends on its {} more than on its {}.** The fastest fifth earns, relative to the mean: {}. The fifth \
             with the highest stakes: {}. A node's income is bounded by the number of tasks that it can do; the choice decides only between \
             idle nodes.",
            if speed > stake { "speed" } else { "stake" },
            if speed > stake { "stake" } else { "speed" },
            spread("speed5").join(", "),
            spread("stake5").join(", "),
        );
    }

    /// An attacker's gain by splitting a stake over many nodes, rule by rule, and beside it the rule's own effect.
    fn splitting(&self, page: &mut String, seed: u64) {
        let scale = self.scale;
        let shown = |merit, n| self.found.results.get(&attack(merit, n), "share-sybil");
        let at = |merit, n| shown(merit, n).among(2 * DEFENCES.len());
        let (few, many) = (scale.splits[0], scale.splits[scale.splits.len() - 1]);
        let pays = DEFENCES.iter().filter(|merit| at(**merit, many).low() > at(**merit, few).high()).count();
        let shares: Vec<String> = DEFENCES
            .iter()
            .map(|merit| format!("{}: {} and {}", merit_name(*merit), show(shown(*merit, few)), show(shown(*merit, many))))
            .collect();
        let means = |n: u32| DEFENCES.map(|merit| at(merit, n).mean);
        let ratio = |values: [f64; DEFENCES.len()]| {
            values.iter().fold(0.0f64, |a, b| a.max(*b)) / values.iter().fold(f64::INFINITY, |a, b| a.min(*b))
        };
        let growth: Vec<f64> = means(many).iter().zip(means(few)).map(|(many, few)| many / few).collect();
        let least = growth.iter().fold(f64::INFINITY, |a, b| a.min(*b));
        let between = ratio(means(many));
        let own = stake_share(scale, seed);
        let beyond: Vec<&str> =
            DEFENCES.iter().filter(|merit| at(**merit, many).low() > own).map(|merit| merit_name(*merit)).collect();
        let [own_few, own_many] = [few, many].map(|n| node_share(scale, n));
        let [few, many] = [few, many].map(|n| thousands(n.into()));
        let _ = writeln!(
            page,
            "- **Splitting a stake pays under {}; capacity counts for {} than the rule.** An attacker has {own:.1} % of all stake. \
             A node does one task at a time, and the attacker's are {:.1} and {:.1} % of all nodes. From {few} to \
             {many} nodes their share grows at least {least:.0}-fold under any of the rules; between the rules, on {many} nodes, it differs by a \
             factor of {between:.1}. With {many} nodes they get more than their share of the stake under {}. The hardware behind each node and \
             the least stake per node bound them. Their share of the starts (%), on {few} node and on {many} nodes:\n  - {}",
            if pays == DEFENCES.len() { "every rule".into() } else { format!("{pays} of {} rules", DEFENCES.len()) },
            if least > between { "more" } else { "less" },
            own_few,
            own_many,
            if beyond.is_empty() { "none".into() } else { beyond.join(", ") },
            shares.join("\n  - "),
        );
    }

    fn kickout(&self, page: &mut String) {
        let long = |id: &str| self.found.results.get("long", id);
        let milder = |id: &str| self.found.results.get("long-kickout", id);
        let (parameter, limit) = KICKOUT;
        let _ = writeln!(
            page,
            "- **Kickout hits {} bad nodes and {} others** in the long runs; of the others {} are slow, {} steady and {} flaky. A node that is \
             always the last of its group has a mean score of exactly 2, so that a single 0 brings it below the limit. With a limit of {} \
             (`{parameter}` {limit}) it is {} bad nodes and {} others. Dead and broken nodes still get {} and {} % of the starts (then {} and {} %).",
            show(long("kicked-bad")),
            show(long("kicked-honest")),
            show(long("kicked-slow")),
            show(long("kicked-steady")),
            show(long("kicked-flaky")),
            limit as f64 / 1e3,
            show(milder("kicked-bad")),
            show(milder("kicked-honest")),
            show(long("share-dead")),
            show(long("share-broken")),
            show(milder("share-dead")),
            show(milder("share-broken")),
        );
    }

    fn search(&self, page: &mut String) {
        let usual = contract(LOAD);
        let name = format!("choice/{LOAD}/W (exact)");
        let _ = writeln!(
            page,
            "- **The price of the contract's bounded search.** If W is chosen exactly, by looking at everybody, failed tasks change by {} \
             points and starts where all models are by {} points. {} of 1,000 draws stay undecided and are made again a block later.",
            signed(self.difference(&name, &usual, "failed")),
            signed(self.difference(&name, &usual, "local")),
            show(self.get("redrawn")),
        );
    }
}
