// web3.js: reads, signs, sends, deploys, subscribes. Prints {"passed", "failed"} as its last line.
import { readFileSync } from 'node:fs';
import { Web3 } from 'web3';

const url = process.env.NODE_URL ?? 'http://127.0.0.1:8547';
const web3 = new Web3(url);
const artifact = name => JSON.parse(readFileSync(new URL(`artifacts/contracts/Suite.sol/${name}.json`, import.meta.url)));
const [owner, other] = (await web3.eth.getAccounts()).slice(1);
const failed = [];
let passed = 0;

async function check(name, body) {
  try {
    await body();
    passed += 1;
  } catch (error) {
    failed.push(`${name}: ${String(error?.cause?.message ?? error?.message ?? error).split('\n')[0]}`);
  }
}
const equal = (a, b) => {
  if (String(a) !== String(b)) throw new Error(`${a} is not ${b}`);
};
async function deploy(name, ...args) {
  const { abi, bytecode } = artifact(name);
  const contract = new web3.eth.Contract(abi);
  return contract.deploy({ data: bytecode, arguments: args }).send({ from: owner, gas: '5000000' });
}
const key = '0x4c0883a69102937d6231471b5dbb6204fe512961708279f1d7b1b4f8f1a0a4a1';
const account = web3.eth.accounts.privateKeyToAccount(key);
web3.eth.accounts.wallet.add(account);

await check('chain id, network id, version', async () => {
  equal(await web3.eth.getChainId(), await web3.eth.net.getId());
  if (!(await web3.eth.getNodeInfo()).length) throw new Error('no version');
});
await check('coinbase, hash rate, mining, syncing', async () => {
  await web3.eth.getCoinbase();
  equal(await web3.eth.getHashRate(), 0n);
  equal(await web3.eth.isSyncing(), false);
});
await check('gas price, fee history', async () => {
  if ((await web3.eth.getGasPrice()) <= 0n) throw new Error('no price');
  equal((await web3.eth.getFeeHistory(1, 'latest', [50])).gasUsedRatio.length, 1);
});
await check('block by number, hash, tag, with transactions', async () => {
  const block = await web3.eth.getBlock('latest', true);
  equal((await web3.eth.getBlock(block.hash)).number, block.number);
  equal(await web3.eth.getBlockTransactionCount(block.hash), block.transactions?.length ?? 0);
  await web3.eth.getBlock('pending');
  await web3.eth.getBlock('earliest');
});
await check('send, receipt, transaction', async () => {
  const receipt = await web3.eth.sendTransaction({ from: owner, to: account.address, value: 10n ** 18n });
  equal(receipt.status, 1n);
  equal((await web3.eth.getTransaction(receipt.transactionHash)).value, 10n ** 18n);
  equal((await web3.eth.getTransactionFromBlock(receipt.blockNumber, 0)).hash, receipt.transactionHash);
  equal(await web3.eth.getBalance(account.address), 10n ** 18n);
});
await check('sign here, send raw', async () => {
  const signed = await account.signTransaction({ to: other, value: 1n, gas: 21000n, gasPrice: await web3.eth.getGasPrice() + 10n ** 9n, nonce: await web3.eth.getTransactionCount(account.address), chainId: await web3.eth.getChainId() });
  equal((await web3.eth.sendSignedTransaction(signed.rawTransaction)).status, 1n);
});
await check('sign there: a message, a transaction, typed data', async () => {
  const signature = await web3.eth.sign(web3.utils.utf8ToHex('hello'), owner);
  equal(web3.eth.accounts.recover('hello', typeof signature === 'string' ? signature : signature.signature).toLowerCase(), owner.toLowerCase());
  const signed = await web3.eth.requestManager.send({ method: 'eth_signTransaction', params: [{ from: owner, to: other, value: '0x1', gas: '0x5208', gasPrice: '0x77359400', nonce: web3.utils.toHex(await web3.eth.getTransactionCount(owner)) }] });
  if (!(signed.raw ?? signed)) throw new Error('nothing signed');
  const typed = { types: { EIP712Domain: [{ name: 'name', type: 'string' }], Mail: [{ name: 'text', type: 'string' }] }, primaryType: 'Mail', domain: { name: 'x' }, message: { text: 'y' } };
  equal((await web3.eth.signTypedData(owner, typed)).length, 132);
});
await check('estimate, call, access list', async () => {
  equal(await web3.eth.estimateGas({ from: owner, to: other, value: 1n }), 21000n);
  equal(await web3.eth.call({ to: other }), '0x');
  await web3.eth.createAccessList({ from: owner, to: other, data: '0x', gas: '0x10000' });
});
await check('proof of an account', async () => {
  const proof = await web3.eth.getProof(owner, [`0x${'0'.repeat(64)}`]);
  if (!proof.accountProof.length) throw new Error('no proof');
});
await check('storage and code', async () => {
  const token = await deploy('Token', 5n);
  if ((await web3.eth.getCode(token.options.address)).length < 100) throw new Error('no code');
  equal(BigInt(await web3.eth.getStorageAt(token.options.address, 2)), 5n);
});
await check('contract: events, methods, past events', async () => {
  const token = await deploy('Token', 100n);
  const receipt = await token.methods.transfer(other, 7n).send({ from: owner });
  equal(receipt.events.Transfer.returnValues.value, 7n);
  equal(await token.methods.balanceOf(other).call(), 7n);
  const past = await token.getPastEvents('Transfer', { filter: { to: other }, fromBlock: receipt.blockNumber });
  equal(past[0].returnValues.value, 7n);
  equal(await token.methods.transfer(other, 1n).estimateGas({ from: owner }) > 21000n, true);
});
await check('contract: a typed error reaches the caller', async () => {
  const token = await deploy('Token', 1n);
  const error = await token.methods.transfer(other, 9n).call({ from: owner }).catch(e => e);
  equal(error.cause?.errorName ?? error.innerError?.errorName ?? error.cause?.data?.slice(0, 10) ?? error.data?.slice(0, 10), 'ERC20InsufficientBalance');
});
await check('contract: a failing transaction rejects with its reason', async () => {
  const token = await deploy('Token', 1n);
  const error = await token.methods.transfer(other, 9n).send({ from: owner, gas: '100000' }).then(() => null, e => e);
  if (!error) throw new Error('it succeeded');
});
await check('logs', async () => {
  const token = await deploy('Token', 3n);
  const logs = await web3.eth.getPastLogs({ address: token.options.address, fromBlock: 'earliest' });
  equal(logs.length >= 1, true);
});
await check('batch request', async () => {
  const batch = new web3.BatchRequest();
  const first = batch.add({ jsonrpc: '2.0', id: 1, method: 'eth_blockNumber', params: [] });
  const second = batch.add({ jsonrpc: '2.0', id: 2, method: 'eth_chainId', params: [] });
  await batch.execute();
  await Promise.all([first, second]);
});
await check('polled filters', async () => {
  const ask = (method, ...params) => web3.eth.requestManager.send({ method, params });
  const [blocks, pending] = [await ask('eth_newBlockFilter'), await ask('eth_newPendingTransactionFilter')];
  const { transactionHash } = await web3.eth.sendTransaction({ from: owner, to: other, value: 1n });
  equal((await ask('eth_getFilterChanges', blocks)).length, 1);
  equal((await ask('eth_getFilterChanges', pending)).includes(transactionHash), true);
  equal(await ask('eth_uninstallFilter', blocks), true);
});

const socket = new Web3(url.replace('http', 'ws'));
const first = subscription => new Promise((resolve, reject) => {
  subscription.on('data', resolve);
  subscription.on('error', reject);
  setTimeout(() => reject(new Error('nothing came')), 5000);
});
await check('subscription: heads', async () => {
  const heads = first(await socket.eth.subscribe('newHeads'));
  const { blockNumber } = await web3.eth.sendTransaction({ from: owner, to: other, value: 1n });
  equal((await heads).number >= blockNumber, true);
});
await check('subscription: logs', async () => {
  const token = await deploy('Token', 100n);
  const logs = first(await socket.eth.subscribe('logs', { address: token.options.address }));
  await token.methods.transfer(other, 1n).send({ from: owner });
  equal((await logs).address.toLowerCase(), token.options.address.toLowerCase());
});
await check('subscription: pending transactions', async () => {
  const pending = first(await socket.eth.subscribe('pendingTransactions'));
  const { transactionHash } = await web3.eth.sendTransaction({ from: owner, to: other, value: 1n });
  equal(await pending, transactionHash);
});
await check('subscription: syncing', async () => {
  await (await socket.eth.subscribe('syncing')).unsubscribe();
});
socket.currentProvider.disconnect();
for (const line of failed) console.error(`  failed: ${line}`);
console.log(JSON.stringify({ passed, failed: failed.length }));
process.exit(0);
