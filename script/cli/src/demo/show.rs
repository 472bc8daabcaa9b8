//! The report as tables.

use comfy_table::Table;

use super::Report;
use crate::table::table;

impl Report {
    /// Prints it for people.
    pub fn print(&self) {
        let show = |table: Table| println!("{table}\n");
        show(self.tasks_table());
        self.print_waits();
        show(self.nodes_table());
        show(self.gas_table());
        show(self.money_table());
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
            ("the contract's balance", &self.contract_balance_wei),
        ] {
            money.add_row([what, amount]);
        }
        money
    }
}
