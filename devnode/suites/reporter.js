// Mocha's own JSON reporter stumbles over errors that hold themselves.
const { writeFileSync } = require('node:fs');

module.exports = class Reporter {
  constructor(runner) {
    const report = { passed: 0, failed: 0 };
    runner.on('pass', () => (report.passed += 1));
    runner.on('fail', (test, error) => {
      report.failed += 1;
      console.error(`  failed: ${test.fullTitle()}: ${String(error.message).split('\n')[0].slice(0, 200)}`);
    });
    runner.on('end', () => writeFileSync(process.env.REPORT, JSON.stringify(report)));
  }
};
