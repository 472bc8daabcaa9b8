"""web3.py: reads, signs, sends, deploys, filters. Prints {"passed", "failed"} as its last line."""

import json
import os
import pathlib
import sys

from web3 import Web3
from web3.exceptions import ContractCustomError, TimeExhausted, TransactionNotFound, Web3RPCError

url = os.environ.get("NODE_URL", "http://127.0.0.1:8547")
w3 = Web3(Web3.HTTPProvider(url))
here = pathlib.Path(__file__).parent
passed, failed = 0, []
owner, other = w3.eth.accounts[1:3]


def check(body):
    global passed
    try:
        body()
        passed += 1
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        failed.append(f"{body.__doc__}: {type(error).__name__} {str(error).splitlines()[0] if str(error) else ''}")
    return body


def deploy(name, *arguments):
    artifact = json.loads((here / f"artifacts/contracts/Suite.sol/{name}.json").read_text())
    factory = w3.eth.contract(abi=artifact["abi"], bytecode=artifact["bytecode"])
    receipt = w3.eth.wait_for_transaction_receipt(factory.constructor(*arguments).transact({"from": owner}))
    return w3.eth.contract(address=receipt["contractAddress"], abi=artifact["abi"])


def rpc(method, *params):
    answer = w3.provider.make_request(method, list(params))
    if "error" in answer:
        raise Web3RPCError(str(answer["error"]))
    return answer["result"]


@check
def _():
    """connection, chain id, version"""
    assert w3.is_connected()
    assert str(w3.eth.chain_id) == w3.net.version
    assert w3.client_version


@check
def _():
    """gas price, priority fee, fee history, syncing"""
    assert w3.eth.gas_price > 0
    assert w3.eth.max_priority_fee >= 0
    assert len(w3.eth.fee_history(2, "latest", [10, 90])["baseFeePerGas"]) >= 2
    assert w3.eth.syncing is False


@check
def _():
    """blocks, their receipts and counts"""
    block = w3.eth.get_block("latest", full_transactions=True)
    assert w3.eth.get_block(block["hash"])["number"] == block["number"]
    assert w3.eth.get_block_transaction_count(block["number"]) == len(block["transactions"])
    w3.eth.get_block_receipts(block["number"])


@check
def _():
    """send, receipt, transaction, raw transaction"""
    sent = w3.eth.send_transaction({"from": owner, "to": other, "value": 5})
    assert w3.eth.wait_for_transaction_receipt(sent)["status"] == 1
    assert w3.eth.get_transaction(sent)["value"] == 5
    assert len(w3.eth.get_raw_transaction(sent)) > 90


@check
def _():
    """an account of one's own signs and sends raw"""
    account = w3.eth.account.create()
    w3.eth.wait_for_transaction_receipt(w3.eth.send_transaction({"from": owner, "to": account.address, "value": 10**18}))
    fee = w3.eth.gas_price + 10**9
    signed = account.sign_transaction(
        {"to": other, "value": 1, "gas": 21000, "maxFeePerGas": fee, "maxPriorityFeePerGas": 0, "nonce": 0, "chainId": w3.eth.chain_id}
    )
    assert w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(signed.raw_transaction))["status"] == 1


@check
def _():
    """a set-code transaction (EIP-7702)"""
    account, payer = w3.eth.account.create(), w3.eth.account.create()
    w3.eth.wait_for_transaction_receipt(w3.eth.send_transaction({"from": owner, "to": payer.address, "value": 10**18}))
    logic = deploy("Logic")
    authorization = account.sign_authorization({"chainId": w3.eth.chain_id, "address": logic.address, "nonce": 0})
    signed = payer.sign_transaction(
        {
            "chainId": w3.eth.chain_id, "nonce": 0, "gas": 200000, "maxFeePerGas": w3.eth.gas_price + 10**9,
            "maxPriorityFeePerGas": 0, "to": account.address, "value": 0, "authorizationList": [authorization],
            "data": logic.encode_abi("set", [5]),
        }
    )
    assert w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(signed.raw_transaction))["status"] == 1
    assert bytes(w3.eth.get_code(account.address))[:3] == b"\xef\x01\x00"


@check
def _():
    """the node signs: message, transaction, typed data"""
    assert len(w3.eth.sign(owner, text="hello")) == 65
    signed = w3.eth.sign_transaction(
        {"from": owner, "to": other, "value": 1, "gas": 21000, "gasPrice": w3.eth.gas_price + 10**9, "nonce": w3.eth.get_transaction_count(owner)}
    )
    assert signed["raw"]
    typed = {
        "types": {"EIP712Domain": [{"name": "name", "type": "string"}], "Mail": [{"name": "text", "type": "string"}]},
        "primaryType": "Mail", "domain": {"name": "x"}, "message": {"text": "y"},
    }
    assert len(rpc("eth_signTypedData_v4", owner, typed)) == 132


@check
def _():
    """contract: transact, call, events, estimate"""
    token = deploy("Token", 100)
    receipt = w3.eth.wait_for_transaction_receipt(token.functions.transfer(other, 7).transact({"from": owner}))
    assert token.events.Transfer().process_receipt(receipt)[0]["args"]["value"] == 7
    assert token.functions.balanceOf(other).call() == 7
    assert token.functions.transfer(other, 1).estimate_gas({"from": owner}) > 21000
    assert len(token.events.Transfer.get_logs(from_block=receipt["blockNumber"])) == 1


@check
def _():
    """a typed error reaches the caller"""
    token = deploy("Token", 1)
    try:
        token.functions.transfer(other, 9).call({"from": owner})
    except ContractCustomError:
        return
    raise AssertionError("no error")


@check
def _():
    """state overrides, calls in the past"""
    token = deploy("Token", 100)
    before = w3.eth.block_number
    w3.eth.wait_for_transaction_receipt(token.functions.transfer(other, 7).transact({"from": owner}))
    assert token.functions.balanceOf(other).call(block_identifier=before) == 0
    code = "0x60075f5260205ff3"
    assert int.from_bytes(w3.eth.call({"to": other}, "latest", {other: {"code": code}}), "big") == 7


@check
def _():
    """access list, proof, storage"""
    token = deploy("Token", 100)
    w3.eth.create_access_list({"from": owner, "to": token.address, "data": token.encode_abi("balanceOf", [owner]), "gas": 100000})
    proof = w3.eth.get_proof(token.address, [2])
    assert proof["accountProof"] and proof["storageProof"][0]["value"] == 100 or int.from_bytes(bytes(proof["storageProof"][0]["value"]), "big") == 100
    assert int.from_bytes(w3.eth.get_storage_at(token.address, 2), "big") == 100


@check
def _():
    """simulated blocks (eth_simulateV1)"""
    blocks = w3.eth.simulate_v1(
        {"blockStateCalls": [{"calls": [{"from": owner, "to": other, "value": 5}]}], "validation": False, "traceTransfers": True}, "latest"
    )
    assert blocks[0]["calls"][0]["status"] == 1
    assert len(blocks[0]["calls"][0]["logs"]) == 1


@check
def _():
    """filters: blocks, logs, pending transactions"""
    blocks, pending = w3.eth.filter("latest"), w3.eth.filter("pending")
    token = deploy("Token", 100)
    logs = token.events.Transfer.create_filter(from_block="latest")
    sent = token.functions.transfer(other, 3).transact({"from": owner})
    w3.eth.wait_for_transaction_receipt(sent)
    assert len(blocks.get_new_entries()) >= 2
    assert sent in pending.get_new_entries()
    assert logs.get_new_entries()[-1]["args"]["value"] == 3
    assert w3.eth.uninstall_filter(blocks.filter_id)


@check
def _():
    """filters go on after evm_revert"""
    snapshot = rpc("evm_snapshot")
    blocks = w3.eth.filter("latest")
    for _ in range(3):
        rpc("evm_mine")
    blocks.get_new_entries()
    rpc("evm_revert", snapshot)
    rpc("evm_mine")
    assert len(blocks.get_new_entries()) == 1


@check
def _():
    """replaced and waiting transactions"""
    rpc("evm_setAutomine", False)
    try:
        fee = w3.eth.gas_price + 10**9
        tx = {"from": owner, "to": other, "value": 1, "gas": 21000, "maxFeePerGas": fee, "maxPriorityFeePerGas": 10**9, "nonce": w3.eth.get_transaction_count(owner)}
        sent = w3.eth.send_transaction(tx)
        replaced = w3.eth.replace_transaction(sent, {**tx, "maxFeePerGas": 2 * fee, "maxPriorityFeePerGas": 2 * 10**9})
        try:
            w3.eth.wait_for_transaction_receipt(replaced, timeout=0.3)
            raise AssertionError("mined")
        except TimeExhausted:
            pass
        assert w3.eth.get_transaction_count(owner, "pending") == tx["nonce"] + 1
        rpc("evm_mine")
        assert w3.eth.get_transaction_receipt(replaced)["status"] == 1
        try:
            w3.eth.get_transaction(sent)
            raise AssertionError("still there")
        except TransactionNotFound:
            pass
    finally:
        rpc("evm_setAutomine", True)


@check
def _():
    """the pool's content"""
    assert "pending" in w3.geth.txpool.content()
    assert w3.geth.txpool.status()["pending"] == "0x0"


@check
def _():
    """traces: calls, instructions, state before"""
    token = deploy("Token", 100)
    sent = token.functions.transfer(other, 7).transact({"from": owner})
    w3.eth.wait_for_transaction_receipt(sent)
    assert rpc("debug_traceTransaction", sent.to_0x_hex(), {"tracer": "callTracer"})["type"] == "CALL"
    assert rpc("debug_traceTransaction", sent.to_0x_hex(), {})["structLogs"]
    assert owner.lower() in [a.lower() for a in rpc("debug_traceTransaction", sent.to_0x_hex(), {"tracer": "prestateTracer"})]
    block = w3.eth.get_block("latest")["hash"].to_0x_hex()
    assert rpc("debug_traceBlockByHash", block, {"tracer": "callTracer"})


@check
def _():
    """a batch"""
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_block("latest"))
        batch.add(w3.eth.get_balance(owner))
        assert len(batch.execute()) == 2


@check
def _():
    """a dumped state is loaded again"""
    before = w3.eth.get_balance(other)
    dump = rpc("anvil_dumpState")
    w3.eth.wait_for_transaction_receipt(w3.eth.send_transaction({"from": owner, "to": other, "value": 5}))
    assert rpc("anvil_loadState", dump)
    assert w3.eth.get_balance(other) == before


for line in failed:
    print(f"  failed: {line}", file=sys.stderr)
print(json.dumps({"passed": passed, "failed": len(failed)}))
