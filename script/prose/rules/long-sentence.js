// No sentence of more words than `most`.
const { sentencesOf, wordsOf } = require("../sentences.js");

module.exports = ({ Syntax, RuleError, report, locator }, { most = 35 } = {}) => {
  const read = (node) => {
    for (const { text, index } of sentencesOf(node)) {
      const words = wordsOf(text).length;
      if (words > most) report(node, new RuleError(`${words} words in one sentence, and ${most} are the most: "${text.slice(0, 60)}..."`, { padding: locator.at(index) }));
    }
  };
  return { [Syntax.Paragraph]: read, [Syntax.TableCell]: read };
};
