//! Plays the table on a system: creates every group, has its members act, and compares events, views and money.

use super::books::Books;
use super::{Act, Case, Kind, Line, Order, Outcome, THREE};
use crate::system::{Call, Done, System};
use crate::validated::{salt, ANSWER, CARD, CREATOR, DRIVER, ERROR};
use crate::world::{commitment, parameter, spec, who, OWNER, STAKE_UNIT, TOKEN, UPGRADE_DELAY};
use alloy_primitives::B256;
use alloy_sol_types::SolCall;
use muster_protocol::abi::IMuster::{self, IMusterEvents as E, *};
use muster_protocol::parameters::PARAMETERS;
use std::collections::BTreeMap;

/// The fee of a sampled task, and the part of a replicated one, in wei: no multiple of anything that it is divided by.
const FEE: u128 = 6 * TOKEN + 123_457;
/// The fee of a sampled task whose group is not to agree, or takes nothing out of the reserve, or less than others: otherwise its savings
/// there would fill every pot.
const LOW_FEE: u128 = FEE / 100_000;
/// The probability of validation of sampled tasks, in ten thousandths: half of them, so that others fill the reserve.
const SAMPLE_BPS: u16 = 5_000;
/// The same until [`UNFILLED`] pots were not filled: hardly anything is paid into the reserve. Between tasks that are validated and others
/// it is even, whatever the probability, so that chance alone would leave it empty often or never.
const SAMPLE_BPS_AT_FIRST: u16 = 9_999;
/// Pots that the reserve cannot fill before it is filled.
const UNFILLED: u32 = 24;
/// The share of a fee that the creator pays for a task without an answer, and that a driver earns, in ten thousandths.
const START_FEE_BPS: u16 = 100;
/// A slash, in fees.
const SLASH: u128 = 20;
/// Seconds in which reveals can be made before anybody has the group judged.
const REVEAL_WINDOW: u64 = 7_200;
/// Seconds in which a task that is not sampled can be revealed before anybody ends it.
const SAMPLE_WINDOW: u64 = 600;
/// Seconds before a returned stake can be fetched.
const UNBONDING: u64 = 86_400;
/// The longest that a node rests after an error, in seconds from its start.
const REST: u64 = 60;
/// Seconds after which H is restored but for a millionth. Only taken where it fell: programs expire after a year.
const RECOVERY: u64 = 30_000;
/// One, as a wad.
const WAD: u64 = 1_000_000_000_000_000_000;

/// GPUs by name and VRAM, and how many nodes of each there are: enough for scores, one too few, two and one.
const SCOPES: [(&str, u16, usize); 4] = [("RTX 4090", 24, 12), ("L40S", 48, 8), ("A100", 80, 2), ("H100", 94, 1)];

/// Counts.
#[derive(Clone, Debug, Default)]
pub struct Count {
    /// Groups that were settled.
    pub groups: u32,
    /// Those of one, two and three members.
    pub sizes: [u32; THREE],
    /// Groups by their outcome.
    pub outcomes: BTreeMap<Outcome, u32>,
    /// Slashes.
    pub slashes: u32,
    /// Nodes that left by them.
    pub left: u32,
    /// Sampled tasks that ended without a group: answered, failed, not revealed.
    pub alone: [u32; 3],
    /// Pots that the reserve could not fill, and those it filled.
    pub pots: [u32; 2],
}

/// A network that groups are played on.
pub struct Table<S> {
    real: S,
    books: Books,
    groups: [u32; SCOPES.len()],
    /// The next operator to join.
    operator: u64,
    /// The probability of validation in force.
    sample_bps: u16,
    /// The counts.
    pub count: Count,
}

/// A group whose members are to act.
struct Team {
    id: u64,
    place: u32,
    members: Vec<u32>,
    /// The time at which those began that did not begin as the first of a sampled task.
    began: u64,
    deadline: u64,
}

impl<S: System> Table<S> {
    /// A network on a system that has just been initialised.
    pub fn new(real: S) -> Table<S> {
        let mut table = Table {
            real,
            books: Books::default(),
            groups: [0; SCOPES.len()],
            operator: 1_000,
            sample_bps: SAMPLE_BPS,
            count: Count::default(),
        };
        let fee = u128::from(STAKE_UNIT) * table.real.answer(parameterCall { which: parameter("groupFee") }).value.to::<u128>();
        for (scope, (name, vram, nodes)) in SCOPES.into_iter().enumerate() {
            for i in 0..nodes {
                table.join(scope, if i == 0 { fee } else { 0 });
            }
            table.books.treasury += fee;
            let group = table.real.answer(gpuGroupCall { name: name.into(), vram });
            table.groups[scope] = group;
            table.done(OWNER, 0, listGpuGroupCall { group, listed: true });
        }
        assert_eq!(table.groups[0], CARD);
        table.rule("sampleBps", SAMPLE_BPS);
        table.rule("startFeeBps", START_FEE_BPS);
        let everybody: Vec<u32> = table.books.nodes.keys().copied().collect();
        table.books.compare(&mut table.real, &everybody);
        table
    }

    fn rule(&mut self, name: &str, value: u16) {
        let (parameter, value) = (parameter(name), alloy_primitives::U256::from(value));
        if PARAMETERS[usize::from(parameter)].delayed() {
            self.done(OWNER, 0, proposeParameterCall { parameter, value });
            self.real.pass(1, u64::from(UPGRADE_DELAY));
            self.done(OWNER, 0, acceptParameterCall { parameter });
        } else {
            self.done(OWNER, 0, setParameterCall { parameter, value });
        }
    }

    fn done(&mut self, from: [u8; 20], value: u128, call: impl SolCall) -> Done {
        let call = Call::new(from, call).paying(value);
        self.real.call(&call).unwrap_or_else(|error| panic!("{call:?}: {error:?}"))
    }

    fn refused(&mut self, call: impl SolCall) -> String {
        self.real.call(&Call::new(who(DRIVER), call)).expect_err("must be refused").name
    }

    fn now(&self) -> u64 {
        self.real.clock().0
    }

    /// Waits until a time, if it has not come.
    fn until(&mut self, time: u64) {
        let wait = time.saturating_sub(self.now());
        self.real.pass(1, wait);
    }

    /// Somebody joins. Of the nodes of the largest scope every other one survives a dozen slashes, the others none.
    fn join(&mut self, scope: usize, fee: u128) {
        let (name, vram, _) = SCOPES[scope];
        let stake = if scope == 0 && self.operator.is_multiple_of(2) { 2_000 } else { 400 } * TOKEN;
        let operator = self.operator;
        self.operator += 1;
        let done = self.done(who(operator), stake + fee, joinCall { gpuName: name.into(), vram, models: vec![] });
        let node = done.events.iter().find_map(|e| if let E::NodeJoined(n) = e { Some(n.node) } else { None }).expect("joined");
        self.books.join(node, operator, stake);
    }

    /// Creates a task and has it drawn; gives the event that it started with.
    fn started(&mut self, fee: u128, spec: IMuster::TaskSpec) -> (E, u64) {
        let done = self.done(who(CREATOR), fee, createTaskCall { spec });
        let of = |e: &E| if let E::TaskCreated(t) = e { Some((t.id, t.timeLimit)) } else { None };
        let (id, limit) = done.events.iter().find_map(of).expect("created");
        for _ in 0..100 {
            self.real.pass(1, 0);
            let done = self.done(who(DRIVER), 0, dispatchCall { count: 16 });
            for event in done.events {
                match &event {
                    E::TaskStarted(t) if t.id == id => return (event, u64::from(limit)),
                    E::GroupFormed(g) if g.id == id => return (event, u64::from(limit)),
                    _ => {}
                }
            }
        }
        panic!("task {id} was not drawn")
    }

    /// Plays a combination, and compares everything.
    pub fn play(&mut self, case: &Case, order: &Order) {
        assert!(case.exists(), "{case:?}");
        let scope = match (case.scored, case.size()) {
            (true, _) => 0,
            (false, 3) => 1,
            (false, 2) => 2,
            (false, _) => 3,
        };
        let nodes = match case.kind {
            Kind::Sampled => self.sampled(case, order, self.groups[scope]),
            Kind::Replicated | Kind::Images => self.replicated(case, order, self.groups[scope]),
        };
        self.books.compare(&mut self.real, &nodes);
        for node in nodes {
            if !self.books.nodes[&node].joined {
                self.join(scope, 0);
            }
        }
        if case.acts.iter().any(|act| matches!(act, Act::TimeOut | Act::Withhold)) {
            self.real.pass(1, RECOVERY);
        }
    }

    // ------------------------------------------------------------ groups of three from the start

    fn replicated(&mut self, case: &Case, order: &Order, gpu: u32) -> Vec<u32> {
        // No multiple of three: the part of each is rounded down.
        let fee = 3 * part(case) + 2;
        let kind = u8::from(case.kind == Kind::Replicated);
        let wanted = IMuster::TaskSpec { kind, gpu, redundancy: 2, flags: 1, ..spec(0, &[]) };
        let (event, limit) = self.started(fee, wanted);
        let E::GroupFormed(g) = event else { panic!("{event:?}") };
        assert_eq!((g.nodes.len(), g.scored), (THREE, case.scored));
        let began = self.now();
        let team = Team { id: g.id, place: g.group, members: g.nodes, began, deadline: began + limit };
        self.act(case, order, &team, 0);
        self.judged(case, order, &team, fee);
        team.members
    }

    // ------------------------------------------------------------ sampled tasks

    fn sampled(&mut self, case: &Case, order: &Order, gpu: u32) -> Vec<u32> {
        let bps = if case.scored && self.count.pots[0] < UNFILLED { SAMPLE_BPS_AT_FIRST } else { SAMPLE_BPS };
        if bps != std::mem::replace(&mut self.sample_bps, bps) {
            self.rule("sampleBps", bps);
        }
        let wanted = IMuster::TaskSpec { gpu, redundancy: 1, flags: 1, ..spec(0, &[]) };
        let fee = part(case);
        let start_fee = start_fee_of(fee);
        let (id, node, limit) = loop {
            let (event, limit) = self.started(fee, wanted.clone());
            let E::TaskStarted(t) = event else { panic!("{event:?}") };
            let began = self.now();
            self.until(began + case.acts[0].commits().expect("the first commits"));
            self.commit(case, 0, t.id, t.node);
            self.real.pass(3, 1);
            match self.real.call(&Call::new(who(DRIVER), validateCall { id: t.id, node: t.node })) {
                Ok(done) => {
                    self.books.driver += start_fee;
                    let [E::TaskSampled(told)] = &done.events[..] else { panic!("{:?}", done.events) };
                    let driver = who(DRIVER).into();
                    assert_eq!((told.id, told.node, told.paid, told.beneficiary), (t.id, t.node, start_fee, driver));
                    break (t.id, t.node, limit);
                }
                Err(refused) => {
                    assert_eq!(refused.name, "NotSampled");
                    self.alone(case, t.id, t.node, began);
                }
            }
        };
        let team = self.formed(case, id, node, limit);
        self.act(case, order, &team, 1);
        self.judged(case, order, &team, fee - start_fee);
        team.members
    }

    /// Has the validators of a sampled task drawn.
    fn formed(&mut self, case: &Case, id: u64, node: u32, limit: u64) -> Team {
        for _ in 0..100 {
            self.real.pass(3, 1);
            let done = self.done(who(DRIVER), 0, formGroupCall {});
            let formed = done.events.into_iter().find_map(|e| if let E::GroupFormed(g) = e { Some(g) } else { None });
            if let Some(g) = formed {
                assert_eq!((g.id, g.nodes.len(), g.scored, g.nodes[0]), (id, case.size(), case.scored, node));
                let began = self.now();
                return Team { id, place: g.group, members: g.nodes, began, deadline: began + limit };
            }
        }
        panic!("the validators of {id} were not drawn")
    }

    /// A task that was not sampled, and began then: its node acts as it did as the first of a group.
    fn alone(&mut self, case: &Case, id: u64, node: u32, began: u64) {
        let act = case.acts[0];
        let fee = part(case);
        let single = self.single(case, fee);
        let left = fee - single;
        let (state, code, refund, digest) = if act == Act::Withhold {
            let call = expireCall { node, id };
            assert_eq!(self.refused(call.clone()), "DeadlineNotPassed");
            // The lot must be known for as many blocks as it took, too.
            self.real.pass(2, SAMPLE_WINDOW);
            let done = self.done(who(DRIVER), 0, call);
            let start_fee = start_fee_of(fee);
            let refund = fee - start_fee - left;
            self.books.driver += start_fee;
            self.books.creator += refund;
            let aborted = TaskAborted {
                id,
                node,
                creator: who(CREATOR).into(),
                reason: 0,
                refund,
                startFee: start_fee,
                beneficiary: who(DRIVER).into(),
            };
            assert_eq!(done.events, [E::TaskAborted(aborted)]);
            self.fell(node);
            self.count.alone[2] += 1;
            (4, 0, refund, B256::ZERO)
        } else {
            let done = self.reveal(case, 0, id, 0, node);
            let creator = who(CREATOR).into();
            let told = Self::told(case, 0, id, 0, node);
            if act == Act::Fail {
                let refund = fee - start_fee_of(fee);
                self.books.creator += refund;
                self.books.treasury += fee - refund;
                let code = told_code(&told);
                let failed = E::TaskErrorReported(TaskErrorReported { id, node, creator, code, refund });
                let until = began + REST;
                assert_eq!(done.events, [told, failed, E::NodeExcluded(NodeExcluded { node, until })]);
                self.until(until);
                let done = self.done(who(DRIVER), 0, dispatchCall { count: 16 });
                assert_eq!(done.events, [E::NodeReadmitted(NodeReadmitted { node })]);
                self.count.alone[1] += 1;
                (3, code, refund, B256::ZERO)
            } else {
                self.books.of(node).credit += single;
                let digest = case.word(0, act.answers().expect("it answers"));
                assert_eq!(
                    done.events,
                    [told, E::TaskSucceeded(TaskSucceeded { id, node, creator, resultDigest: digest, paid: single })]
                );
                self.count.alone[0] += 1;
                (2, 0, 0, digest)
            }
        };
        if act != Act::Fail {
            self.books.reserve += left;
        }
        let outcome = self.real.answer(outcomeCall { id });
        assert_eq!(
            (outcome.state, outcome.node, outcome.code, outcome.refund, outcome.resultDigest),
            (state, node, code, refund, digest)
        );
        self.books.compare(&mut self.real, &[node]);
        if act == Act::Withhold {
            self.real.pass(1, RECOVERY);
        }
    }

    // ------------------------------------------------------------ acts of members

    /// A member's revealed kind and value.
    fn said(case: &Case, member: usize) -> (u8, B256) {
        match case.acts[member] {
            Act::Answer(answer, _) => (ANSWER, case.word(member, answer)),
            Act::Fail => (ERROR, B256::with_last_byte(40 + member as u8)),
            _ => (ANSWER, case.word(member, 1)),
        }
    }

    fn commit(&mut self, case: &Case, member: usize, id: u64, node: u32) {
        let (kind, value) = Self::said(case, member);
        let operator = who(self.books.of(node).operator);
        self.done(operator, 0, commitCall { id, commitment: commitment(id, node, kind, value, salt(id, node)) });
    }

    fn reveal(&mut self, case: &Case, member: usize, id: u64, group: u32, node: u32) -> Done {
        let (kind, value) = Self::said(case, member);
        self.done(who(DRIVER), 0, revealCall { id, group, node, kind, value, salt: salt(id, node) })
    }

    /// The event of a reveal.
    fn told(case: &Case, member: usize, id: u64, group: u32, node: u32) -> E {
        let (kind, value) = Self::said(case, member);
        E::AnswerRevealed(AnswerRevealed { id, node, group, kind, value, salt: salt(id, node) })
    }

    /// Asserts that a node's H has just fallen to three tenths of its former value, which was nearly one.
    fn fell(&mut self, node: u32) {
        let h = self.real.answer(nodeCall { number: node }).reliability;
        assert!((WAD / 10 * 3).abs_diff(h) < WAD / 1_000_000, "H of {node} is {h}");
    }

    /// The members from this one on commit, each in its time, or let their deadlines pass.
    fn act(&mut self, case: &Case, order: &Order, team: &Team, from: usize) {
        let mut committing: Vec<usize> =
            order.turn.into_iter().filter(|&i| i >= from && case.acts[i].commits().is_some()).collect();
        committing.sort_by_key(|&i| case.acts[i].commits());
        for i in committing {
            self.until(team.began + case.acts[i].commits().expect("commits"));
            self.commit(case, i, team.id, team.members[i]);
        }
        let late: Vec<usize> = order.turn.into_iter().filter(|&i| case.acts[i] == Act::TimeOut).collect();
        if let Some(&i) = late.first() {
            self.until(team.deadline);
            assert_eq!(self.refused(expireCall { node: team.members[i], id: team.id }), "DeadlineNotPassed");
            assert_eq!(self.refused(settleCall { id: team.id, group: team.place }), "NotOpen");
            self.real.pass(1, 1);
        }
        for i in late.into_iter().filter(|_| order.expires) {
            let node = team.members[i];
            let done = self.done(who(DRIVER), 0, expireCall { node, id: team.id });
            assert_eq!(done.events, [E::MemberTimedOut(MemberTimedOut { id: team.id, node, group: team.place })]);
            self.fell(node);
        }
    }

    // ------------------------------------------------------------ the judgement

    /// Members that reveal do so, and the group is judged, by the last reveal or by `settle`; so much is left of its task's fee.
    fn judged(&mut self, case: &Case, order: &Order, team: &Team, fee: u128) {
        let (id, group) = (team.id, team.place);
        let withheld = case.acts.contains(&Act::Withhold);
        let revealing: Vec<usize> = order.turn.into_iter().filter(|&i| case.acts[i].reveals()).collect();
        let mut events = Vec::new();
        for (n, &i) in revealing.iter().enumerate() {
            let mut done = self.reveal(case, i, id, group, team.members[i]);
            assert_eq!(done.events.remove(0), Self::told(case, i, id, group, team.members[i]));
            let judges = n + 1 == revealing.len() && !withheld;
            assert!(judges || done.events.is_empty(), "{:?}", done.events);
            events = done.events;
        }
        if withheld {
            assert_eq!(self.refused(settleCall { id, group }), "RevealsOpen");
            self.real.pass(1, REVEAL_WINDOW + 1);
        }
        if withheld || revealing.is_empty() {
            events = self.done(who(DRIVER), 0, settleCall { id, group }).events;
        }
        let expected = self.expected(case, order, team, fee);
        assert_eq!(events, expected, "{case:?}");
        for (i, &node) in team.members.iter().enumerate() {
            let line = case.line();
            if (case.acts[i] == Act::TimeOut && !order.expires) || case.acts[i] == Act::Withhold {
                self.fell(node);
            } else if case.scored && line.verdicts[i] == 1 {
                // The missing part of one may be less than a right answer gives back.
                assert_eq!(self.real.answer(nodeCall { number: node }).reliability, WAD);
            }
        }
        assert_eq!(self.real.answer(groupCall { place: group }), GroupView::default());
        assert_eq!(self.refused(settleCall { id, group }), "GroupUnknown");
        let count = &mut self.count;
        count.groups += 1;
        count.sizes[case.size() - 1] += 1;
        *count.outcomes.entry(case.line().outcome).or_default() += 1;
    }

    /// The events of a judgement, which is entered in the books; the receipt is compared.
    fn expected(&mut self, case: &Case, order: &Order, team: &Team, fee: u128) -> Vec<E> {
        let Line { outcome, stands, verdicts, scores } = case.line();
        let (id, group, creator) = (team.id, team.place, who(CREATOR).into());
        let sampled = case.kind == Kind::Sampled;
        let (mut paid, mut refund, mut start_fee) = ([0; THREE], 0, 0);
        match outcome {
            Outcome::Agreed => {
                // A sampled task pays each member as if alone, unless it reported an error. If the first has answered, the reserve fills up
                // a fee that is too little. Of other fees a failed member's part is not shared out.
                let (pot, missing) = if sampled && case.scored {
                    let pot = self.single(case, fee) * (THREE - case.failed()) as u128;
                    (pot, if case.acts[0].answers().is_some() { pot.saturating_sub(fee) } else { 0 })
                } else {
                    (fee - fee / case.size() as u128 * case.failed() as u128, 0)
                };
                let found = self.books.take_reserve(missing);
                if missing > 0 {
                    self.count.pots[usize::from(found == missing)] += 1;
                }
                self.books.reserve += fee.saturating_sub(pot);
                let pot = pot.min(fee) + found;
                let scores = scores.map(|score| u128::from(score.unwrap_or(0)));
                for i in 0..THREE {
                    paid[i] = pot * scores[i] / scores.iter().sum::<u128>();
                }
                let last = (0..THREE).rfind(|&i| scores[i] > 0).expect("two are right");
                paid[last] += pot - paid.iter().sum::<u128>();
            }
            Outcome::Alone => {
                paid[0] = self.single(case, fee);
                self.books.reserve += fee - paid[0];
            }
            // A sampled task has paid it already.
            Outcome::Differing | Outcome::Unanswered => {
                start_fee = if sampled { 0 } else { start_fee_of(fee) };
                refund = fee - start_fee;
            }
        }
        let mut events = Vec::new();
        for (i, &node) in team.members.iter().enumerate() {
            let judged = MemberJudged { id, node, group, verdict: verdicts[i], paid: paid[i] };
            events.push(E::MemberJudged(judged));
            self.books.of(node).credit += paid[i];
            if case.acts[i] == Act::TimeOut && !order.expires {
                events.push(E::MemberTimedOut(MemberTimedOut { id, node, group }));
            }
            if let Some(score) = scores[i].filter(|_| case.scored) {
                self.books.score(node, score);
                events.push(E::ScoreRecorded(ScoreRecorded { node, score }));
            }
            if case.scored && case.kind != Kind::Images && matches!(verdicts[i], 2 | 3) {
                self.slashed(id, node, if sampled { fee } else { fee / 3 }, &mut events);
            }
        }
        self.books.treasury += start_fee;
        self.books.creator += refund;
        let answer = stands.map_or(B256::ZERO, |i| case.word(i, case.acts[i].answers().expect("it stands")));
        events.push(E::GroupSettled(GroupSettled {
            id,
            group,
            creator,
            outcome: outcome as u8,
            answer,
            refund,
            startFee: start_fee,
            reserve: self.books.reserve,
        }));
        let receipt = self.real.answer(outcomeCall { id });
        let (state, node) = stands.map_or((9, 0), |i| (2, team.members[i]));
        assert_eq!(
            (receipt.state, receipt.node, receipt.code, receipt.refund, receipt.resultDigest),
            (state, node, 0, refund, answer)
        );
        events
    }

    /// The pay of a sampled task's node where it runs it alone.
    fn single(&self, case: &Case, fee: u128) -> u128 {
        if case.scored {
            fee * 10_000 / (10_000 + 2 * u128::from(self.sample_bps))
        } else {
            fee
        }
    }

    fn slashed(&mut self, id: u64, node: u32, fee: u128, events: &mut Vec<E>) {
        let operator = who(self.books.of(node).operator).into();
        let taken = self.books.slash(node, SLASH * fee, STAKE_UNIT.into());
        let slashed = NodeSlashed { node, operator, id, stake: taken.stake, unbonding: 0, credit: taken.credit };
        events.push(E::NodeSlashed(slashed));
        self.count.slashes += 1;
        if let Some(stake) = taken.leaves {
            let release = self.now() + UNBONDING;
            events.push(E::NodeKickedOut(NodeKickedOut { node, operator }));
            events.push(E::NodeQuit(NodeQuit { node, operator, stake, release }));
            self.count.left += 1;
        }
    }

    /// Compares the money of every node that ever joined; gives the counts.
    pub fn finish(mut self) -> (S, Count) {
        let everybody: Vec<u32> = self.books.nodes.keys().copied().collect();
        self.books.compare(&mut self.real, &everybody);
        (self.real, self.count)
    }
}

/// The fee of a sampled task, or a member's part of that of a replicated one.
fn part(case: &Case) -> u128 {
    if case.kind == Kind::Sampled
        && (case.line().outcome != Outcome::Agreed || case.failed() > 0 || case.acts[0].answers().is_none())
    {
        LOW_FEE
    } else {
        FEE
    }
}

fn start_fee_of(fee: u128) -> u128 {
    fee * u128::from(START_FEE_BPS) / 10_000
}

fn told_code(told: &E) -> u8 {
    match told {
        E::AnswerRevealed(told) => told.value[31],
        other => panic!("{other:?}"),
    }
}
