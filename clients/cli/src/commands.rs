//! The commands.

use alloy::primitives::{Address, U256};
use clap::{Parser, Subcommand};

use crate::options::{address, amount, Options};
use crate::{admin, earnings, exporter, keepalive, keeper, node, stores, task, watch, why};

/// Muster from the command line: run a node, have tasks run, keep a network going.
///
/// Exit codes: 0 done, 1 another failure, 2 wrong usage, 3 refused by the contract.
/// 4 no node answers, they contradict each other, or are of another chain.
/// 5 not mined in time (run the same again: nothing is paid twice), or gas costs more than --max-gas-price.
/// 6 no key, 7 the task ended without a result.
#[derive(Parser)]
#[command(name = "muster", version, max_term_width = 120)]
pub struct Cli {
    #[command(flatten)]
    pub options: Options,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// A node and its stake
    #[command(subcommand)]
    Node(Node),
    /// Tasks
    #[command(subcommand)]
    Task(task::Command),
    /// Where an account's results and inputs can be read
    #[command(subcommand)]
    Stores(stores::Command),
    /// The network as it is
    Network,
    /// Events as they come, of the contract or of one node or task
    Watch(watch::Watch),
    /// Make due calls for anybody, and earn the start fees of overdue tasks
    Keeper(keeper::Keeper),
    /// When the contract's programs expire; renew those that soon will
    Keepalive(keepalive::Keepalive),
    /// Commands of a network's owner, and those that put a proposal into effect, which anybody may
    Admin(admin::Admin),
    /// Serve metrics for owners: queue, draws, programs, proposals, reserve, nodes of the chain
    Exporter(exporter::Exporter),
    /// Keys in encrypted files
    #[command(subcommand)]
    Account(Account),
    /// Print a script that completes commands in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Subcommand)]
pub enum Account {
    /// Make a key
    New {
        /// Its name
        name: String,
    },
    /// Encrypt the key that PRIVATE_KEY holds
    Import {
        /// Its name
        name: String,
    },
    /// The keys there are
    List,
    /// The address and the balance of the key that the other flags choose
    Show,
}

#[derive(Subcommand)]
pub enum Node {
    /// Stake, and join with a GPU
    Join(node::Join),
    /// A node's state
    Status(node::Which),
    /// Why a node gets the work it gets
    Why(why::Why),
    /// Take no tasks; while busy, once the task has ended
    Pause,
    /// Take tasks again
    Resume,
    /// Add to the stake
    RaiseStake {
        /// The amount, a whole number of stake units
        #[arg(value_parser = amount)]
        amount: U256,
    },
    /// A key that works for the node, but has no access to the operator's funds
    #[command(subcommand)]
    Worker(node::Worker),
    /// Say which models the node holds
    Models(node::Models),
    /// Leave; the stake is returned after the unbonding period
    Quit,
    /// Have the contract pay the account's credit
    Withdraw {
        /// The account to pay [default: the key's own]
        #[arg(long, value_parser = address)]
        to: Option<Address>,
    },
    /// A node's earnings and costs, task by task
    Earnings(earnings::Earnings),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    fn check(command: &clap::Command, everywhere: &[String]) {
        for argument in command.get_arguments() {
            let id = argument.get_id().to_string();
            assert!(
                !everywhere.contains(&id),
                "{}: {id} is a flag of every command, too, and of another type",
                command.get_name()
            );
        }
        command.get_subcommands().for_each(|command| check(command, everywhere));
    }

    #[test]
    fn no_command_has_an_argument_of_the_name_of_a_flag_of_all() {
        let cli = Cli::command();
        let everywhere: Vec<String> = cli.get_arguments().map(|argument| argument.get_id().to_string()).collect();
        assert!(everywhere.contains(&"account".to_string()));
        cli.get_subcommands().for_each(|command| check(command, &everywhere));
    }
}
