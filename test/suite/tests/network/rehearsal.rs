//! A rehearsal on a copy of a chain with a Muster that has worked: each call tried there comes out as on the original, which meanwhile
//! stays as it was.

use alloy_primitives::{hex, Address, Bytes, TxKind, B256, U256};
use alloy_sol_types::{sol, SolCall};
use muster_cli::build;
use muster_cli::chain::Chain as Client;
use muster_cli::keepalive;
use muster_devnode::chain::{self, Clock, Mined};
use muster_devnode::endpoint::{Endpoint, Settings};
use muster_devnode::fork::Fork;
use muster_devnode::{stylus, Chain, Config, Devnode, TxRequest};
use muster_fleet::world::{embedded, remote, World, LEAST, STAKE_UNIT, UPGRADE_DELAY};
use muster_model::world::decode;
use muster_model::world::{parameter, spec};
use muster_protocol::IMuster::{IMusterEvents as E, *};
use muster_tests::root;

const DAY: u64 = 86_400;
const ARB_WASM: Address = Address::with_last_byte(0x71);

sol! {
    function activateProgram(address program) external payable returns (uint16, uint256);
    function codehashKeepalive(bytes32 codehash) external payable;
}

/// A chain on which something is tried, and all that happened there since.
struct Stage<'a> {
    chain: &'a Chain,
    muster: Address,
    mined: Vec<Mined>,
}

impl Stage<'_> {
    fn send(&mut self, from: Address, to: TxKind, value: u128, data: impl Into<Bytes>) -> Mined {
        let data: Bytes = data.into();
        let request = TxRequest {
            from: Some(from),
            to: Some(to),
            value: Some(U256::from(value)),
            input: data.into(),
            ..TxRequest::default()
        };
        let mined = self.chain.send(request).unwrap();
        assert!(mined.ok(), "{:?}", mined.outcome);
        self.mined.push(mined.clone());
        mined
    }

    fn call(&mut self, from: Address, value: u128, call: impl SolCall) -> Vec<E> {
        let mined = self.send(from, TxKind::Call(self.muster), value, call.abi_encode());
        mined.outcome.logs.iter().map(|log| decode(log.data.topics(), &log.data.data)).collect()
    }

    fn view<C: SolCall>(&self, call: C) -> C::Return {
        let request = TxRequest {
            to: Some(TxKind::Call(self.muster)),
            input: Bytes::from(call.abi_encode()).into(),
            ..TxRequest::default()
        };
        C::abi_decode_returns(&self.chain.call(&request).unwrap().output).unwrap()
    }

    fn pass(&self, seconds: u64) {
        self.chain.increase_time(seconds).unwrap();
        self.chain.mine(1, 0).unwrap();
    }

    /// Draws until the task starts, and has its node answer. Returns the sum paid out, wei.
    fn settle(&mut self, nobody: Address, operator: Address, id: u64) -> u128 {
        let started = |events: &[E]| events.iter().any(|event| matches!(event, E::TaskStarted(task) if task.id == id));
        while !started(&self.call(nobody, 0, dispatchCall { count: 1 })) {}
        let credit = |stage: &Self| stage.view(accountCall { who: operator }).credit;
        let had = credit(self);
        self.call(operator, 0, submitCall { id, resultDigest: B256::repeat_byte(9) });
        credit(self) - had
    }

    /// Calls that an owner and others might want to try: a parameter, a new program, keeping one alive, tasks. The addresses are the
    /// owner's, a node's operator's and anybody's; `drawn` is a task that waits. Gives the sums that tasks paid.
    fn rehearse(&mut self, [owner, operator, anybody]: [Address; 3], drawn: u64) -> Vec<u128> {
        let mut paid = vec![self.settle(anybody, operator, drawn)];

        let which = parameter("slashTimes");
        self.call(owner, 0, proposeParameterCall { parameter: which, value: U256::from(30) });
        self.pass(UPGRADE_DELAY.into());
        self.call(anybody, 0, acceptParameterCall { parameter: which });
        assert_eq!(self.view(parameterCall { which }).value, U256::from(30));

        // The same program with a note in it has another hash: it is deployed, activated, proposed, and takes over.
        let (_, programs) = build::load(&root()).unwrap();
        let nodes = programs.iter().find(|program| program.name == "nodes").unwrap();
        let code = stylus::deployed_code(&[&nodes.wasm[..], &[0, 6, 5], b"again"].concat());
        let mut init = hex!("61000080600a3d393df3").to_vec();
        init[1..3].copy_from_slice(&u16::try_from(code.len()).unwrap().to_be_bytes());
        let program = self.send(anybody, TxKind::Create, 0, [init, code].concat()).outcome.created.unwrap();
        self.send(anybody, TxKind::Call(ARB_WASM), 10u128.pow(18), activateProgramCall { program }.abi_encode());
        let former = self.view(facetAddressCall { selector: quitCall::SELECTOR.into() });
        let facets = self.view(facetsCall {});
        let facet = facets.into_iter().find(|facet| facet.facetAddress == former).unwrap();
        let selectors = facet.functionSelectors;
        self.call(owner, 0, proposeProgramsCall { program, selectors: selectors.clone() });
        self.pass(UPGRADE_DELAY.into());
        self.call(anybody, 0, acceptProgramsCall { program, selectors });
        assert_eq!(self.view(facetAddressCall { selector: quitCall::SELECTOR.into() }), program);
        self.call(operator, 0, pauseCall {});
        self.call(operator, 0, resumeCall {});

        // One of the first programs is a month old.
        self.pass(32 * DAY);
        let lens = self.view(facetAddressCall { selector: overviewCall::SELECTOR.into() });
        let keep = codehashKeepaliveCall { codehash: self.chain.state().code_hash(lens) };
        let kept = self.send(anybody, TxKind::Call(ARB_WASM), 10u128.pow(18), keep.abi_encode());
        assert_eq!(kept.outcome.logs.len(), 1);

        let created = self.call(anybody, 1_000_000_000, createTaskCall { spec: spec(24, &[]) });
        assert!(!created.is_empty());
        let id = self.view(overviewCall {}).tasks;
        paid.push(self.settle(anybody, operator, id));
        paid
    }
}

#[tokio::test]
async fn what_is_tried_on_a_copy_comes_out_as_on_the_original() {
    if remote().is_some() {
        println!(
            "what_is_tried_on_a_copy_comes_out_as_on_the_original: skipped, because RPC_URL names a node that would be sent it"
        );
        return;
    }
    let node: &'static Devnode = Box::leak(Box::new(embedded()));
    let world = World::on(Some(node), (STAKE_UNIT, LEAST.into()), None, &[]).await;
    let (original, muster, owner) = (node.chain(), world.muster.address(), world.boss.address());
    let [operator, anybody] = [1, 2].map(|n| original.accounts()[n]);
    let mut there = Stage { chain: original, muster, mined: vec![] };
    let fee = world.name_fee("RTX 4090", 24).await;
    there.call(operator, u128::from(LEAST + fee), joinCall { gpuName: "RTX 4090".into(), vram: 24, models: vec![] });
    for id in 1..=3 {
        there.call(anybody, 1_000_000_000, createTaskCall { spec: spec(24, &[]) });
        if id < 3 {
            assert!(there.settle(anybody, operator, id) > 0);
        }
    }
    // L1's blocks come every 12 seconds from the first one on, which a copy does not know.
    let now = original.next_timestamp();
    original.set_next_timestamp(now + 12 - (now - 1_800_000_000) % 12).unwrap();
    original.mine(1, 0).unwrap();
    there.mined.clear();

    let fork = Fork::connect(Endpoint::new(Settings::new(node.url())).unwrap(), None).unwrap();
    let config = chain::Config { clock: Clock::Manual(original.next_timestamp()), ..chain::Config::of_fork(fork.clone()) };
    let copied = Devnode::start(Config { chain: config, ..Config::default() }).unwrap();
    let mut here = Stage { chain: copied.chain(), muster, mined: vec![] };
    let before: Vec<(U256, U256)> = original.state().storage_iter(muster).collect();
    assert!(fork.endpoint().requests() < 6);

    let hands = [owner, operator, anybody];
    let paid_here = here.rehearse(hands, 3);
    assert_eq!(original.head().hash, fork.block_hash());
    assert!(before.iter().all(|(slot, word)| original.state().storage(muster, *slot) == *word));
    println!(
        "{} transactions on a copy of {} words took {} requests",
        here.mined.len(),
        before.len(),
        fork.endpoint().requests()
    );

    let paid_there = there.rehearse(hands, 3);
    assert_eq!((&paid_here, paid_here.len()), (&paid_there, 2));
    assert!(paid_here.iter().all(|paid| *paid > 0));
    for (here, there) in here.mined.iter().zip(&there.mined) {
        let figures = |mined: &Mined| {
            let outcome = &mined.outcome;
            (outcome.status.clone(), outcome.output.clone(), outcome.gas_used, outcome.logs.clone(), outcome.stylus.clone())
        };
        assert_eq!(figures(here), figures(there));
    }
    // Blocks hash all of that, their times and their numbers on both layers.
    assert_eq!(here.chain.head().hash, original.head().hash);
    let (copy, state) = (here.chain.state(), original.state());
    assert_eq!(copy.balance(muster), state.balance(muster));
    for (slot, word) in state.storage_iter(muster) {
        assert_eq!(copy.storage(muster, slot), word, "{slot:#x}");
    }
    for (slot, word) in copy.storage_iter(muster) {
        assert_eq!(state.storage(muster, slot), word, "{slot:#x}");
    }

    // The project's own tools take it for a chain.
    let client = Client::connect(&copied.url()).await.unwrap();
    let programs = world.deployment.behind().map(|(name, program)| (program.address, name.clone())).collect();
    let rows = keepalive::run(&client, None, &programs, 400, |_| {}).await.unwrap();
    assert_eq!(rows.iter().filter(|row| row.needs_attention).count(), programs.len() - 1, "one was kept alive: {rows:?}");
}
