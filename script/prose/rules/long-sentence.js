// No sentence of more words than `most`. In a table's cell, semicolons separate a list: figures with their conditions.
const { sentencesOf, wordsOf } = require("../sentences.js");

module.exports = ({ Syntax, RuleError, report, locator }, { most = 35 } = {}) => {
  const read = (node) => {
    for (const { text, index } of sentencesOf(node)) {
      const parts = node.type === Syntax.TableCell ? text.split(";") : [text];
      const words = Math.max(...parts.map((part) => wordsOf(part).length));
      if (words > most) report(node, new RuleError(`${words} words in one sentence, and ${most} are the most: "${text.slice(0, 60)}..."`, { padding: locator.at(index) }));
    }
  };
  return { [Syntax.Paragraph]: read, [Syntax.TableCell]: read };
};
