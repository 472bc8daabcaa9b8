//! The block that calls, estimates and reads see, and the search of an estimate, against Nitro's sources.

use alloy_primitives::{hex, Address, Bytes, B256, U256};
use serde_json::{json, Value};

use super::rpc::{dev, number, start, Rpc, START};

/// Writes eight words. First time, `block.number`, `arbBlockNumber`, `arbBlockHash` of the block before that, and base fee. Then the hash
/// that the history has of the block before it, whether `arbBlockHash` of the block itself succeeds, and `blockhash` of the L1 block
/// before.
const LOOK: &[u8] = &hex!(
    "42608052 4360a052"
    "63a3b1b31d60e01b5f52 602060c060045f60645afa50"
    "632b407a8260e01b5f52 600160c05103600452 602060e060245f60645afa50"
    "4861010052"
    "600160c051035f52 602061012060205f730000f90827f1c53a10cb7a02335b1753200029355afa50"
    "632b407a8260e01b5f52 60c051600452 5f5f60245f60645afa61014052"
    "600143034061016052"
);
/// Ends with the words as result, or as the reason of a revert, which an estimate tells.
const RETURN: &[u8] = &hex!("6101006080f3");
const REVERT: &[u8] = &hex!("6101006080fd");
/// Reverts if less than 300,000 gas is left once it has asked: after 5 of its 21.
const FLOOR: &[u8] = &hex!("620493e05a10600a57005b5f5ffd");

/// A question, and its answer.
pub struct Row {
    pub what: &'static str,
    pub expected: &'static str,
    pub got: String,
    /// Where Nitro's sources say so.
    pub by: &'static str,
}

impl Row {
    pub fn is_right(&self) -> bool {
        self.expected == self.got
    }
}

/// A chain whose newest block, N, is 30 seconds after the one before it, and whose clock is 45 seconds after N.
struct Site {
    node: Rpc,
    returns: Address,
    reverts: Address,
    floor: Address,
    newest: u64,
}

impl Site {
    fn new() -> Self {
        let node = start();
        let [returns, reverts] = [RETURN, REVERT].map(|end| node.deploy(&[LOOK, end].concat()));
        let floor = node.deploy(FLOOR);
        node.ok("evm_increaseTime", json!([30]));
        node.ok("eth_sendTransaction", json!([{"to": Address::repeat_byte(9), "value": "0x1"}]));
        node.ok("evm_increaseTime", json!([45]));
        let newest = number(&node.ok("eth_blockNumber", json!([])));
        Self { node, returns, reverts, floor, newest }
    }

    fn block(&self, at: u64) -> Value {
        self.node.ok("eth_getBlockByNumber", json!([format!("{at:#x}"), false]))
    }

    /// The view of a call, in words.
    fn tell(&self, seen: &Bytes) -> String {
        let word = |place: usize| B256::from_slice(&seen[32 * place..32 * place + 32]);
        let name = |at: u64| match at as i64 - self.newest as i64 {
            0 => "N".to_owned(),
            off if off < 0 => format!("N - {}", -off),
            off => format!("N + {off}"),
        };
        let whose = |field: &str, value: U256| {
            let found = (0..=self.newest).rev().find(|at| U256::from(number(&self.block(*at)[field])) == value);
            found.map_or_else(|| value.to_string(), name)
        };
        let hashed = |hash: B256| {
            let found = (0..=self.newest).rev().find(|at| self.block(*at)["hash"] == json!(hash));
            found.map_or_else(|| if hash.is_zero() { "nothing".into() } else { hash.to_string() }, name)
        };
        let time: U256 = word(0).into();
        let time = if time == U256::from(START + 75) { "the clock's".into() } else { whose("timestamp", time) };
        // L1 blocks come every 12 seconds, and the hash of one that was skipped is derived; the last before a new number is the parent's.
        format!(
            "number {}; time {time}; newest hash {}, its own {}; block.number {}, blockhash {}; history ends with {}; base fee {}",
            name(U256::from_be_bytes(word(2).0).to()),
            hashed(word(3)),
            if word(6).is_zero() { "refused" } else { "given" },
            whose("l1BlockNumber", word(1).into()),
            hashed(word(7)),
            hashed(word(5)),
            U256::from_be_bytes(word(4).0),
        )
    }

    fn call(&self, at: Value) -> String {
        let seen = self.node.ok("eth_call", json!([{"to": self.returns}, at]));
        self.tell(&serde_json::from_value(seen).unwrap())
    }

    fn estimate(&self, method: &str, params: Value) -> String {
        let error = self.node.request(method, params)["error"].clone();
        self.tell(&serde_json::from_value(error["data"].clone()).unwrap_or_else(|_| panic!("{error}")))
    }

    /// The answer, or the words of the refusal.
    fn search(&self, request: Value) -> String {
        let answer = self.node.request("eth_estimateGas", json!([request]));
        match answer["result"].as_str() {
            Some(_) => number(&answer["result"]).to_string(),
            None => answer["error"]["message"].as_str().unwrap().to_owned(),
        }
    }
}

const LATEST: &str =
    "number N; time N; newest hash N - 1, its own refused; block.number N, blockhash N - 1; history ends with N - 1; base fee 0";
const FILLED: &str =
    "number N; time N; newest hash N - 1, its own refused; block.number N, blockhash N - 1; history ends with N - 1; base fee 100000000";
const BEFORE: &str = "number N - 1; time N - 1; newest hash N - 2, its own refused; block.number N - 1, blockhash N - 4; history ends with N - 2; base fee 0";
const PENDING: &str =
    "number N + 1; time the clock's; newest hash N, its own refused; block.number N, blockhash N - 1; history ends with nothing; base fee 0";
const CALL: &str = "`DoCall`: state and header of the block";
const AHEAD: &str =
    "`updateHeaderForPendingBlocks`: a copy of N's header with number, parent and time moved on; the state is N's";

/// Asks everything.
pub fn rows() -> Vec<Row> {
    let site = Site::new();
    let (node, newest) = (&site.node, site.newest);
    let hash = site.block(newest)["hash"].clone();
    let call = json!({"from": dev().address(), "to": site.reverts});
    let mut rows = Vec::new();
    let mut row = |what, expected, got, by| rows.push(Row { what, expected, got, by });
    row("`eth_call`, no block named", LATEST, site.call(Value::Null), "`Call`: latest");
    row("`eth_call` at `latest`", LATEST, site.call(json!("latest")), CALL);
    row("`eth_call` at N", LATEST, site.call(json!(format!("{newest:#x}"))), CALL);
    row("`eth_call` at N's hash", LATEST, site.call(json!({"blockHash": hash})), CALL);
    row("`eth_call` at N - 1", BEFORE, site.call(json!(format!("{:#x}", newest - 1))), CALL);
    row("`eth_call` at `pending`", PENDING, site.call(json!("pending")), AHEAD);
    row(
        "`eth_estimateGas`, no block named",
        PENDING,
        site.estimate("eth_estimateGas", json!([call])),
        "`EstimateGas`: pending, unlike go-ethereum's latest",
    );
    row("`eth_estimateGas` at `pending`", PENDING, site.estimate("eth_estimateGas", json!([call, "pending"])), AHEAD);
    row(
        "`eth_estimateGas` at `latest`",
        LATEST,
        site.estimate("eth_estimateGas", json!([call, "latest"])),
        "`DoEstimateGas`: state and header of the block",
    );
    row(
        "`eth_fillTransaction`",
        FILLED,
        site.estimate("eth_fillTransaction", json!([call])),
        "`setDefaults`: estimates at latest",
    );
    let pending = node.ok("eth_getBlockByNumber", json!(["pending", false]));
    let [head, nonce, miner] = ["hash", "nonce", "miner"].map(|field| if pending[field].is_null() { "null" } else { "there" });
    let whose = if pending["number"] == json!(format!("{newest:#x}")) && pending["parentHash"] == site.block(newest)["parentHash"]
    {
        "N"
    } else {
        "another"
    };
    row(
        "`eth_getBlockByNumber` of `pending`",
        "block N; hash null, nonce null, miner null",
        format!("block {whose}; hash {head}, nonce {nonce}, miner {miner}"),
        "`BlockByNumber`: the newest; `GetBlockByNumber` takes three fields out",
    );
    let count = |at: &str| number(&node.ok("eth_getTransactionCount", json!([dev().address(), at])));
    row(
        "`eth_getTransactionCount` at `pending`",
        "as at latest",
        if count("pending") == count("latest") { "as at latest".into() } else { count("pending").to_string() },
        "`GetPoolNonce`: N's state",
    );

    row(
        "estimate of a transfer of ether",
        "21000",
        site.search(json!({"from": dev().address(), "to": Address::repeat_byte(9), "value": "0x1"})),
        "`Estimate`: tried first",
    );
    row(
        "estimate of a call that wants 300,000 gas when it has used 21,005",
        "322789",
        site.search(json!({"to": site.floor})),
        "23,691 (used, refunds and a stipend, by 64/63) fails; doubled until 379,056 is enough; then halves, until the rest is below 1.5 %",
    );
    let (rich, price) = (Address::repeat_byte(0x21), 1_000_000_000u64);
    node.ok("anvil_setBalance", json!([rich, format!("{:#x}", 400_000 * price)]));
    let offer = format!("{price:#x}");
    row(
        "the same by an account that can pay for 400,000 at the price it names",
        "321073",
        site.search(json!({"from": rich, "to": site.floor, "gasPrice": offer})),
        "doubled to 189,528, then halves from 400,000: 294,764, 347,382, 321,073, 307,918, 314,495, 317,784",
    );
    row(
        "by one that would send all it has",
        "insufficient funds for transfer",
        site.search(json!({"from": rich, "to": site.floor, "gasPrice": offer, "value": format!("{:#x}", 400_000 * price)})),
        "value must be less than the balance",
    );
    row(
        "with a limit of 200,000",
        "execution reverted",
        site.search(json!({"to": site.floor, "gas": "0x30d40"})),
        "fails at the most it may have, and not for want of gas",
    );
    rows
}

const HEAD: &str = "
## What calls and estimates see

N is the newest block; the clock has gone on since. Compared with OffchainLabs/nitro 6dce8d139 (April 2026) and its go-ethereum 49b38a638,
read for facts: `arbitrum/apibackend.go` (`headerByNumberImpl`, `StateAndHeaderByNumberOrHash`, `BlockByNumber`, `GetPoolNonce`),
`internal/ethapi/api.go` (`Call`, `DoCall`, `EstimateGas`, `DoEstimateGas`, `updateHeaderForPendingBlocks`), `eth/gasestimator`,
`arbos/tx_processor.go` (`L1BlockNumber`), `precompiles/ArbSys.go`. Nitro's own test of it is `system_tests/pendingblock_test.go`. It looks
ahead at `pending` since v2.3 (February 2024). For a client that names `latest`, the node makes estimates in block N. The transaction comes into N + 1 or later.

\"Newest hash\" is `arbBlockHash` of the block before, and \"its own\" that of the block itself. `blockhash` is asked for the L1
block before `block.number`. Nitro answers with the newest L2 block when that came. \"History\" is the contract of EIP-2935. The
base fee is 0 for calls that name no price; `eth_fillTransaction` names one.

| asked | must be | is | by |
| --- | --- | --- | --- |
";

const TAIL: &str = "
## Where ArbOS keeps its state

In the storage of `0xA4B05FffffFffFFFFfFFfffFfffFFfffFfFfFFFf`, in the words where Nitro has it (`arbos/storage`, `arbos/arbosState`,
`arbos/programs`, `arbos/addressSet`, `arbos/l1pricing`, `arbos/l2pricing` and `arbos/features` of the same commit): a [copy of another
chain](../devnode.md#a-copy-of-another-chain) finds it there. Three of the words were compared with values that others have read on public chains (`devnode/src/arbos.rs`); no public chain has been copied yet.

| state | on a copy |
| --- | --- |
| rules for programs; each program's version, costs, footprint, age, cache; module hashes; data pricer; activation gas | goes on |
| chain owners, cache managers, address table, minimum base fee, speed limit, scheduled upgrade, floor of calldata's price | goes on |
| hashes that BLOCKHASH and `arbBlockHash` give, L1's number | goes on, read by a call and from the header |
| L1's price of data | told by ArbGasInfo, not charged |
| fee accounts, gas backlog and constraints, L1's reimbursements, retryables, sends to L1, native tokens, filtered transactions | not looked at |
";

/// The page's section about them.
pub fn section(rows: &[Row]) -> String {
    let mut page = HEAD.to_owned();
    for Row { what, expected, got, by } in rows {
        page += &format!("| {what} | {expected} | {} | {by} |\n", if got == expected { "so" } else { got });
    }
    page + TAIL
}
