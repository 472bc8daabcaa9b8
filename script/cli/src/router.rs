//! The router's side of a deployment. The code that creates it is bound to its deployer. Its storage is looked into before and after it is
//! installed. Changes of its programs are proposed first and take effect later.

use std::collections::{BTreeMap, BTreeSet};

use alloy::{
    primitives::{keccak256, Address, Bytes, FixedBytes, B256, U256, U64},
    rpc::types::TransactionReceipt,
    sol_types::{SolCall, SolEvent, SolInterface},
};
use anyhow::{bail, ensure, Context, Result};
use muster_client::{
    abi, Event,
    IMuster::{self, IMusterCalls},
    Muster, Reason, Refusal, Sender,
};
use muster_core::{
    record::{Ownership, Rules},
    word::{Packed, Word},
};
use muster_protocol::{layout, programs::PROGRAMS};

use crate::chain::{called, date, name_of, Chain};

/// Selectors and the programs they lead to.
pub type Routes = BTreeMap<[u8; 4], Address>;

/// A change of programs: the program, and the selectors that are to lead to it, in order.
pub type Change = (Address, Vec<[u8; 4]>);

/// Functions that the router refuses once it is initialised, and that no program may answer through it.
const ONLY_AT_FIRST: [&str; 2] = ["install", "initialise"];
/// The last slot of the layout. Until a router is initialised, all of them are empty but the one that says which account may do so.
const LAST_SLOT: u8 = layout::SIZES_OF_TRIOS;
/// The most blocks of one question for events.
const SPAN: u64 = 50_000;
/// Words of the lines that ask for another run.
pub(crate) const AGAIN: &str = "once this is run again after";
/// Most selectors in one proposal.
const SELECTORS_AT_ONCE: usize = 64;

/// The code that, run by a creating transaction, returns `code`: 42 bytes of EVM instructions and a zero byte for
/// their version, in the layout that Stylus tools expect to find.
pub fn initcode(code: &[u8]) -> Bytes {
    returning(Vec::new(), code)
}

/// The same for a router: before it returns, it stores the account that may install it. That is an address in the code itself and not the
/// caller, so that it makes no difference who sends the code, or through which factory.
pub fn bound_initcode(code: &[u8], deployer: Address) -> Bytes {
    // push20 deployer, push1 OWNERSHIP, sstore
    let mut first = vec![0x73];
    first.extend(deployer);
    first.extend([0x60, layout::OWNERSHIP, 0x55]);
    returning(first, code)
}

fn returning(mut out: Vec<u8>, code: &[u8]) -> Bytes {
    let prelude = u8::try_from(out.len() + 43).expect("a short prelude");
    // push32 length, dup1, push1 prelude, push1 0, codecopy, push1 0, return
    out.push(0x7f);
    out.extend(U256::from(code.len()).to_be_bytes::<32>());
    out.extend([0x80, 0x60, prelude, 0x60, 0, 0x39, 0x60, 0, 0xf3, 0]);
    debug_assert_eq!(out.len(), usize::from(prelude));
    out.extend(code);
    out.into()
}

/// The terms of a router, set once and for all, or at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// May change parameters and propose programs.
    pub owner: Address,
    /// Receives protocol income.
    pub treasury: Address,
    /// Stakes are whole multiples of this many wei.
    pub stake_unit: u64,
    /// Least stake in wei, and base of the stake classes.
    pub minimum_stake: u128,
    /// Seconds from a proposal of programs to its effect.
    pub upgrade_delay: u32,
}

/// The functions of the programs of these names, at their addresses.
///
/// # Errors
/// When a program is not there, or the interface does not know one.
pub fn routes<'a>(programs: impl IntoIterator<Item = (&'a str, Address)>) -> Result<Routes> {
    let mut there: BTreeMap<&str, Address> = programs.into_iter().collect();
    let mut wanted = Routes::new();
    for (name, functions) in PROGRAMS {
        let program = there.remove(name).with_context(|| format!("there is no program {name}"))?;
        let through = functions.iter().filter(|function| !ONLY_AT_FIRST.contains(&function.name()));
        wanted.extend(through.map(|function| (function.selector, program)));
    }
    ensure!(there.is_empty(), "nothing is known of the programs {}", there.into_keys().collect::<Vec<_>>().join(", "));
    Ok(wanted)
}

/// The call that initialises a router through the program `admin`.
pub(crate) fn installing(admin: Address, terms: &Terms, wanted: &Routes) -> IMuster::installCall {
    let initialise = IMuster::initialiseCall {
        owner: terms.owner,
        treasury: terms.treasury,
        stakeUnit: terms.stake_unit,
        minimumStake: terms.minimum_stake,
        upgradeDelay: terms.upgrade_delay,
        programs: by_program(wanted)
            .into_iter()
            .map(|(program, selectors)| IMuster::Facet { facetAddress: program, functionSelectors: words(&selectors) })
            .collect(),
    };
    IMuster::installCall { program: admin, call: initialise.abi_encode().into() }
}

/// A router on a chain.
#[derive(Clone, Copy)]
pub struct Router<'a> {
    /// The chain.
    pub chain: &'a Chain,
    /// The router's address.
    pub address: Address,
}

impl Router<'_> {
    /// The contract behind it.
    pub fn muster(&self) -> Muster {
        Muster::at(self.chain.endpoints.clone(), self.address)
    }

    /// Whether it is initialised already.
    ///
    /// # Errors
    /// The node's.
    pub async fn initialised(&self) -> Result<bool> {
        Ok(self.word::<Ownership>(layout::OWNERSHIP).await?.stake_unit > 0)
    }

    /// The account that may change parameters and propose programs.
    ///
    /// # Errors
    /// The node's.
    pub async fn owner(&self) -> Result<Address> {
        Ok(self.word::<Ownership>(layout::OWNERSHIP).await?.owner.into())
    }

    /// Refuses a router that anybody but `deployer` could have changed since transaction `created_in` created it from
    /// `code`.
    ///
    /// # Errors
    /// Names everything that is not as it should be.
    pub async fn untouched(&self, deployer: Address, created_in: B256, code: &[u8]) -> Result<()> {
        let at = self.address;
        let mut wrong = Vec::new();
        if *self.chain.endpoints.code(at).await? != code {
            wrong.push("its code is not the built one".to_string());
        }
        wrong.extend(self.created_otherwise(deployer, created_in, code).await?);
        let holder = self.slot(layout::OWNERSHIP).await?;
        if holder != Word::from(deployer.into_array()) {
            wrong.push(format!("slot {} is {}, not {deployer:?} alone", layout::OWNERSHIP, hex(holder)));
        }
        for number in (0..=LAST_SLOT).filter(|number| *number != layout::OWNERSHIP) {
            let found = self.slot(number).await?;
            if !found.is_zero() {
                wrong.push(format!("slot {number} is {}, not empty", hex(found)));
            }
        }
        for selector in IMusterCalls::selectors() {
            let program = self.program(selector).await?;
            if !program.is_zero() {
                wrong.push(format!("{} leads to {program:?} already", name(selector)));
            }
        }
        ensure!(
            wrong.is_empty(),
            "the router at {at:?} is not as this tool creates one for {deployer:?}, so it is not installed: {}",
            wrong.join("; ")
        );
        Ok(())
    }

    /// Refuses a router that transaction `created_in` did not create bound to `deployer`. Nobody can list a mapping, so right words in
    /// known slots do not exclude wrong ones elsewhere. The transaction that created the router leaves no room for any.
    ///
    /// # Errors
    /// Says what is wrong with the transaction.
    pub async fn bound(&self, deployer: Address, created_in: B256, code: &[u8]) -> Result<()> {
        let wrong = self.created_otherwise(deployer, created_in, code).await?;
        ensure!(wrong.is_none(), "the router at {:?} cannot be trusted: {}", self.address, wrong.unwrap_or_default());
        Ok(())
    }

    async fn created_otherwise(&self, deployer: Address, created_in: B256, code: &[u8]) -> Result<Option<String>> {
        let created: Option<Created> = self.chain.endpoints.ask("eth_getTransactionByHash", [created_in]).await?;
        Ok(match created {
            Some(created) if created.to.is_none() && created.input == bound_initcode(code, deployer) => {
                let at = created.from.create(created.nonce.to());
                (at != self.address).then(|| format!("transaction {created_in:?} created another one, {at:?}"))
            }
            Some(_) => Some(format!("transaction {created_in:?} did not create it bound to {deployer:?}")),
            None => Some(format!("the node does not know transaction {created_in:?}, which created it")),
        })
    }

    /// Initialises it through the program `admin`.
    ///
    /// # Errors
    /// The router's refusals.
    pub async fn install(&self, account: &Sender, admin: Address, terms: &Terms, wanted: &Routes) -> Result<TransactionReceipt> {
        let install = installing(admin, terms, wanted);
        let sent = self.chain.tell(account, &self.muster(), &install, U256::ZERO, None).await;
        sent.context("cannot initialise the router")
    }

    /// Refuses an initialised router with other terms. Its terms are read from its storage, so that no program can change the answer.
    ///
    /// # Errors
    /// Names every difference.
    pub async fn told(&self, terms: &Terms) -> Result<()> {
        let ownership: Ownership = self.word(layout::OWNERSHIP).await?;
        let treasury = address(self.slot(layout::TREASURY).await?);
        let rules: Rules = self.word(layout::RULES).await?;
        let stake = u128::from(rules.base) * u128::from(ownership.stake_unit);
        let mut differences = Vec::new();
        let mut compare = |what: &str, is: String, told: String| {
            if is != told {
                differences.push(format!("its {what} is {is}, not {told}"));
            }
        };
        compare("owner", format!("{:?}", Address::from(ownership.owner)), format!("{:?}", terms.owner));
        compare("treasury", format!("{treasury:?}"), format!("{:?}", terms.treasury));
        compare("stake unit", format!("{} wei", ownership.stake_unit), format!("{} wei", terms.stake_unit));
        compare("minimum stake", format!("{stake} wei"), format!("{} wei", terms.minimum_stake));
        compare("upgrade delay", format!("{} s", ownership.upgrade_delay), format!("{} s", terms.upgrade_delay));
        self.agreed(&differences)
    }

    /// Refuses an initialised router whose functions lead elsewhere.
    ///
    /// # Errors
    /// Names every difference.
    pub async fn leads(&self, wanted: &Routes) -> Result<()> {
        self.agreed(&differ(&self.routes(wanted).await?, wanted))
    }

    fn agreed(&self, differences: &[String]) -> Result<()> {
        ensure!(
            differences.is_empty(),
            "the router at {:?} differs from this deployment's settings: {}",
            self.address,
            differences.join("; ")
        );
        Ok(())
    }

    /// The programs of its selectors: its list, compared with the words that it goes by.
    async fn routes(&self, wanted: &Routes) -> Result<Routes> {
        let at = self.address;
        let facets = self.muster().read(IMuster::facetsCall {}).await.map_err(called::<IMuster::facetsCall>)?;
        let mut listed = Routes::new();
        // The router's own functions lead to no program.
        for facet in facets.into_iter().filter(|facet| facet.facetAddress != at) {
            listed.extend(facet.functionSelectors.into_iter().map(|selector| (selector.0, facet.facetAddress)));
        }
        let selectors: BTreeSet<[u8; 4]> =
            IMusterCalls::selectors().chain(listed.keys().copied()).chain(wanted.keys().copied()).collect();
        let mut stored = Routes::new();
        for selector in selectors {
            let program = self.program(selector).await?;
            if !program.is_zero() {
                stored.insert(selector, program);
            }
        }
        let differences = differ(&stored, &listed);
        ensure!(
            differences.is_empty(),
            "the storage of the router at {at:?} is not what its facets() says: {}",
            differences.join("; ")
        );
        for function in ONLY_AT_FIRST {
            let leads = stored.keys().any(|selector| name(*selector) == function);
            ensure!(!leads, "the router at {at:?} leads {function} to a program");
        }
        Ok(stored)
    }

    /// The programs that the functions of the interface lead to, from storage: also where the program that could list
    /// them does not run any more.
    ///
    /// # Errors
    /// The node's.
    pub async fn programs(&self) -> Result<BTreeSet<Address>> {
        Ok(self.muster().programs().await?)
    }

    /// Lets selectors lead to other programs. Proposes the changes that are not proposed yet, and accepts all of them together once the last
    /// is old enough: programs that belong together must not be half replaced.
    ///
    /// # Errors
    /// The router's refusals, and when a selector leads to a program that is not among `known`. `owners` takes the owner's own
    /// transactions.
    pub async fn upgrade(
        &self,
        account: &Sender,
        wanted: &Routes,
        known: &BTreeSet<Address>,
        say: &dyn Fn(&str),
        owners: &dyn Fn(Address, &Bytes, &str) -> Result<()>,
    ) -> Result<()> {
        const FAILED: &str = "cannot change the router's programs";
        let at = self.address;
        let changes = self.changes(wanted, known).await?;
        let mut changes = self.progress(account.address(), changes).await.context(FAILED)?;
        if changes.is_empty() {
            say(&format!("router: {} functions lead where they should", wanted.len()));
        }
        if changes.iter().all(|(_, progress)| *progress == Progress::Due) {
            for ((program, selectors), _) in &changes {
                let accept = IMuster::acceptProgramsCall { program: *program, selectors: words(selectors) };
                self.chain.tell(account, &self.muster(), &accept, U256::ZERO, None).await.context(FAILED)?;
                say(&format!("router: {} functions now lead {}", selectors.len(), target(*program)));
            }
            return Ok(());
        }
        for ((program, selectors), progress) in changes.iter_mut().filter(|(_, progress)| *progress == Progress::Missing) {
            let (count, target) = (selectors.len(), target(*program));
            let propose = IMuster::proposeProgramsCall { program: *program, selectors: words(selectors) };
            match self.propose(account, &propose).await.context(FAILED)? {
                Step::Owners(call) => {
                    let owner = self.owner().await?;
                    owners(owner, &call, &format!("{count} functions to lead {target}"))?;
                    say(&format!(
                        "router: its owner {owner:?} must send to {at:?}, to propose that {count} functions lead {target}: {call}"
                    ));
                }
                Step::Waits(at) => *progress = Progress::Waits(at),
                Step::Done => *progress = Progress::Due,
            }
        }
        for ((program, selectors), progress) in &changes {
            // The line of one that is not proposed is the owner's transaction.
            if let Some(once) = progress.waits(&changes) {
                say(&format!("router: {} functions will lead {} {once}", selectors.len(), target(*program)));
            }
        }
        Ok(())
    }

    /// The selectors that must lead elsewhere, as many together as a proposal takes.
    ///
    /// # Errors
    /// When a selector leads to a program that is not among `known`.
    pub(crate) async fn changes(&self, wanted: &Routes, known: &BTreeSet<Address>) -> Result<Vec<Change>> {
        let there = self.routes(wanted).await?;
        let at = self.address;
        let stranger = there.iter().find(|(selector, at)| wanted.get(*selector) != Some(at) && !known.contains(*at));
        if let Some((selector, program)) = stranger {
            bail!(
                "the router at {at:?} leads {} to {program:?}, which this deployment's record does not know: if that is \
                 right, add it to the record's list `former`, and run this again",
                name(*selector)
            );
        }
        let mut changes = Routes::new();
        changes.extend(wanted.iter().filter(|(selector, at)| there.get(*selector) != Some(at)));
        changes.extend(there.keys().filter(|selector| !wanted.contains_key(*selector)).map(|gone| (*gone, Address::ZERO)));
        let parts = by_program(&changes).into_iter().flat_map(|(program, selectors)| {
            let parts: Vec<_> = selectors.chunks(SELECTORS_AT_ONCE).map(|part| (program, part.to_vec())).collect();
            parts
        });
        Ok(parts.collect())
    }

    /// Changes, and how far each is for an account that would accept it.
    ///
    /// # Errors
    /// The node's.
    pub(crate) async fn progress(&self, account: Address, changes: Vec<Change>) -> Result<Vec<(Change, Progress)>> {
        let mut found = Vec::new();
        for (program, selectors) in changes {
            let accept = IMuster::acceptProgramsCall { program, selectors: words(&selectors) };
            let progress = match self.proposed(program, &selectors).await? {
                None => Progress::Missing,
                Some(_) => self.early(account, accept).await?.map_or(Progress::Due, Progress::Waits),
            };
            found.push(((program, selectors), progress));
        }
        Ok(found)
    }

    /// Proposed changes of programs other than `own`, from a block on, and when each can take effect. They stay until they are accepted or
    /// withdrawn: anybody may put one into effect after a later one, and so undo that.
    ///
    /// # Errors
    /// The node's.
    pub async fn others_proposed(&self, since: u64, own: &[Change]) -> Result<Vec<(Change, u64)>> {
        let endpoints = &self.chain.endpoints;
        let filter = serde_json::json!({ "address": self.address, "topics": [IMuster::ProgramsProposed::SIGNATURE_HASH] });
        let mut proposed = BTreeSet::new();
        let last = endpoints.head().await?.number;
        let read = endpoints.past(filter, since..=last, SPAN, |logs| {
            let events = logs.iter().filter_map(|log| abi::event(&log.inner));
            proposed.extend(events.filter_map(|event| match event {
                Event::ProgramsProposed(e) => Some((e.program, e.selectors.iter().map(|selector| selector.0).collect())),
                _ => None,
            }));
            Ok::<_, muster_client::Error>(())
        });
        read.await?;
        let mut open = Vec::new();
        for change in proposed.into_iter().filter(|change| !own.contains(change)) {
            if let Some(at) = self.proposed(change.0, &change.1).await? {
                open.push((change, at));
            }
        }
        Ok(open)
    }

    /// When a proposed change of programs can take effect; none if it is not proposed.
    ///
    /// # Errors
    /// The node's.
    pub(crate) async fn proposed(&self, program: Address, selectors: &[[u8; 4]]) -> Result<Option<u64>> {
        let call = IMuster::proposedProgramsCall { program, selectors: words(selectors) };
        let at = self.muster().read(call).await.map_err(called::<IMuster::proposedProgramsCall>)?;
        Ok((at > 0).then_some(at))
    }

    /// A parameter's proposed value and when it can take effect; none if nothing is proposed.
    ///
    /// # Errors
    /// The node's.
    pub(crate) async fn proposed_parameter(&self, which: u8) -> Result<Option<(U256, u64)>> {
        let call = IMuster::proposedParameterCall { which };
        let next = self.muster().read(call).await.map_err(called::<IMuster::proposedParameterCall>)?;
        Ok((next.effective > 0).then_some((next.value, next.effective)))
    }

    /// Carries a change out that takes effect only some time after its proposal: proposes it unless that has happened, else
    /// accepts it if that is due.
    ///
    /// # Errors
    /// The contract's refusals.
    pub async fn change<P: SolCall, A: SolCall + Clone>(
        &self,
        account: &Sender,
        proposed: bool,
        propose: &P,
        accept: A,
    ) -> Result<Step> {
        if !proposed {
            return self.propose(account, propose).await;
        }
        if let Some(at) = self.early(account.address(), accept.clone()).await? {
            return Ok(Step::Waits(at));
        }
        self.chain.tell(account, &self.muster(), &accept, U256::ZERO, None).await?;
        Ok(Step::Done)
    }

    /// Proposes a change, which is the owner's part.
    async fn propose<P: SolCall>(&self, account: &Sender, propose: &P) -> Result<Step> {
        let muster = self.muster();
        if self.owner().await? != account.address() {
            return Ok(Step::Owners(propose.abi_encode().into()));
        }
        let receipt = self.chain.tell(account, &muster, propose, U256::ZERO, None).await?;
        let effective = muster.events(&receipt).into_iter().find_map(|event| match event {
            Event::ParameterProposed(event) => Some(event.effective),
            Event::ProgramsProposed(event) => Some(event.effective),
            _ => None,
        });
        Ok(Step::Waits(effective.with_context(|| format!("{} left no event", name_of::<P>()))?))
    }

    /// When a proposed change can be accepted, if it is too early now.
    async fn early<A: SolCall>(&self, account: Address, accept: A) -> Result<Option<u64>> {
        match self.muster().try_as(account, accept, U256::ZERO).await {
            Ok(_) => Ok(None),
            Err(error) => match error.refusal() {
                Some(Refusal::Known(Reason::TooEarly(early))) => Ok(Some(early.effective)),
                _ => Err(called::<A>(error)),
            },
        }
    }

    /// The word of its mapping that says where a selector leads.
    async fn program(&self, selector: [u8; 4]) -> Result<Address> {
        let key = layout::selector_key(selector).to_be_bytes();
        let at = keccak256([key, layout::slot(layout::PROGRAMS).to_be_bytes()].concat());
        self.read(at).await.map(address)
    }

    async fn word<R: Packed>(&self, number: u8) -> Result<R> {
        Ok(R::unpack(self.slot(number).await?))
    }

    async fn slot(&self, number: u8) -> Result<Word> {
        self.read(layout::slot(number).to_be_bytes().into()).await
    }

    async fn read(&self, at: B256) -> Result<Word> {
        Ok(Word::from_be_bytes(self.chain.endpoints.word(self.address, at).await?.0))
    }
}

/// The fields of the transaction that created a router.
#[derive(serde::Deserialize)]
struct Created {
    from: Address,
    to: Option<Address>,
    nonce: U64,
    input: Bytes,
}

/// How far a change is that must be proposed first.
pub enum Step {
    /// It has taken effect.
    Done,
    /// It is proposed, and can be accepted at this time.
    Waits(u64),
    /// The owner must send this, to propose it.
    Owners(Bytes),
}

/// How far a change of programs is, of several that take effect together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It is not proposed.
    Missing,
    /// It can be accepted at this time.
    Waits(u64),
    /// It can be accepted.
    Due,
}

impl Progress {
    /// When it takes effect, of these that are accepted together; none if it is not proposed.
    pub(crate) fn waits(self, all: &[(Change, Progress)]) -> Option<String> {
        let times = all.iter().filter_map(|(_, one)| if let Progress::Waits(at) = one { Some(*at) } else { None });
        let last = date(times.max().unwrap_or_default());
        let missing = all.iter().any(|(_, one)| *one == Progress::Missing);
        (self != Progress::Missing).then(|| {
            if missing {
                "once the others are proposed, too, and all are due".into()
            } else {
                format!("{AGAIN} {last}")
            }
        })
    }
}

/// Where functions are to lead, in words.
fn target(program: Address) -> String {
    if program.is_zero() {
        return "nowhere".into();
    }
    format!("to {program:?}")
}

fn differ(are: &Routes, wanted: &Routes) -> Vec<String> {
    let selectors: BTreeSet<_> = are.keys().chain(wanted.keys()).copied().collect();
    let target = |routes: &Routes, selector| routes.get(selector).map_or("nothing".into(), |at| format!("{at:?}"));
    selectors
        .iter()
        .filter(|selector| are.get(*selector) != wanted.get(*selector))
        .map(|at| format!("{} leads to {}, not {}", name(*at), target(are, at), target(wanted, at)))
        .collect()
}

/// Selectors by the program they lead to.
fn by_program(routes: &Routes) -> BTreeMap<Address, Vec<[u8; 4]>> {
    let mut programs: BTreeMap<Address, Vec<[u8; 4]>> = BTreeMap::new();
    for (selector, program) in routes {
        programs.entry(*program).or_default().push(*selector);
    }
    programs
}

/// Selectors as arguments.
pub(crate) fn words(selectors: &[[u8; 4]]) -> Vec<FixedBytes<4>> {
    selectors.iter().copied().map(FixedBytes).collect()
}

/// A function's name, or the selector if the interface has none.
fn name(selector: [u8; 4]) -> String {
    IMusterCalls::name_by_selector(selector).map_or_else(|| FixedBytes(selector).to_string(), Into::into)
}

/// The account in a word, which the contract takes from its lower 20 bytes whatever else the word holds.
fn address(word: Word) -> Address {
    Address::from_slice(&word.to_be_bytes()[12..])
}

fn hex(word: Word) -> String {
    B256::from(word.to_be_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initcode_copies_what_follows_it() {
        let code = initcode(&[0xef, 0xf0, 0, 0, 1]);
        let (prelude, rest) = code.split_at(43);
        assert_eq!(rest, [0xef, 0xf0, 0, 0, 1]);
        assert_eq!((prelude[0], prelude[32], &prelude[33..]), (0x7f, 5, &[0x80, 0x60, 43, 0x60, 0, 0x39, 0x60, 0, 0xf3, 0][..]));
    }

    #[test]
    fn a_routers_initcode_stores_first_who_may_install_it() {
        let code = bound_initcode(&[0xef, 0xf0, 0, 0, 1], Address::repeat_byte(0xab));
        let (first, rest) = code.split_at(24);
        assert_eq!((first[0], &first[1..21], &first[21..]), (0x73, &[0xab; 20][..], &[0x60, 4, 0x55][..]));
        let (prelude, rest) = rest.split_at(43);
        assert_eq!(rest, [0xef, 0xf0, 0, 0, 1]);
        assert_eq!(&prelude[33..], [0x80, 0x60, 67, 0x60, 0, 0x39, 0x60, 0, 0xf3, 0]);
    }

    #[test]
    fn differences_name_the_function_and_both_programs() {
        let selector = IMuster::ownerCall::SELECTOR;
        let (a, b) = (Address::repeat_byte(1), Address::repeat_byte(2));
        assert_eq!(differ(&[(selector, a)].into(), &[(selector, b)].into()), [format!("owner leads to {a:?}, not {b:?}")]);
        assert_eq!(differ(&[([1, 2, 3, 4], a)].into(), &Routes::new()), [format!("0x01020304 leads to {a:?}, not nothing")]);
        assert!(differ(&[(selector, a)].into(), &[(selector, a)].into()).is_empty());
    }
}
