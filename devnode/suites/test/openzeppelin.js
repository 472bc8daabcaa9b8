// OpenZeppelin's contracts under Hardhat, with its network helpers and matchers.
const { expect } = require('chai');
const { ethers, network } = require('hardhat');
const helpers = require('@nomicfoundation/hardhat-network-helpers');
const { loadFixture, mine, mineUpTo, time } = helpers;
const { anyValue } = require('@nomicfoundation/hardhat-chai-matchers/withArgs');

const ONE = 10n ** 18n;
const DAY = 86400;
const deploy = (name, ...args) => ethers.deployContract(name, args);
const rpc = (method, ...params) => network.provider.send(method, params);

describe('ERC20 with permit and votes', () => {
  async function fixture() {
    const [owner, other, third] = await ethers.getSigners();
    return { token: await deploy('Token', 1000n * ONE), owner, other, third };
  }

  it('moves tokens and tells of it', async () => {
    const { token, owner, other } = await loadFixture(fixture);
    await expect(token.transfer(other, 5n)).to.emit(token, 'Transfer').withArgs(owner.address, other.address, 5n);
    await expect(token.transfer(other, 3n)).to.changeTokenBalances(token, [owner, other], [-3n, 3n]);
  });

  it('begins as before in each test', async () => {
    const { token, other } = await loadFixture(fixture);
    expect(await token.balanceOf(other)).to.equal(0n);
  });

  it('refuses with typed errors', async () => {
    const { token, owner, other } = await loadFixture(fixture);
    await expect(token.connect(other).transfer(owner, 1n))
      .to.be.revertedWithCustomError(token, 'ERC20InsufficientBalance').withArgs(other.address, 0n, 1n);
    await expect(token.transfer(ethers.ZeroAddress, 1n)).to.be.revertedWithCustomError(token, 'ERC20InvalidReceiver');
    await expect(token.connect(other).transferFrom(owner, other, 1n)).to.be.revertedWithCustomError(token, 'ERC20InsufficientAllowance');
  });

  it('takes a permit signed by EIP-712, until its deadline', async () => {
    const { token, owner, other } = await loadFixture(fixture);
    const { chainId } = await ethers.provider.getNetwork();
    const domain = { name: 'Suite', version: '1', chainId, verifyingContract: await token.getAddress() };
    const types = { Permit: ['owner', 'spender'].map(name => ({ name, type: 'address' })).concat(['value', 'nonce', 'deadline'].map(name => ({ name, type: 'uint256' }))) };
    const deadline = (await time.latest()) + 100;
    const value = { owner: owner.address, spender: other.address, value: 9n, nonce: 0n, deadline };
    const { r, s, v } = ethers.Signature.from(await owner.signTypedData(domain, types, value));
    await token.permit(owner, other, 9n, deadline, v, r, s);
    expect(await token.allowance(owner, other)).to.equal(9n);
    await time.increaseTo(deadline + 1);
    await expect(token.permit(owner, other, 9n, deadline, v, r, s)).to.be.revertedWithCustomError(token, 'ERC2612ExpiredSignature');
  });

  it('permits with a signature of the node (eth_signTypedData_v4)', async () => {
    const { token, owner, other } = await loadFixture(fixture);
    const { chainId } = await ethers.provider.getNetwork();
    const domain = { name: 'Suite', version: '1', chainId: Number(chainId), verifyingContract: await token.getAddress() };
    const fields = [['owner', 'address'], ['spender', 'address'], ['value', 'uint256'], ['nonce', 'uint256'], ['deadline', 'uint256']];
    const data = {
      types: {
        EIP712Domain: [['name', 'string'], ['version', 'string'], ['chainId', 'uint256'], ['verifyingContract', 'address']].map(([name, type]) => ({ name, type })),
        Permit: fields.map(([name, type]) => ({ name, type })),
      },
      primaryType: 'Permit',
      domain,
      message: { owner: owner.address, spender: other.address, value: '7', nonce: '0', deadline: '99999999999' },
    };
    const { r, s, v } = ethers.Signature.from(await new ethers.JsonRpcProvider(network.config.url).send('eth_signTypedData_v4', [owner.address, data]));
    await token.permit(owner, other, 7n, 99999999999n, v, r, s);
    expect(await token.allowance(owner, other)).to.equal(7n);
  });

  it('remembers votes of the past', async () => {
    const { token, owner, other } = await loadFixture(fixture);
    await token.delegate(owner);
    const then = await time.latest();
    await time.increase(50);
    await token.transfer(other, 400n * ONE);
    await mine();
    expect(await token.getVotes(owner)).to.equal(600n * ONE);
    expect(await token.getPastVotes(owner, then)).to.equal(1000n * ONE);
    await expect(token.getPastVotes(owner, (await time.latest()) + 100)).to.be.revertedWithCustomError(token, 'ERC5805FutureLookup');
  });

  it('does several things in one call', async () => {
    const { token, other, third } = await loadFixture(fixture);
    const call = (to, n) => token.interface.encodeFunctionData('transfer', [to.address, n]);
    await token.multicall([call(other, 1n), call(third, 2n)]);
    expect([await token.balanceOf(other), await token.balanceOf(third)]).to.deep.equal([1n, 2n]);
  });
});

describe('Tokens of other kinds', () => {
  it('ERC4626: shares follow assets', async () => {
    const [owner] = await ethers.getSigners();
    const token = await deploy('Token', 1000n);
    const vault = await deploy('Vault', await token.getAddress());
    await token.approve(vault, 1000n);
    await vault.deposit(100n, owner);
    await token.transfer(vault, 100n);
    expect(await vault.previewRedeem(100n)).to.be.closeTo(200n, 1n);
    await expect(vault.redeem(50n, owner, owner)).to.changeTokenBalance(token, owner, 99n);
    await expect(vault.withdraw(10n ** 9n, owner, owner)).to.be.revertedWithCustomError(vault, 'ERC4626ExceededMaxWithdraw');
  });

  it('ERC721: owners, enumeration, safe transfers', async () => {
    const [owner, other] = await ethers.getSigners();
    const c = await deploy('Collection');
    for (const id of [5n, 6n, 7n]) await c.mint(owner, id);
    await c['safeTransferFrom(address,address,uint256)'](owner, other, 6n);
    expect([await c.totalSupply(), await c.ownerOf(6n), await c.tokenOfOwnerByIndex(owner, 1n)]).to.deep.equal([3n, other.address, 7n]);
    await expect(c.mint(c, 9n)).to.be.revertedWithCustomError(c, 'ERC721InvalidReceiver');
    await expect(c.ownerOf(99n)).to.be.revertedWithCustomError(c, 'ERC721NonexistentToken').withArgs(99n);
  });

  it('ERC1155: batches', async () => {
    const [owner, other] = await ethers.getSigners();
    const items = await deploy('Items');
    await expect(items.mint(owner, [1n, 2n], [10n, 20n])).to.emit(items, 'TransferBatch').withArgs(anyValue, ethers.ZeroAddress, owner.address, [1n, 2n], [10n, 20n]);
    await items.safeBatchTransferFrom(owner, other, [1n, 2n], [3n, 4n], '0x');
    expect(await items.balanceOfBatch([owner, other], [1n, 2n])).to.deep.equal([7n, 4n]);
  });
});

describe('Access', () => {
  it('roles, a pause, no way in twice', async () => {
    const [, other] = await ethers.getSigners();
    const roles = await deploy('Roles');
    await expect(roles.connect(other).mine()).to.be.revertedWithCustomError(roles, 'AccessControlUnauthorizedAccount');
    await roles.grantRole(await roles.MINER(), other);
    await roles.connect(other).mine();
    expect(await roles.count()).to.equal(1n);
    await expect(roles.again()).to.be.revertedWithCustomError(roles, 'ReentrancyGuardReentrantCall');
    await roles.pause();
    await expect(roles.connect(other).mine()).to.be.revertedWithCustomError(roles, 'EnforcedPause');
  });

  it('an owner in two steps', async () => {
    const [, other, third] = await ethers.getSigners();
    const owned = await deploy('Owned');
    await owned.transferOwnership(other);
    await expect(owned.connect(third).acceptOwnership()).to.be.revertedWithCustomError(owned, 'OwnableUnauthorizedAccount');
    await owned.connect(other).acceptOwnership();
    expect(await owned.owner()).to.equal(other.address);
  });

  it('a timelock keeps its delay', async () => {
    const [owner, other] = await ethers.getSigners();
    const lock = await deploy('Lock', 2 * DAY, [owner.address]);
    await owner.sendTransaction({ to: lock, value: 5n });
    const call = [other.address, 5n, '0x', ethers.ZeroHash, ethers.ZeroHash];
    await lock.schedule(...call, 2 * DAY);
    await expect(lock.execute(...call)).to.be.revertedWithCustomError(lock, 'TimelockUnexpectedOperationState');
    await time.increase(2 * DAY);
    await expect(lock.execute(...call)).to.changeEtherBalance(other, 5n);
  });

  it('vesting follows the clock', async () => {
    const [, other] = await ethers.getSigners();
    const start = (await time.latest()) + 1000;
    const wallet = await ethers.deployContract('Wallet', [other.address, start, 1000], { value: 1000n });
    await time.increaseTo(start + 500);
    expect(await wallet['releasable()']()).to.be.closeTo(500n, 5n);
    await time.setNextBlockTimestamp(start + 2000);
    await expect(wallet['release()']()).to.changeEtherBalance(wallet, -1000n);
  });
});

describe('Proxies', () => {
  it('UUPS: storage stays, code changes', async () => {
    const logic = await deploy('Logic');
    const proxy = await ethers.getContractAt('Logic', await (await deploy('Upgradable', await logic.getAddress())).getAddress());
    expect([await proxy.value(), await proxy.version()]).to.deep.equal([7n, 1n]);
    await proxy.upgradeToAndCall(await deploy('LogicTwo'), '0x');
    expect([await proxy.value(), await proxy.version()]).to.deep.equal([7n, 2n]);
    await expect(proxy.upgradeToAndCall(await deploy('Items'), '0x')).to.be.revertedWithCustomError(proxy, 'ERC1967InvalidImplementation');
  });

  it('clones where they were foretold', async () => {
    const tools = await deploy('Tools');
    const logic = await deploy('Logic');
    const salt = ethers.id('salt');
    const at = await tools.predict(logic, salt);
    await expect(tools.clone(logic, salt)).to.emit(tools, 'Cloned').withArgs(at);
    await expect(tools.clone(logic, salt)).to.be.revertedWithCustomError({ interface: new ethers.Interface(['error FailedDeployment()']) }, 'FailedDeployment');
    expect(await (await ethers.getContractAt('Logic', at)).version()).to.equal(1n);
  });
});

describe('Cryptography', () => {
  it('ecrecover, Merkle proofs, modular exponentiation', async () => {
    const [owner] = await ethers.getSigners();
    const tools = await deploy('Tools');
    const hash = ethers.hashMessage('hello');
    expect(await tools.signer(hash, await owner.signMessage('hello'))).to.equal(owner.address);
    const [a, b] = [ethers.id('a'), ethers.id('b')];
    const root = ethers.keccak256(ethers.concat(a < b ? [a, b] : [b, a]));
    expect(await tools.inTree([b], root, a)).to.equal(true);
    expect(await tools.inTree([a], root, a)).to.equal(false);
    expect(await tools.modExp(3n, 200n, 1000007n)).to.equal((() => { let r = 1n; for (let i = 0; i < 200; i++) r = r * 3n % 1000007n; return r; })());
  });

  it('secp256r1', async () => {
    const { createSign, generateKeyPairSync, createHash } = require('crypto');
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { x, y } = publicKey.export({ format: 'jwk' });
    const word = part => '0x' + Buffer.from(part, 'base64url').toString('hex').padStart(64, '0');
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const signature = createSign('SHA256').update('hello').sign({ key: privateKey, dsaEncoding: 'ieee-p1363' });
    let s = BigInt('0x' + signature.subarray(32).toString('hex'));
    if (s > order / 2n) s = order - s;
    const hash = '0x' + createHash('sha256').update('hello').digest('hex');
    const r = '0x' + signature.subarray(0, 32).toString('hex');
    expect(await (await deploy('Tools')).p256(hash, r, ethers.toBeHex(s, 32), word(x), word(y))).to.equal(true);
  });
});

describe("Hardhat's network helpers", () => {
  it('mine, mineUpTo, time', async () => {
    const at = await time.latestBlock();
    await mine(10, { interval: 60 });
    expect(await time.latestBlock()).to.equal(at + 10);
    await mineUpTo(at + 15);
    expect(await time.latestBlock()).to.equal(at + 15);
    const now = await time.latest();
    await time.increase(1000);
    expect(await time.latest()).to.be.at.least(now + 1000);
  });

  it('setBalance, setNonce, setCode, setStorageAt, getStorageAt', async () => {
    const ghost = ethers.getAddress('0x00000000000000000000000000000000deadbeef');
    await helpers.setBalance(ghost, 5n * ONE);
    await helpers.setNonce(ghost, 9);
    expect([await ethers.provider.getBalance(ghost), await ethers.provider.getTransactionCount(ghost)]).to.deep.equal([5n * ONE, 9]);
    await helpers.setCode(ghost, '0x60005460005260206000f3');
    await helpers.setStorageAt(ghost, 0, 77);
    expect(BigInt(await helpers.getStorageAt(ghost, 0))).to.equal(77n);
    expect(BigInt(await ethers.provider.call({ to: ghost }))).to.equal(77n);
  });

  it('impersonateAccount', async () => {
    const ghost = '0x00000000000000000000000000000000000ff0ff';
    await helpers.setBalance(ghost, ONE);
    await helpers.impersonateAccount(ghost);
    // Hardhat itself signs for the accounts of its mnemonic only.
    const node = new ethers.JsonRpcProvider(network.config.url);
    const hash = await node.send('eth_sendTransaction', [{ from: ghost, to: ethers.ZeroAddress, value: '0x1' }]);
    expect((await node.waitForTransaction(hash)).from.toLowerCase()).to.equal(ghost);
    await helpers.stopImpersonatingAccount(ghost);
  });

  it('takeSnapshot', async () => {
    const snapshot = await helpers.takeSnapshot();
    const at = await time.latestBlock();
    await mine(5);
    await snapshot.restore();
    expect(await time.latestBlock()).to.equal(at);
  });

  it('setNextBlockBaseFeePerGas, setCoinbase, setPrevRandao, setBlockGasLimit', async () => {
    const tools = await deploy('Tools');
    const coinbase = ethers.getAddress('0x00000000000000000000000000000000c01ba5e0');
    await helpers.setCoinbase(coinbase);
    await helpers.setPrevRandao(12345);
    await helpers.setBlockGasLimit(40_000_000);
    await helpers.setNextBlockBaseFeePerGas(3_000_000_000n);
    await mine();
    const block = await ethers.provider.getBlock('latest');
    expect([block.baseFeePerGas, block.miner, block.gasLimit]).to.deep.equal([3_000_000_000n, coinbase, 40_000_000n]);
    expect((await tools.surroundings({ gasPrice: 4_000_000_000n })).coinbase).to.equal(coinbase);
  });

  it('automine off: several transactions in one block, by price; dropTransaction', async () => {
    const [owner, other, third] = await ethers.getSigners();
    await rpc('evm_setAutomine', false);
    try {
      const send = (from, gwei) => from.sendTransaction({ to: ethers.ZeroAddress, gasLimit: 21000, maxFeePerGas: gwei * 10n ** 9n, maxPriorityFeePerGas: gwei * 10n ** 9n });
      const sent = [await send(owner, 8n), await send(other, 20n), await send(third, 9n)];
      await helpers.dropTransaction(sent[2].hash);
      await mine();
      const block = await ethers.provider.getBlock('latest');
      expect(block.transactions).to.deep.equal([sent[1].hash, sent[0].hash]);
    } finally {
      await rpc('evm_setAutomine', true);
    }
  });

  it('reset', async () => {
    await mine(3);
    await helpers.reset();
    expect(await time.latestBlock()).to.equal(0);
  });
});

describe('What a provider asks', () => {
  it('logs by topic and range, receipts, a typed transaction', async () => {
    const [owner, other] = await ethers.getSigners();
    const token = await deploy('Token', 100n);
    const from = await ethers.provider.getBlockNumber();
    for (const n of [1n, 2n, 3n]) await token.transfer(other, n);
    const logs = await token.queryFilter(token.filters.Transfer(owner, other), from + 1);
    expect(logs.map(l => l.args.value)).to.deep.equal([1n, 2n, 3n]);
    const sent = await owner.sendTransaction({ to: token, type: 1, gasPrice: 4_000_000_000n, accessList: [], data: token.interface.encodeFunctionData('transfer', [other.address, 1n]) });
    expect((await sent.wait()).type).to.equal(1);
  });

  it('a set-code transaction (EIP-7702)', async () => {
    const [owner] = await ethers.getSigners();
    const logic = await deploy('Logic');
    const key = ethers.Wallet.createRandom(ethers.provider);
    const { chainId } = await ethers.provider.getNetwork();
    const authorization = await key.authorize({ address: await logic.getAddress(), nonce: 0, chainId });
    const wallet = new ethers.Wallet('0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80', new ethers.JsonRpcProvider(network.config.url));
    const sent = await wallet.sendTransaction({
      to: key.address, type: 4, authorizationList: [authorization], gasLimit: 200000, data: logic.interface.encodeFunctionData('set', [5n]),
      nonce: await ethers.provider.getTransactionCount(owner.address),
    });
    expect((await sent.wait()).status).to.equal(1);
    expect(await ethers.provider.getCode(key.address)).to.equal(('0xef0100' + (await logic.getAddress()).slice(2)).toLowerCase());
    expect(await (await ethers.getContractAt('Logic', key.address)).value()).to.equal(5n);
  });

  it('a Merkle proof of an account (eth_getProof)', async () => {
    const [owner] = await ethers.getSigners();
    const proof = await rpc('eth_getProof', owner.address, [], 'latest');
    expect(proof.accountProof.length).to.be.greaterThan(0);
    expect(BigInt(proof.balance)).to.equal(await ethers.provider.getBalance(owner));
  });

  it('a trace of a failed transaction', async () => {
    const [owner] = await ethers.getSigners();
    const token = await deploy('Token', 100n);
    const data = token.interface.encodeFunctionData('transfer', [ethers.ZeroAddress, 1n]);
    const sent = await owner.sendTransaction({ to: token, data, gasLimit: 100000 });
    await sent.wait().catch(() => {});
    const frame = await rpc('debug_traceTransaction', sent.hash, { tracer: 'callTracer' });
    expect([frame.error, frame.output.slice(0, 10)]).to.deep.equal(['execution reverted', token.interface.getError('ERC20InvalidReceiver').selector]);
    const steps = await rpc('debug_traceTransaction', sent.hash, {});
    expect(steps.structLogs.at(-1).op).to.equal('REVERT');
    const touched = await rpc('debug_traceTransaction', sent.hash, { tracer: 'prestateTracer' });
    expect(Object.keys(touched).map(a => a.toLowerCase())).to.include(owner.address.toLowerCase());
  });
});
