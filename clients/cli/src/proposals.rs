//! Open proposals: parameters, treasury, ownership, programs.

use std::collections::BTreeSet;

use alloy::primitives::{Address, FixedBytes};
use alloy::sol_types::SolEvent;
use anyhow::Result;
use muster_client::{Event, IMuster};
use serde_json::{json, Value};

use crate::history;
use crate::parameters::PARAMETERS;
use crate::session::{function_name, Session};

/// An open proposal.
pub struct Proposal {
    /// `parameter`, `treasury`, `ownership` or `programs`.
    pub kind: &'static str,
    /// The thing to change.
    pub what: String,
    /// The proposed value.
    pub to: String,
    /// When anybody may put it into effect, in seconds since 1970; `None` if an account must accept it.
    pub effective: Option<u64>,
}

impl Proposal {
    pub fn json(&self) -> Value {
        json!({ "kind": self.kind, "what": self.what, "to": self.to, "effective": self.effective })
    }
}

/// Blocks that are read again, in case the chain was reorganised.
const AGAIN: u64 = 64;

/// Finds proposals repeatedly. Proposed programs are in no list, only in events.
pub struct Proposals {
    /// The first block that was not read.
    next: u64,
    programs: BTreeSet<(Address, Vec<FixedBytes<4>>)>,
}

impl Proposals {
    /// From this block on.
    pub fn since(block: u64) -> Self {
        Self { next: block, programs: BTreeSet::new() }
    }

    /// All open proposals.
    pub async fn look(&mut self, session: &Session) -> Result<Vec<Proposal>> {
        let muster = &session.muster;
        let mut found = Vec::new();
        for (which, parameter) in PARAMETERS.iter().enumerate().filter(|(_, parameter)| parameter["delayed"] == true) {
            let next = muster.read(IMuster::proposedParameterCall { which: which as u8 }).await?;
            if next.effective > 0 {
                let what = parameter["name"].as_str().unwrap_or_default().to_string();
                found.push(Proposal { kind: "parameter", what, to: next.value.to_string(), effective: Some(next.effective) });
            }
        }
        let treasury = muster.read(IMuster::pendingTreasuryCall {}).await?;
        if treasury.effective > 0 {
            let to = treasury.treasury.to_string();
            found.push(Proposal { kind: "treasury", what: "treasury".into(), to, effective: Some(treasury.effective) });
        }
        let owner = muster.read(IMuster::pendingOwnerCall {}).await?;
        if !owner.is_zero() {
            found.push(Proposal { kind: "ownership", what: "owner".into(), to: owner.to_string(), effective: None });
        }
        let head = session.endpoints().head().await?.number;
        let events = history::events_of(session, self.next, Some(IMuster::ProgramsProposed::SIGNATURE_HASH), [None; 3]).await?;
        for past in events {
            if let Event::ProgramsProposed(e) = past.event {
                self.programs.insert((e.program, e.selectors));
            }
        }
        self.next = self.next.max(head.saturating_sub(AGAIN));
        for (program, selectors) in self.programs.clone() {
            let call = IMuster::proposedProgramsCall { program, selectors: selectors.clone() };
            let effective = muster.read(call).await?;
            if effective == 0 {
                self.programs.remove(&(program, selectors));
                continue;
            }
            let what = selectors.iter().map(|selector| function_name(*selector)).collect::<Vec<_>>().join(" ");
            found.push(Proposal { kind: "programs", what, to: program.to_string(), effective: Some(effective) });
        }
        Ok(found)
    }
}
