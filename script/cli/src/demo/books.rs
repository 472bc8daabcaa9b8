//! Where the contract's money belongs, by its logs and views.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use ethers::{
    abi::Token,
    providers::Middleware,
    types::{Address, Filter, U256, U64},
};

use crate::{
    chain::Chain,
    contract::{field, Event, Muster},
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
    /// What the address holds.
    pub balance: U256,
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
    let mut nodes: HashSet<u64> = HashSet::new();
    let mut from = since;
    while from <= head {
        let to = (from + SPAN - 1).min(head);
        let filter = Filter::new().address(muster.address).from_block(from).to_block(to);
        for log in chain.provider.get_logs(&filter).await.map_err(|error| chain.trouble(&error))? {
            let Some(event) = Event::of(&log) else { continue };
            let id = event.number("id");
            match event.name {
                "TaskCreated" => {
                    escrow.insert(id, event.get("fee").and_then(|fee| fee.clone().into_uint()).unwrap_or_default());
                }
                "TaskSucceeded" | "TaskErrorReported" | "TaskAborted" => {
                    escrow.remove(&id);
                }
                "NodeJoined" => {
                    nodes.insert(event.number("node"));
                }
                _ => {}
            }
            let mentioned = ["creator", "operator", "beneficiary", "treasury", "owner"];
            accounts.extend(mentioned.iter().filter_map(|name| event.get(name)?.clone().into_address()));
        }
        from = to + 1;
    }
    books.escrow = escrow.values().fold(U256::zero(), |sum, fee| sum + fee);
    for node in nodes {
        let node = muster.view(chain, "node", &[Token::Uint(node.into())]).await?;
        // A node that has quit has no stake any more: it is its operator's.
        if field(&node, 2)? != U256::zero() {
            books.stake += field(&node, 5)?;
        }
    }
    for account in accounts {
        let account = muster.view(chain, "account", &[Token::Address(account)]).await?;
        books.credit += field(&account, 0)?;
        books.stake += field(&account, 1)?;
    }
    let overview = muster.view(chain, "overview", &[]).await?;
    books.treasury = field(&overview, 2)?;
    books.balance = chain.provider.get_balance(muster.address, None).await.map_err(|error| chain.trouble(&error))?;
    Ok(books)
}
