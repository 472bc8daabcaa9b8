//! Where the contract's money belongs, by its logs and views.

use std::collections::{HashMap, HashSet};

use alloy::primitives::{Address, U256};
use anyhow::Result;
use muster_client::{
    Batch, Cursor, Event, Events,
    IMuster::{accountCall, nodeCall, overviewCall},
    Muster, Reading,
};
use muster_core::record::Status;

/// Where the contract's money belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Stakes, those being unbonded included.
    pub stake: U256,
    /// Fees of tasks that have not ended.
    pub escrow: U256,
    /// The sum that accounts can withdraw, returned stakes aside.
    pub credit: U256,
    /// Protocol income not yet paid out.
    pub treasury: U256,
    /// The reserve that pays for validations beside the fees.
    pub reserve: U256,
    /// The sum of slashes: it stays with the contract for good.
    pub burnt: U256,
    /// The balance of the address.
    pub balance: U256,
}

impl Books {
    /// All that has its place: the contract's balance, unless more was forced upon it.
    pub fn owed(&self) -> U256 {
        self.stake + self.escrow + self.credit + self.treasury + self.reserve + self.burnt
    }
}

/// Adds up the contract's debts to every account that its events mention. `since` is the block the contract is from.
///
/// # Errors
/// The node's.
pub async fn books(muster: &Muster, since: u64) -> Result<Books> {
    let endpoints = muster.endpoints();
    let cursor = Cursor::new(endpoints.chain().await?, muster.address(), since);
    let mut events = Events::with_cursor(endpoints.clone(), cursor, Reading::default()).await?;
    let mut known = Known::default();
    while let Some(batch) = events.poll().await? {
        match &batch {
            Batch::Events { events, .. } => {
                events.iter().filter_map(|logged| logged.event.as_ref()).for_each(|event| known.note(event));
            }
            Batch::Undone { .. } => anyhow::bail!("the chain was reorganised while its events were read: run this again"),
        }
        events.accept(&batch)?;
    }
    let mut books = Books { escrow: known.escrow.values().sum(), ..Books::default() };
    for number in known.nodes {
        let node = muster.read(nodeCall { number }).await?;
        // A node that has quit has no stake any more: it is its operator's.
        if node.status != Status::Quit as u8 {
            books.stake += U256::from(node.stake);
        }
    }
    for who in known.accounts {
        let account = muster.read(accountCall { who }).await?;
        books.credit += U256::from(account.credit);
        books.stake += U256::from(account.unbonding);
    }
    let overview = muster.read(overviewCall {}).await?;
    books.treasury = U256::from(overview.treasuryBalance);
    books.reserve = U256::from(overview.reserve);
    books.burnt = U256::from(overview.burnt);
    books.balance = endpoints.balance(muster.address()).await?;
    Ok(books)
}

/// The accounts and tasks in events that may be owed something.
#[derive(Default)]
struct Known {
    /// Fees of tasks that have not ended.
    escrow: HashMap<u64, U256>,
    accounts: HashSet<Address>,
    nodes: HashSet<u32>,
}

impl Known {
    fn note(&mut self, event: &Event) {
        match event {
            Event::TaskCreated(e) => {
                self.escrow.insert(e.id, U256::from(e.fee));
                self.accounts.insert(e.creator);
            }
            Event::TaskRefused(e) => {
                self.accounts.insert(e.creator);
            }
            Event::TaskSampled(e) => {
                self.spend(e.id, e.paid);
                self.accounts.insert(e.beneficiary);
            }
            Event::TaskSucceeded(e) => self.end(e.id),
            Event::TaskErrorReported(e) => self.end(e.id),
            Event::TaskAborted(e) => {
                self.end(e.id);
                self.accounts.insert(e.beneficiary);
            }
            // Another group is given it.
            Event::GroupSettled(e) if e.outcome == 4 => self.spend(e.id, e.startFee),
            Event::GroupSettled(e) => self.end(e.id),
            Event::NodeJoined(e) => {
                self.nodes.insert(e.node);
                self.accounts.insert(e.operator);
            }
            Event::Initialised(e) => self.accounts.extend([e.owner, e.treasury]),
            Event::TreasuryChanged(e) => {
                self.accounts.insert(e.treasury);
            }
            _ => {}
        }
    }

    fn spend(&mut self, id: u64, wei: u128) {
        self.escrow.entry(id).and_modify(|fee| *fee -= U256::from(wei));
    }

    fn end(&mut self, id: u64) {
        self.escrow.remove(&id);
    }
}
