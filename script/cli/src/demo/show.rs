//! The report as tables.

use alloy::primitives::{utils::format_ether, U256};
use comfy_table::Table;
use muster_client::observe::print;
use muster_protocol::flow::create::{REPLICATED, SAMPLED};

use super::{
    judged::{Setting, Validation},
    records::{OfPolicy, Spread},
    report::Report,
};
use crate::table::table;

impl Report {
    /// Prints it for people.
    pub fn print(&self) {
        let show = |table: Table| print(format_args!("{table}\n"));
        show(self.tasks_table());
        self.print_waits();
        show(self.nodes_table());
        if let Some(validation) = &self.validation {
            show(validation.policies_table());
            validation.print();
            show(validation.table());
        }
        show(self.gas_table());
        show(self.money_table());
        self.print_balance();
        print(format_args!("Muster is at {:?}.", self.address));
    }

    fn tasks_table(&self) -> Table {
        let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / self.tasks.max(1) as f64);
        let mut tasks = table(1, &["tasks", "number", "share"]);
        for (what, count) in [
            ("created", self.tasks),
            ("dispatched at once", self.dispatched),
            ("queued", self.queued),
            ("turned away by the full queue", self.turned_away),
            ("finished", self.finished),
            ("timed out", self.timed_out),
            ("error reported by the node", self.errors_reported),
            ("aborted: evicted from the queue", self.evicted),
            ("aborted: cancelled by the creator", self.cancelled),
            ("aborted: queued for too long", self.outlived),
            ("aborted: their node was slashed out", self.orphaned),
            ("three nodes had it, and no two answers alike", self.undecided),
        ] {
            tasks.add_row([what, &count.to_string(), &share(count)]);
        }
        // No part of those that were created.
        tasks.add_row(["refused by the contract", &self.refused.to_string(), "-"]);
        tasks
    }

    fn print_waits(&self) {
        // A task that is cancelled before its draw is none of these.
        if self.dispatched + self.queued + self.turned_away == self.tasks {
            print("Tasks dispatched, queued and turned away are all that were created; so are those turned away and the ends below.\n");
        }
        let wait = &self.waiting_seconds;
        print(format_args!(
            "{} nodes, {} seconds on chain. From creation to start: median {} s, 95 % within {} s, at most {} s;",
            self.nodes, self.simulated_seconds, wait.median, wait.p95, wait.max
        ));
        let wait = &self.queue_seconds;
        print(format_args!(
            "of the {} that came out of the queue: median {} s, 95 % within {} s, at most {} s.",
            wait.count, wait.median, wait.p95, wait.max
        ));
        let (times, out) = (self.exclusions, self.kicked_out);
        print(format_args!("Nodes fell below the threshold of H {times} times; {out} were kicked out.\n"));
    }

    fn nodes_table(&self) -> Table {
        let mut nodes = table(2, &["node", "GPU", "tasks", "share of work", "share of weight"]);
        for node in &self.top_nodes {
            nodes.add_row([
                node.node.to_string(),
                node.gpu.clone(),
                node.tasks.to_string(),
                format!("{:.1} %", node.work_percent),
                format!("{:.1} %", node.weight_percent),
            ]);
        }
        nodes
    }

    fn gas_table(&self) -> Table {
        let mut gas = table(1, &["gas of", "times", "min", "median", "max"]);
        for (operation, spread) in &self.gas {
            gas.add_row([
                operation.clone(),
                spread.count.to_string(),
                spread.min.to_string(),
                spread.median.to_string(),
                spread.max.to_string(),
            ]);
        }
        gas
    }

    fn money_table(&self) -> Table {
        let mut money = table(1, &["wei", "amount"]);
        for (what, amount) in [
            ("stakes", &self.stake_wei),
            ("escrow", &self.escrow_wei),
            ("credit", &self.credit_wei),
            ("treasury", &self.treasury_wei),
            ("reserve for validations", &self.reserve_wei),
            ("burnt", &self.burnt_wei),
            ("the contract's balance", &self.contract_balance_wei),
        ] {
            money.add_row([what, amount]);
        }
        money
    }

    /// Whether all that the contract holds has its place.
    fn print_balance(&self) {
        let wei = |amount: &str| amount.parse::<U256>().unwrap_or_default();
        let parts = [&self.stake_wei, &self.escrow_wei, &self.credit_wei, &self.treasury_wei, &self.reserve_wei, &self.burnt_wei];
        let sum = parts.iter().map(|part| wei(part)).sum();
        match wei(&self.contract_balance_wei).checked_sub(sum) {
            Some(more) if more.is_zero() => print("The parts add up to the balance: no wei was lost or made.\n"),
            Some(more) => {
                print(format_args!("The parts and {more} wei that were forced upon the contract add up to its balance.\n"));
            }
            None => print("The parts are more than the balance: the books are wrong.\n"),
        }
    }
}

/// An amount in ether, rounded down to a billionth.
fn ether(wei: &str) -> String {
    let unit = U256::from(1_000_000_000);
    short(&format_ether(wei.parse::<U256>().unwrap_or_default() / unit * unit)).to_string()
}

/// A decimal without the zeros at its end.
fn short(decimal: &str) -> &str {
    decimal.trim_end_matches('0').trim_end_matches('.')
}

impl Validation {
    /// The basis of the figures below.
    fn print(&self) {
        print(self.said());
    }

    fn said(&self) -> String {
        let setting = |Setting { name, value, default }: &Setting| {
            let instead = if value == default { String::new() } else { format!(" (by default {default})") };
            format!("{name} is {value}{instead}")
        };
        let settings: Vec<String> = self.settings.iter().map(setting).collect();
        let mut said = format!("On this chain {}.\n", settings.join(", "));
        if self.settings.iter().any(|setting| setting.value != setting.default) {
            said += "As the owner, the demonstration has changed some of these, so that so short a run shows something.\n";
        }
        for of in &self.policies {
            for (count, why) in [
                (of.too_dear, "their fee is above the highest of validated tasks"),
                (of.too_many_images, "they are of more images than an answer has hashes for"),
                (of.too_few_nodes, "fewer than three nodes could run them"),
            ] {
                if count > 0 {
                    said +=
                        &format!("{count} more were picked for policy {} and run on a single node, because {why}.\n", of.policy);
                }
            }
        }
        if let Some(rank) = self.rank_correlation {
            said += &format!("Over honest nodes with scores, the rank correlation of Q_long with speed is {rank:.2}.\n");
        }
        said
    }

    /// The policies side by side.
    fn policies_table(&self) -> Table {
        let headings = ["by policy", "0: one node", "1: sampled", "2: three at once"];
        let mut policies = table(1, &headings);
        let mut row = |what: &str, cell: &dyn Fn(&OfPolicy) -> Option<String>| {
            let cells = self.policies.iter().map(|of| cell(of).filter(|_| of.tasks > 0).unwrap_or_else(|| "-".into()));
            policies.add_row(std::iter::once(what.to_string()).chain(cells));
        };
        let spread = |values: &[u64]| {
            let spread = Spread::of(values.to_vec());
            format!("{} / {}", spread.median, spread.p95)
        };
        let wei = |wei: U256| ether(&wei.to_string());
        let groups = |of: &OfPolicy, text: String| (of.policy > 0).then_some(text);
        let sampled = |of: &OfPolicy, text: String| (of.policy == SAMPLED).then_some(text);
        row("tasks created", &|of| Some(of.tasks.to_string()));
        row("finished", &|of| Some(of.finished.to_string()));
        row("finished with a cheat's answer", &|of| Some(of.wrong.to_string()));
        row("seconds to the start, median / 95 %", &|of| Some(spread(&of.waits)));
        row("seconds to the answer, median / 95 %", &|of| Some(spread(&of.spans)));
        row("times a node was kept for others, or for the draw", &|of| (of.policy == REPLICATED).then(|| of.kept.to_string()));
        row("committed to and not sampled", &|of| sampled(of, of.trusted.to_string()));
        row("groups judged", &|of| groups(of, of.judged.to_string()));
        row("- with answers alike", &|of| groups(of, of.agreed.to_string()));
        row("- by the first node's alone", &|of| sampled(of, of.alone.to_string()));
        row("- with all different", &|of| groups(of, of.differing.to_string()));
        row("- without any that counts", &|of| groups(of, of.unanswered.to_string()));
        row("groups that were scored", &|of| groups(of, of.scored.to_string()));
        row("slashes", &|of| groups(of, of.slashes.to_string()));
        row("burnt (ether)", &|of| groups(of, wei(of.burnt)));
        row("paid to nodes (ether)", &|of| Some(wei(of.paid)));
        row("- of that to cheats (ether)", &|of| Some(wei(of.paid_to_cheats)));
        row("into the reserve (ether)", &|of| groups(of, wei(of.saved)));
        row("out of the reserve, to groups (ether)", &|of| groups(of, wei(of.drawn)));
        row("out of fees, to callers of validators (ether)", &|of| groups(of, wei(of.drivers)));
        row("gas of a task but for draws, median", &|of| Some(of.gas_of_a_task.to_string()));
        row("- of one that a group had", &|of| groups(of, of.gas_of_a_judged_task.to_string()));
        policies
    }

    /// The nodes that were judged.
    fn table(&self) -> Table {
        let mut nodes = table(2, &["node", "GPU", "speed", "right", "otherwise", "scores", "Q_long", "slashed (ether)"]);
        for node in &self.nodes {
            let scores: Vec<String> = node.scores.iter().map(u64::to_string).collect();
            let kind = match (node.cheats, node.left) {
                (true, true) => "cheats, left".to_string(),
                (true, false) => "cheats".to_string(),
                (false, _) => format!("{:.2}", node.speed_percent as f64 / 100.0),
            };
            nodes.add_row([
                node.node.to_string(),
                node.gpu.clone(),
                kind,
                node.right.to_string(),
                node.otherwise.to_string(),
                scores.join(" "),
                format!("{:.2}", node.q_long),
                if node.slashed_wei == "0" { "-".into() } else { ether(&node.slashed_wei) },
            ]);
        }
        nodes
    }
}
