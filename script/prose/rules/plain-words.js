// No construction of CONTRIBUTING.md's list of what to drop.
const DROP = require("../drop.js");
const { sentencesOf } = require("../sentences.js");

module.exports = ({ Syntax, RuleError, report, locator }) => {
  const read = (node) => {
    for (const { text, index } of sentencesOf(node)) {
      for (const [pattern, instead] of DROP) {
        const found = pattern.exec(text);
        if (found) report(node, new RuleError(`"${found[0]}": ${instead} ("${text.slice(0, 60)}...")`, { padding: locator.at(index) }));
      }
    }
  };
  return { [Syntax.Paragraph]: read, [Syntax.TableCell]: read };
};
