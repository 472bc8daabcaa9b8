// The compiler is the one from npm: nothing is downloaded. NODE_URL says against which node.
const path = require('path');
const { subtask } = require('hardhat/config');
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require('hardhat/builtin-tasks/task-names');
require('@nomicfoundation/hardhat-ethers');
require('@nomicfoundation/hardhat-chai-matchers');

const version = require('solc/package.json').version;
subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async () => ({
  compilerPath: path.join(__dirname, 'node_modules/solc/soljson.js'),
  isSolcJs: true,
  version,
  longVersion: require('solc').version().split('+')[0] + '+' + require('solc').version().split('+')[1].split('.Emscripten')[0],
}));

module.exports = {
  solidity: { version, settings: { optimizer: { enabled: true, runs: 200 }, evmVersion: 'cancun' } },
  defaultNetwork: 'node',
  networks: {
    node: {
      url: process.env.NODE_URL || 'http://127.0.0.1:8547',
      accounts: { mnemonic: 'test test test test test test test test test test test junk' },
      timeout: 60000,
    },
  },
  mocha: { timeout: 60000, reporter: process.env.REPORTER || 'spec' },
};
