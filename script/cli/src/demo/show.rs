//! The report as tables.

use comfy_table::Table;
use ethers::{types::U256, utils::format_ether};

use super::{Report, Setting, Validation};
use crate::table::table;

impl Report {
    /// Prints it for people.
    pub fn print(&self) {
        let show = |table: Table| println!("{table}\n");
        show(self.tasks_table());
        self.print_waits();
        show(self.nodes_table());
        if let Some(validation) = &self.validation {
            validation.print();
            show(validation.table());
        }
        show(self.gas_table());
        show(self.money_table());
        self.print_balance();
        println!("Muster is at {:?}.", self.address);
    }

    fn tasks_table(&self) -> Table {
        let share = |count: u64| format!("{:.1} %", 100.0 * count as f64 / self.tasks.max(1) as f64);
        let mut tasks = table(1, &["tasks", "number", "share"]);
        for (what, count) in [
            ("created", self.tasks),
            ("dispatched at once", self.dispatched),
            ("queued", self.queued),
            ("finished", self.finished),
            ("timed out", self.timed_out),
            ("error reported by the node", self.errors_reported),
            ("aborted: evicted from the queue", self.evicted),
            ("aborted: cancelled by the creator", self.cancelled),
            ("aborted: queued for too long", self.outlived),
            ("aborted: their node was slashed out", self.orphaned),
            ("validated, and no two answers alike", self.undecided),
            ("refused, because no node could run them", self.refused),
        ] {
            tasks.add_row([what, &count.to_string(), &share(count)]);
        }
        tasks
    }

    fn print_waits(&self) {
        let wait = &self.waiting_seconds;
        println!(
            "{} nodes, {} seconds on chain. From creation to start: median {} s, 95 % within {} s, at most {} s;",
            self.nodes, self.simulated_seconds, wait.median, wait.p95, wait.max
        );
        let wait = &self.queue_seconds;
        println!(
            "of the {} that came out of the queue: median {} s, 95 % within {} s, at most {} s.",
            wait.count, wait.median, wait.p95, wait.max
        );
        println!("Nodes fell below the threshold of H {} times; {} were kicked out.\n", self.exclusions, self.kicked_out);
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
        let wei = |amount: &str| U256::from_dec_str(amount).unwrap_or_default();
        let parts = [&self.stake_wei, &self.escrow_wei, &self.credit_wei, &self.treasury_wei, &self.reserve_wei, &self.burnt_wei];
        let sum = parts.iter().fold(U256::zero(), |sum, part| sum + wei(part));
        match wei(&self.contract_balance_wei).checked_sub(sum) {
            Some(more) if more.is_zero() => println!("The parts add up to the balance: no wei was lost or made.\n"),
            Some(more) => println!("The parts and {more} wei that were forced upon the contract add up to its balance.\n"),
            None => println!("The parts are more than the balance: the books are wrong.\n"),
        }
    }
}

/// An amount as people read it.
fn ether(wei: &str) -> String {
    format!("{} ether", short(&format_ether(U256::from_dec_str(wei).unwrap_or_default())))
}

/// A decimal without the zeros at its end.
fn short(decimal: &str) -> &str {
    decimal.trim_end_matches('0').trim_end_matches('.')
}

impl Validation {
    /// What came of the tasks that could be validated.
    fn print(&self) {
        println!("{}", self.said());
    }

    fn said(&self) -> String {
        let setting = |Setting { name, value, default }: &Setting| {
            let instead = if value == default { String::new() } else { format!(" (by default {default})") };
            format!("{name} is {value}{instead}")
        };
        let settings: Vec<String> = self.settings.iter().map(setting).collect();
        let mut said = format!("{} tasks could be validated. On this chain {}.\n", self.tasks, settings.join(", "));
        if self.settings.iter().any(|setting| setting.value != setting.default) {
            said += "The demonstration has set, as the owner, what differs, so that a run as short as this shows something.\n";
        }
        for (count, why) in [
            (self.too_dear, "their fee is above what the least stake covers"),
            (self.too_many_images, "they are of more images than an answer has hashes for"),
        ] {
            if count > 0 {
                said += &format!("{count} more were picked and run on a single node, because {why}.\n");
            }
        }
        said += &format!("{} were not sampled; {} were, and judged with two more nodes:\n", self.trusted, self.judged);
        said += &format!(
            "{} with answers alike, {} by the first node's alone, {} with all different, {} without any.\n",
            self.agreed, self.alone, self.differing, self.unanswered
        );
        let cost = &self.cost;
        said += &format!(
            "It took {} gas in all; a validated task {} (median) beyond its first commitment and the draw.\n",
            cost.gas, cost.gas_of_a_validation
        );
        said += &format!(
            "Fees left {} in the reserve; groups took {} out of it,\nand whoever had validators called {}.\n",
            ether(&cost.saved_wei),
            ether(&cost.drawn_wei),
            ether(&cost.drivers_wei)
        );
        said += &match self.slashes {
            0 => "Nobody was slashed.\n".to_string(),
            n => format!("{n} slashes took {}, which are burnt.\n", ether(&self.slashed_wei)),
        };
        said
    }

    /// The nodes that were judged.
    fn table(&self) -> Table {
        let mut nodes = table(2, &["node", "GPU", "speed", "right", "otherwise", "scores", "Q_long", "slashed"]);
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
