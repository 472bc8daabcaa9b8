//! Storage lies where Solidity would put it: `abi/MusterStorage.json`, which solc wrote, against the layout of the
//! contracts, and against the words of a contract in use.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use alloy_sol_types::SolCall;
use ethers::abi::Token;
use ethers::types::U256;
use ethers::utils::keccak256;
use muster_core::record;
use muster_model::drive::{operations, play};
use muster_model::model::{validating, WORKERS};
use muster_model::system::System;
use muster_model::validated::{value, ANSWER, CARD};
use muster_model::world::{commitment, spec, who, Dice, OWNER, TOKEN, TREASURY};
use muster_protocol::layout::{self, group, node, profile};
use muster_protocol::parameters::PARAMETERS;
use muster_protocol::IMuster::{self, IMusterEvents as E};
use muster_tests::live::{Live, Site};
use muster_tests::*;
use serde_json::Value;

use crate::WAD;

fn solc() -> Value {
    serde_json::from_str(include_str!("../../../../abi/MusterStorage.json")).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap().to_string();
    parts.fold(first, |mut out, part| {
        out.push_str(&part[..1].to_uppercase());
        out.push_str(&part[1..]);
        out
    })
}

#[test]
fn records_are_packed_as_solc_packs_them() {
    let types = solc()["types"].clone();
    for (name, fields) in record::RECORDS {
        let members = types[format!("t_struct({name})_storage")]["members"].as_array().unwrap().clone();
        assert_eq!(members.len(), fields.len(), "{name}");
        let mut bit = 0;
        for ((field, bits, kind), member) in fields.iter().zip(&members) {
            assert_eq!(member["label"], camel(field), "{name}");
            assert_eq!(number(&member["slot"]), 0, "{name} is one word");
            assert_eq!(number(&member["offset"]) * 8, bit, "{name}.{field}");
            assert_eq!(types[member["type"].as_str().unwrap()]["label"], *kind, "{name}.{field}");
            bit += u64::from(*bits);
        }
    }
    let words = |name: &str| number(&types[format!("t_struct({name})_storage")]["numberOfBytes"]) / 32;
    assert_eq!(["NodeRecord", "TaskRecord", "GroupRecord", "ValidatorDrawRecord", "ProfileRecord"].map(words), [16, 4, 16, 2, 2]);
    let members = types["t_struct(PendingRecord)_storage"]["members"].as_array().unwrap();
    let places: Vec<_> = members.iter().map(|m| (m["label"].as_str().unwrap(), number(&m["slot"]))).collect();
    assert_eq!(places, [("task", 0), ("reserved", layout::PENDING_RESERVED), ("chosen", layout::PENDING_CHOSEN)]);
    let members = types["t_struct(GroupRecord)_storage"]["members"].as_array().unwrap().clone();
    let places: Vec<_> = members.iter().map(|m| (m["label"].as_str().unwrap(), number(&m["slot"]))).collect();
    let expected = [
        ("escrow", group::ESCROW),
        ("order", group::ORDER),
        ("models", group::MODELS),
        ("members", group::MEMBERS),
        ("answers", group::ANSWERS),
        ("moreMembers", group::MORE_MEMBERS),
        ("moreAnswers", group::MORE_ANSWERS),
    ];
    assert_eq!(places, expected);
    let members = types["t_struct(ProfileRecord)_storage"]["members"].as_array().unwrap().clone();
    let places: Vec<_> = members.iter().map(|m| (m["label"].as_str().unwrap(), number(&m["slot"]))).collect();
    assert_eq!(places, [("profile", profile::PROFILE), ("targetSearch", profile::TARGET_SEARCH)]);
    let members = types["t_struct(NodeRecord)_storage"]["members"].as_array().unwrap().clone();
    let places: Vec<_> = members.iter().map(|m| (m["label"].as_str().unwrap(), number(&m["slot"]))).collect();
    let expected = [
        ("node", node::NODE),
        ("operator", node::OPERATOR),
        ("escrow", node::ESCROW),
        ("order", node::ORDER),
        ("inUse", node::IN_USE),
        ("scores", node::SCORES),
        ("models", node::MODELS),
        ("commitment", node::COMMITMENT),
        ("assignment", node::ASSIGNMENT),
        ("worker", node::WORKER),
    ];
    assert_eq!(places, expected);
}

#[test]
fn variables_have_the_slots_that_solc_gives_them() {
    use layout::*;
    let expected = [
        ("head", HEAD),
        ("rules", RULES),
        ("terms", TERMS),
        ("treasury", TREASURY),
        ("ownership", OWNERSHIP),
        ("nextOwner", NEXT_OWNER),
        ("nextTreasury", NEXT_TREASURY),
        ("queue", QUEUE),
        ("groupsByClass", GROUPS_BY_CLASS),
        ("programs", PROGRAMS),
        ("selectors", SELECTORS),
        ("selectorPlaces", SELECTOR_PLACES),
        ("accounts", ACCOUNTS),
        ("nodes", NODES),
        ("branches", BRANCHES),
        ("classes", CLASSES),
        ("members", MEMBERS),
        ("gpuNumbers", GPU_NUMBERS),
        ("gpuNames", GPU_NAMES),
        ("gpuCounts", GPU_COUNTS),
        ("holders", HOLDERS),
        ("pending", PENDING),
        ("entries", ENTRIES),
        ("pools", POOLS),
        ("tournamentTrees", TOURNAMENT_TREES),
        ("profiles", PROFILES),
        ("queueGroups", QUEUE_GROUPS),
        ("limits", LIMITS),
        ("income", INCOME),
        ("validatorDraws", VALIDATOR_DRAWS),
        ("sizesJoined", SIZES_JOINED),
        ("nextPrograms", NEXT_PROGRAMS),
        ("nextParameters", NEXT_PARAMETERS),
        ("receipts", RECEIPTS),
        ("modelNamed", MODEL_NAMED),
        ("gpuListed", GPU_LISTED),
        ("groups", GROUPS),
        ("groupPlaces", GROUP_PLACES),
        ("reserve", RESERVE),
        ("burnt", BURNT),
        ("waiting", WAITING),
        ("sizesOfTrios", SIZES_OF_TRIOS),
        ("stores", STORES),
    ];
    let storage = solc()["storage"].as_array().unwrap().clone();
    assert_eq!(storage.len(), expected.len());
    for (variable, (name, slot)) in storage.iter().zip(expected) {
        assert_eq!(variable["label"], name);
        assert_eq!((number(&variable["slot"]), number(&variable["offset"])), (slot.into(), 0), "{name}");
    }
}

/// A reader that knows only solc's layout.
struct Reader {
    layout: Value,
}

impl Reader {
    fn slot(&self, variable: &str) -> U256 {
        let storage = self.layout["storage"].as_array().unwrap();
        number(&storage.iter().find(|v| v["label"] == variable).unwrap()["slot"]).into()
    }

    /// The entry of a mapping.
    fn entry(&self, variable: &str, key: U256) -> U256 {
        let mut bytes = [0; 64];
        key.to_big_endian(&mut bytes[..32]);
        self.slot(variable).to_big_endian(&mut bytes[32..]);
        keccak256(bytes).into()
    }

    /// A member of a struct's word, as solc packs it.
    fn member(&self, record: &str, member: &str, word: [u8; 32]) -> U256 {
        let types = &self.layout["types"];
        let members = types[format!("t_struct({record})_storage")]["members"].as_array().unwrap();
        let found = members.iter().find(|m| m["label"] == member).unwrap_or_else(|| panic!("{record}.{member}"));
        let size = number(&types[found["type"].as_str().unwrap()]["numberOfBytes"]) as usize;
        let end = 32 - number(&found["offset"]) as usize;
        U256::from_big_endian(&word[end - size..end])
    }
}

#[tokio::test]
async fn a_contract_in_use_holds_what_solidity_would_read() {
    let mut w = World::new(&[("drawDelay", 0)]).await;
    let s = Reader { layout: solc() };
    let name = "A GPU with a name longer than thirty-one characters";
    let models: Vec<u64> = (101..109).collect();
    let (mut a, node) = w.join(3 * LEAST, name, 48, &models).await;
    w.join(LEAST, "Short", 24, &[101]).await;
    let mut app = w.actor(0).await;
    let spec = Spec { gpu: 1 << 16 | 48, models: vec![101, 102, 103, 104, 105, 106, 107], ..Spec::default() };
    let (id, _) = w.create(&mut app, &spec, 12_345).await;
    let (queued, events) = w.create(&mut app, &spec, 20_000).await;
    let ticket = one(&events, "TaskQueued").number("ticket");
    let as_number = |account: ethers::types::Address| U256::from_big_endian(account.as_bytes());

    let head = w.word(s.slot("head")).await;
    assert_eq!(s.member("Head", "tasks", head), queued.into());
    assert_eq!(s.member("Head", "issued", head), 2.into());
    assert_eq!(s.member("Head", "joined", head), 2.into());
    assert_eq!(s.member("Head", "queued", head), 1.into());
    assert_eq!(s.member("Head", "maxStake", head), (3 * LEAST / STAKE_UNIT).into());
    assert_eq!(s.member("Head", "maxVram", head), 48.into());
    let rules = w.word(s.slot("rules")).await;
    assert_eq!(s.member("Rules", "tau", rules), 1_800.into());
    assert_eq!(s.member("Rules", "drawDelay", rules), 0.into());
    let terms = w.word(s.slot("terms")).await;
    assert_eq!(s.member("Terms", "limitMin", terms), 60.into());
    let limits = w.word(s.slot("limits")).await;
    assert_eq!(s.member("Limits", "queueTime", limits), 21_600.into());
    assert_eq!(s.member("Rules", "unbonding", rules), 86_400.into());
    assert_eq!(s.member("Rules", "spread", rules), 10.into());
    let ownership = w.word(s.slot("ownership")).await;
    assert_eq!(s.member("Ownership", "owner", ownership), as_number(w.boss.address()));
    assert_eq!(s.member("Ownership", "stakeUnit", ownership), STAKE_UNIT.into());
    let treasury = w.word(s.slot("treasury")).await;
    assert_eq!(U256::from(treasury), as_number(w.boss.address()));
    assert_eq!(U256::from(w.word(s.slot("income")).await), (2 * LEAST / 100).into());
    let active = w.word(s.entry("classes", (1u64 << 32 | 1 << 16 | 48).into())).await;
    assert_eq!((0..10).map(|c| s.member("Classes", &format!("c{c}"), active).as_u64()).sum::<u64>(), 1);
    assert_eq!(s.member("Classes", "used", active), 1.into());
    assert_eq!(U256::from(w.word(s.entry("sizesJoined", 0.into())).await), (U256::one() << 48) + (U256::one() << 24));

    // A node of 16 words.
    let at = s.entry("nodes", node.into());
    let first = w.word(at).await;
    assert_eq!(s.member("Node", "status", first), 2.into());
    assert_eq!(s.member("Node", "stake", first), (3 * LEAST / STAKE_UNIT).into());
    assert_eq!(s.member("Node", "h", first), WAD.into());
    assert_eq!(s.member("Node", "group", first), (1 << 16 | 48).into());
    assert_eq!(s.member("Node", "models", first), 8.into());
    assert_eq!(s.member("Operator", "account", w.word(at + 1).await), as_number(a.address()));
    let running = w.word(at + 2).await;
    assert_eq!(s.member("Escrow", "creator", running), as_number(app.address()));
    assert_eq!(s.member("Escrow", "fee", running), 12_345.into());
    assert_eq!(s.member("Order", "id", w.word(at + 3).await), id.into());
    assert_eq!(s.member("Models", "flags", w.word(at + 4).await), 7.into());
    assert_eq!(s.member("Models", "m0", w.word(at + 5).await), 107.into());
    let held = w.word(at + 7).await;
    assert_eq!(s.member("Models", "m5", held), 106.into());
    assert_eq!(s.member("Models", "m1", w.word(at + 8).await), 108.into());

    // A queued task of four words, at its ticket.
    let entry = s.entry("entries", ticket.into());
    assert_eq!(s.member("Escrow", "fee", w.word(entry).await), 20_000.into());
    assert_eq!(s.member("Order", "id", w.word(entry + 1).await), queued.into());
    assert_eq!(s.member("Models", "m0", w.word(entry + 3).await), 107.into());

    // Strings, lists and the rest of the mappings.
    let text = s.entry("gpuNames", (1 << 16 | 48).into());
    assert_eq!(U256::from(w.word(text).await), (name.len() * 2 + 1).into());
    let mut bytes = [0; 32];
    text.to_big_endian(&mut bytes);
    let data = U256::from(keccak256(bytes));
    let stored = [w.word(data).await, w.word(data + 1).await].concat();
    assert_eq!(&stored[..name.len()], name.as_bytes());
    let short = w.word(s.entry("gpuNames", (1 << 16 | 24).into())).await;
    assert_eq!((&short[..5], short[31]), (b"Short".as_slice(), 10));
    let holders = w.word(s.entry("holders", U256::from(101u64) << 24)).await;
    assert_eq!((&holders[28..], &holders[24..28], &holders[20..24]), (&[0, 0, 0, 2][..], &[0, 0, 0, 1][..], &[0, 0, 0, 2][..]));
    let account = w.word(s.entry("accounts", as_number(a.address()))).await;
    assert_eq!(s.member("Account", "node", account), node.into());
    let size = w.word(s.entry("gpuCounts", 48.into())).await;
    assert_eq!((s.member("Size", "models", size), s.member("Size", "manned", size)), (1.into(), 1.into()));

    // The router's table.
    let listed = U256::from(w.word(s.slot("selectors")).await).as_u64();
    let facets = w.view("facets", &[]).await.remove(0).into_array().unwrap();
    let mut found = 0;
    for facet in facets {
        let [Token::Address(program), Token::Array(selectors)] = &facet.into_tuple().unwrap()[..] else { panic!() };
        if *program == w.muster.address {
            // The router's own functions are in no table.
            continue;
        }
        for selector in selectors {
            let Token::FixedBytes(selector) = selector else { panic!() };
            let mut key = [0; 32];
            key[..4].copy_from_slice(selector);
            assert_eq!(U256::from(w.word(s.entry("programs", key.into())).await), as_number(*program));
            let place = U256::from(w.word(s.entry("selectorPlaces", key.into())).await).as_u64() - 1;
            let mut start = [0; 32];
            s.slot("selectors").to_big_endian(&mut start);
            let word = w.word(U256::from(keccak256(start)) + place / 8).await;
            let end = 32 - (place % 8) as usize * 4;
            assert_eq!(&word[end - 4..end], &selector[..]);
            found += 1;
        }
    }
    assert_eq!(found, listed);

    w.send(&mut a, "reportRemoved", &[list(&[106])], 0).await;
    assert_eq!(s.member("Models", "flags", w.word(at + 7).await), (1 << 5).into());
    w.conserved().await;
}

/// How many words of each declared variable there are. Panics if one that is not zero lies where solc puts none of them, at one of the keys
/// that its comment names.
fn words_of(live: &Live) -> BTreeMap<String, usize> {
    let s = Reader { layout: solc() };
    let bytes = |word: U256| {
        let mut bytes = [0; 32];
        word.to_big_endian(&mut bytes);
        bytes
    };
    let data = |slot: U256| U256::from(keccak256(bytes(slot)));
    let words = |variable: &str| {
        let types = &s.layout["types"];
        let kind = s.layout["storage"].as_array().unwrap().iter().find(|v| v["label"] == variable).unwrap()["type"].clone();
        let of = types[kind.as_str().unwrap()]["value"].as_str().unwrap_or(kind.as_str().unwrap()).to_string();
        number(&types[of]["numberOfBytes"]).div_ceil(32)
    };
    let facets = live.view(IMuster::facetsCall {});
    let selectors: Vec<U256> = facets
        .iter()
        .flat_map(|f| &f.functionSelectors)
        .map(|selector| U256::from_big_endian(&[&selector.0[..], &[0; 28]].concat()))
        .collect();
    let sizes = [8u64, 24, 40, 80];
    let groups: Vec<u64> = sizes.iter().flat_map(|v| (1..=4).map(move |g| g << 16 | v)).collect();
    // Any GPU of sizes asked for, 0 and one above included, and GPU groups, in four grades; the nodes that wait apart.
    let queues: Vec<u64> =
        (0..=81).chain(groups.iter().copied()).flat_map(|g| [0, 4096, 8192, 12_288].map(|grade| g + grade)).collect();
    let pools: Vec<u64> = queues.iter().copied().chain([u64::from(u32::MAX)]).collect();
    let tasks = live.view(IMuster::overviewCall {}).tasks;
    let models = live.all_logs().into_iter().filter_map(|(event, _)| match event {
        E::ModelNamed(named) => Some(named.model),
        _ => None,
    });
    let keys = |list: Vec<u64>| list.into_iter().map(U256::from).collect::<Vec<_>>();
    let models = keys(models.collect());
    let each = |of: &[u64], shift: u32, count: u64| -> Vec<u64> {
        of.iter().flat_map(|key| (0..count).map(move |i| key << shift | i)).collect()
    };
    let changes = [[0; 20].as_slice(), &[1, 2, 3, 4], &[0; 28]].concat();
    let people: Vec<U256> =
        (0..60).chain(WORKERS).map(who).chain([OWNER, TREASURY, [0x22; 20]]).map(|a| U256::from_big_endian(&a)).collect();
    let named: Vec<(String, u16)> = groups
        .iter()
        .map(|&g| (live.view(IMuster::gpuNameCall { group: g as u32 }), g as u16))
        .filter(|(name, _)| !name.is_empty())
        .collect();
    let gpus = named.iter().map(|(name, vram)| keccak256([name.as_bytes(), &vram.to_be_bytes()].concat()).into()).collect();
    let levels: Vec<u64> = sizes.iter().flat_map(|v| [0, 1, 2, 0xff].map(|level| v << 32 | level << 24)).collect();
    let middle = (0..31).map(|i| 1 << 56 | i).chain([1 << 57]);
    let idle: Vec<u64> = each(&levels, 0, 1).into_iter().chain(middle).collect();
    let branches = keys(idle.iter().flat_map(|key| [*key, key | 1 << 58]).collect());
    // A knock-out tree each for the best and the worst of a pool, for VRAM sizes, queue groups and stakes.
    let trees: Vec<u64> = pools
        .iter()
        .flat_map(|p| [*p, 1 << 32 | p])
        .chain([2 << 32, (2 << 32) + 1, (2 << 32) + 2, (2 << 32) + 3, 3 << 32, 4 << 32])
        .collect();
    let trees: Vec<u64> = trees.iter().flat_map(|t| (0..6).map(move |level| t << 29 | level << 24)).collect();
    let trees = keys(trees.iter().flat_map(|t| (0..260).map(move |i| t | i)).collect());
    // Idle nodes of a group, and active ones.
    let lists: Vec<u64> = groups.iter().flat_map(|g| [*g, g | 1 << 32]).collect();
    let classes: Vec<u64> = each(&groups, 8, 10);
    let mappings: Vec<(&str, Vec<U256>)> = vec![
        ("programs", selectors.clone()),
        ("selectorPlaces", selectors),
        ("accounts", people.clone()),
        ("profiles", people.clone()),
        ("stores", people),
        ("nodes", keys((1..=20).collect())),
        ("branches", branches),
        ("classes", keys(lists)),
        (
            "members",
            keys(
                classes
                    .iter()
                    .flat_map(|c| (0..8).map(move |i| (c >> 8) << 32 | (c & 0xff) << 24 | (i & 1) << 23 | i >> 1))
                    .collect(),
            ),
        ),
        ("gpuNumbers", gpus),
        ("gpuNames", keys(groups.clone())),
        ("gpuCounts", keys(sizes.to_vec())),
        ("holders", keys(each(&(1..=10).collect::<Vec<_>>(), 24, 4))),
        ("pending", keys((0..64).collect())),
        ("entries", keys(each(&pools, 32, 64))),
        ("pools", keys(pools.clone())),
        ("tournamentTrees", trees),
        ("free", keys(each(&pools, 32, 8))),
        ("queueGroups", keys((0..64).collect())),
        ("validatorDraws", keys((0..256).collect())),
        ("sizesJoined", keys((0..4).collect())),
        ("nextPrograms", vec![keccak256(changes).into()]),
        ("nextParameters", keys((0..PARAMETERS.len() as u64).collect())),
        ("receipts", keys((1..=tasks).collect())),
        ("modelNamed", models),
        ("gpuListed", keys(groups.clone())),
        ("groups", keys((1..=64).collect())),
        (
            "waiting",
            keys(queues.iter().flat_map(|q| groups.iter().copied().chain([q & 0xffff_0fff]).map(move |g| g << 32 | q)).collect()),
        ),
        ("sizesOfTrios", keys((0..4).collect())),
    ];
    let mut owners: HashMap<U256, String> = HashMap::new();
    for variable in s.layout["storage"].as_array().unwrap() {
        let name = variable["label"].as_str().unwrap();
        match mappings.iter().find(|(mapping, _)| *mapping == name) {
            Some((_, keys)) => {
                for key in keys {
                    let at = s.entry(name, *key);
                    (0..words(name)).for_each(|i| drop(owners.insert(at + i, name.into())));
                    if name == "gpuNames" || name == "stores" {
                        (0..8).for_each(|i| drop(owners.insert(data(at) + i, name.into())));
                    }
                }
            }
            None => {
                owners.insert(s.slot(name), name.into());
                if name == "selectors" {
                    (0..16).for_each(|i| drop(owners.insert(data(s.slot(name)) + i, name.into())));
                }
            }
        }
    }
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (slot, word) in live.storage() {
        let owner = owners.get(&U256(slot.into_limbs()));
        *found.entry(owner.unwrap_or_else(|| panic!("slot {slot:#x}: {word:#x} belongs to nothing")).clone()).or_default() += 1;
    }
    println!("{found:?}");
    found
}

/// Four nodes of a listed GPU group, a task that was not sampled, and one of three nodes of which one is slashed.
fn validate_some(live: &mut Live) {
    live.set("scorePool", 3);
    live.set("sampleBps", 1);
    for n in 1..=4 {
        live.join(n);
    }
    live.done(OWNER, 0, IMuster::listGpuGroupCall { group: CARD, listed: true });
    for redundancy in [1, 2] {
        let wanted = IMuster::TaskSpec { gpu: CARD, redundancy, ..spec(0, &[]) };
        let (id, group, nodes) = live.started(TOKEN, wanted);
        let said = |node: u32| value(1 + (redundancy == 2 && node == nodes[1]) as u8);
        for &n in &nodes {
            let commitment = commitment(id, n, ANSWER, said(n), value(77));
            live.done(who(n.into()), 0, IMuster::commitCall { id, commitment });
        }
        live.pass(5, 1);
        for &node in &nodes {
            let reveal = IMuster::revealCall { id, group, node, kind: ANSWER, value: said(node), salt: value(77) };
            live.done(who(60), 0, reveal);
        }
    }
}

/// After a thousand random operations, and a few validations, every word that is not zero lies where solc puts a variable of the
/// declaration, and every variable has such a word: nothing is anywhere else.
#[tokio::test(flavor = "multi_thread")]
async fn every_word_belongs_to_a_declared_variable() {
    let Some(site) = Site::new().await else {
        return println!("every_word_belongs_to_a_declared_variable: skipped, because RPC_URL names a node");
    };
    let mut live = site.fresh();
    // Long enough that something was saved for validations.
    let validations: Vec<_> = (5_200..5_205).flat_map(|seed| validating(&mut Dice(seed), 400, 14)).collect();
    play(&mut live, &[validations, operations(5_200, 1_000, 14)].concat(), 14, &Cell::new(0));
    for (call, by) in [
        (IMuster::setPausedCall { on: false }.abi_encode(), OWNER),
        (IMuster::dispatchCall { count: 16 }.abi_encode(), OWNER),
        (IMuster::transferOwnershipCall { newOwner: [9; 20].into() }.abi_encode(), OWNER),
        (IMuster::proposeTreasuryCall { treasury: [9; 20].into() }.abi_encode(), OWNER),
        (IMuster::proposeProgramsCall { program: [0; 20].into(), selectors: vec![[1, 2, 3, 4].into()] }.abi_encode(), OWNER),
        (IMuster::proposeParameterCall { parameter: 17, value: alloy_primitives::U256::from(9) }.abi_encode(), OWNER),
        // The random operations may have swept it.
        (IMuster::joinCall { gpuName: "One more".into(), vram: 80, models: vec![] }.abi_encode(), [0x22; 20]),
    ] {
        let value = if by == OWNER { 0 } else { 1_000 * TOKEN };
        let mined = live.send(by, value, call);
        assert!(mined.ok(), "{:?}", mined.outcome);
    }
    let random = words_of(&live);
    // Savings of validations and sums of slashes need luck there, and a listed group may have lost its third node again.
    let mut live = site.fresh();
    validate_some(&mut live);
    let validated = words_of(&live);
    for name in ["reserve", "burnt", "sizesOfTrios"] {
        assert!(validated.contains_key(name), "{name} holds nothing");
    }
    for variable in solc()["storage"].as_array().unwrap() {
        let name = variable["label"].as_str().unwrap();
        assert!(random.contains_key(name) || validated.contains_key(name), "{name} holds nothing");
    }
    live.inspect();
}
