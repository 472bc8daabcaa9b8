//! The requests arrive, nodes answer or fail, and accounts send the calls that the contracts wait for.

use alloy::{
    primitives::{keccak256, U256},
    sol_types::SolCall,
};
use anyhow::{ensure, Result};
use muster_client::{
    Error,
    IMuster::{cancelCall, createTaskCall, dispatchCall, expireCall, expireQueuedCall, pokeCall, reportErrorCall, submitCall},
    Reason, DISPATCH,
};

use super::{
    agenda::Action,
    state::{creator_of, nodes_of, specification, Demo, Who},
};
use crate::chain::reason;

/// `dispatch` without any progress before we give up.
const FRUITLESS: u32 = 500;
/// How often we wait for excluded nodes, five minutes each time, before queued tasks are cancelled.
const PATIENCE: u32 = 48;

impl Demo {
    /// Lets the requests arrive, and goes on until every task has ended.
    pub(super) async fn replay(&mut self) -> Result<()> {
        self.begin_bar("tasks", self.requests.len() as u64);
        self.began = self.clock.now;
        for (at, request) in self.requests.iter().enumerate() {
            let after = (request.at as f64 / self.options.speed).round() as u64;
            self.agenda.plan(self.began + after, Action::Arrive(at));
        }
        for round in 1.. {
            self.follow_agenda().await?;
            let left: Vec<u64> = self.tasks.iter().filter(|(_, task)| !task.ended).map(|(id, _)| *id).collect();
            if left.is_empty() {
                break;
            }
            // Queued, with nobody running a task whose end would start them: their nodes are excluded for now.
            if round <= PATIENCE {
                self.clock.wait_until(self.clock.now + 300).await?;
                self.wake().await?;
            } else {
                eprintln!("demo: no node can run {} queued tasks; their creators cancel them", left.len());
                for id in left {
                    self.act(Action::Cancel(id)).await?;
                }
            }
        }
        self.bar.finish_and_clear();
        Ok(())
    }

    async fn follow_agenda(&mut self) -> Result<()> {
        while let Some((at, action)) = self.agenda.next() {
            // A task that left the queue in time, or came back into it, is no reason to wait.
            let stays = |id: u64| self.tasks.get(&id).is_some_and(|task| task.ticket.is_some() && task.outlives <= at);
            if matches!(action, Action::Outlive(id) if !stays(id)) {
                continue;
            }
            self.clock.wait_until(at).await?;
            self.act(action).await?;
            self.bar.set_message(format!("{} s on chain", self.clock.now - self.began));
        }
        Ok(())
    }

    async fn act(&mut self, action: Action) -> Result<()> {
        match action {
            Action::Arrive(at) => self.arrive(at).await?,
            Action::Draw => self.draw().await?,
            Action::Answer(id) => {
                if let Some(place) = self.running(id) {
                    let digest = keccak256(format!("answer {id}"));
                    self.tell(Who::Operator(place), &submitCall { id, resultDigest: digest }).await?;
                }
            }
            Action::Report(id) => {
                if let Some(place) = self.running(id) {
                    self.tell(Who::Operator(place), &reportErrorCall { id, code: 1 }).await?;
                }
            }
            Action::Expire(id) => self.expire(id).await?,
            Action::Cancel(id) => {
                if let (Some(ticket), Some(task)) = (self.ticket(id), self.tasks.get(&id)) {
                    self.tell(Who::Creator(task.creator), &cancelCall { id, ticket }).await?;
                }
            }
            Action::Outlive(id) => {
                if let Some(ticket) = self.ticket(id) {
                    self.tell(Who::Keeper, &expireQueuedCall { id, ticket }).await?;
                }
            }
            Action::Commit(id, node) => self.commit(id, node).await?,
            Action::Lot(id) => self.lot(id).await?,
            Action::Reveal(id, node) => self.reveal(id, node).await?,
            Action::Settle(id) => self.settle(id).await?,
            Action::ExpireMember(id, node) => self.expire_member(id, node).await?,
            Action::Poke(node) => self.poke(node).await?,
        }
        Ok(())
    }

    /// A request's task is created, unless nobody can run it. A task that the contract does not take under its picked policy runs on a
    /// single node.
    async fn arrive(&mut self, at: usize) -> Result<()> {
        let policy = self.options.policy(at);
        if policy == 0 || !self.create(at, policy).await? {
            self.create(at, 0).await?;
        }
        Ok(())
    }

    /// Creates a request's task; false if the contract does not take it under this policy.
    async fn create(&mut self, at: usize, redundancy: u8) -> Result<bool> {
        let fee = self.fee(at).await? * nodes_of(redundancy);
        let request = &self.requests[at];
        let creator = creator_of(request);
        let digest = keccak256(format!("{} {at}", self.options.seed));
        let spec = specification(redundancy, request.units, request.vram, &request.models, digest);
        let call = createTaskCall { spec };
        if redundancy > 0 {
            let creator = self.creators[creator].address();
            if let Err(error) = self.check(creator, &call, fee).await {
                let counted = &mut self.tally.judged.policies[usize::from(redundancy)];
                match reason(&error) {
                    Some(Reason::FeeTooHigh(_)) => counted.too_dear += 1,
                    Some(Reason::BadUnits(_)) => counted.too_many_images += 1,
                    Some(Reason::NobodyCanRun(_)) => counted.too_few_nodes += 1,
                    // Refused under policy 0, too.
                    Some(Reason::DuplicateModel(_)) => {}
                    _ => return Err(error),
                }
                return Ok(false);
            }
        }
        self.arriving = Some((at, creator, redundancy));
        match self.send(Who::Creator(creator), &call, fee).await {
            Ok(_) => {}
            Err(error) if matches!(reason(&error), Some(Reason::NobodyCanRun(_) | Reason::DuplicateModel(_))) => {
                self.arriving = None;
                self.tally.counts.refused += 1;
                self.bar.inc(1);
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Draws nodes, and validators, for tasks whose block has come.
    async fn draw(&mut self) -> Result<()> {
        self.draw_planned = false;
        if self.pending.is_empty() {
            return Ok(());
        }
        self.fruitless += 1;
        ensure!(
            self.fruitless < FRUITLESS,
            "{} pending tasks are not drawn, however often dispatch is called",
            self.pending.len()
        );
        self.tell(Who::Keeper, &dispatchCall { count: DISPATCH }).await
    }

    /// Ends a task whose node stayed silent.
    async fn expire(&mut self, id: u64) -> Result<()> {
        let Some((false, Some(node))) = self.tasks.get(&id).map(|task| (task.ended, task.node)) else { return Ok(()) };
        if !self.clock.has_chain_caught_up(&self.chain).await? {
            self.agenda.plan(self.clock.now + 1, Action::Expire(id));
            return Ok(());
        }
        self.tell(Who::Keeper, &expireCall { node: node as u32, id }).await
    }

    /// The ticket of a task that is queued.
    fn ticket(&self, id: u64) -> Option<u64> {
        self.tasks.get(&id)?.ticket
    }

    /// The place of the node that runs a task, unless it has ended or the node is not ours.
    fn running(&self, id: u64) -> Option<usize> {
        let task = self.tasks.get(&id).filter(|task| !task.ended)?;
        self.nodes.get(&task.node?).map(|node| node.place)
    }

    /// Offers queued tasks to nodes that are available or can be readmitted by now.
    async fn wake(&mut self) -> Result<()> {
        for node in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.poke(node).await?;
        }
        Ok(())
    }

    /// Lets a node take what there is for it, if there is anything.
    async fn poke(&mut self, node: u64) -> Result<()> {
        let poke = pokeCall { node: node as u32 };
        if self.check(self.keeper.address(), &poke, U256::ZERO).await.is_ok() {
            self.tell_unless_draws_are_due(&poke).await?;
        }
        Ok(())
    }

    /// Sends a call that is refused while draws are due. The last block's state may know of none, and the next block's number make some
    /// due: then they are made, and the answer is that the call must be sent again.
    pub(super) async fn tell_unless_draws_are_due(&mut self, call: &impl SolCall) -> Result<bool> {
        match self.tell(Who::Keeper, call).await {
            Err(error) if is_undone(&error) && !self.pending.is_empty() => {
                self.tell(Who::Keeper, &dispatchCall { count: DISPATCH }).await?;
                Ok(true)
            }
            told => told.map(|()| false),
        }
    }
}

/// Whether a transaction was undone that had not been refused before it was sent.
fn is_undone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Undone { .. }))
}
