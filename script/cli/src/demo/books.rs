//! Where the contract's money belongs, by its logs and views.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use ethers::{
    providers::Middleware,
    types::{Address, Filter, U256, U64},
};
use muster_core::record::Status;
use muster_protocol::IMuster::{accountCall, nodeCall, overviewCall};

use crate::{
    chain::Chain,
    contract::{Event, Muster},
};

/// Where the contract's money belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Stakes, those being unbonded included.
    pub stake: U256,
    /// Fees of tasks that have not ended.
    pub escrow: U256,
    /// What accounts can withdraw, returned stakes aside.
    pub credit: U256,
    /// Protocol income not yet paid out.
    pub treasury: U256,
    /// What validations are paid from beside the fees.
    pub reserve: U256,
    /// What slashes took: it stays with the contract for good.
    pub burnt: U256,
    /// What the address holds.
    pub balance: U256,
}

impl Books {
    /// All that has its place: what the contract holds, unless more was forced upon it.
    pub fn owed(&self) -> U256 {
        self.stake + self.escrow + self.credit + self.treasury + self.reserve + self.burnt
    }
}

/// Adds up what every account that the contract's logs mention is owed. `since` is the block the contract is from.
///
/// # Errors
/// The node's.
pub async fn books(chain: &Chain, muster: &Muster, since: U64) -> Result<Books> {
    // Public nodes limit how many blocks one question may span.
    const SPAN: u64 = 5_000;
    let head = chain.provider.get_block_number().await.map_err(|error| chain.trouble(&error))?;
    let mut books = Books::default();
    let mut escrow: HashMap<u64, U256> = HashMap::new();
    let mut accounts: HashSet<Address> = HashSet::new();
    let mut nodes: HashSet<u32> = HashSet::new();
    let mut from = since;
    while from <= head {
        let to = (from + SPAN - 1).min(head);
        let filter = Filter::new().address(muster.address).from_block(from).to_block(to);
        for log in chain.provider.get_logs(&filter).await.map_err(|error| chain.trouble(&error))? {
            let Some(event) = Event::of(&log) else { continue };
            let id = event.number("id");
            match event.name {
                "TaskCreated" => {
                    escrow.insert(id, event.amount("fee"));
                }
                "TaskSampled" => {
                    escrow.entry(id).and_modify(|fee| *fee -= event.amount("paid"));
                }
                // Another group is given it.
                "GroupSettled" if event.number("outcome") == 4 => {
                    escrow.entry(id).and_modify(|fee| *fee -= event.amount("startFee"));
                }
                "TaskSucceeded" | "TaskErrorReported" | "TaskAborted" | "GroupSettled" => {
                    escrow.remove(&id);
                }
                "NodeJoined" => {
                    nodes.insert(event.number("node") as u32);
                }
                _ => {}
            }
            let mentioned = ["creator", "operator", "beneficiary", "treasury", "owner"];
            accounts.extend(mentioned.iter().filter_map(|name| event.get(name)?.clone().into_address()));
        }
        from = to + 1;
    }
    books.escrow = escrow.values().fold(U256::zero(), |sum, fee| sum + fee);
    for number in nodes {
        let node = muster.ask(chain, None, &nodeCall { number }).await?;
        // A node that has quit has no stake any more: it is its operator's.
        if node.status != Status::Quit as u8 {
            books.stake += node.stake.into();
        }
    }
    for who in accounts {
        let account = muster.ask(chain, None, &accountCall { who: who.0.into() }).await?;
        books.credit += account.credit.into();
        books.stake += account.unbonding.into();
    }
    let overview = muster.ask(chain, None, &overviewCall {}).await?;
    books.treasury = overview.treasuryBalance.into();
    books.reserve = overview.reserve.into();
    books.burnt = overview.burnt.into();
    books.balance = chain.provider.get_balance(muster.address, None).await.map_err(|error| chain.trouble(&error))?;
    Ok(books)
}
