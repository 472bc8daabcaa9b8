// No page of docs/ with more words than `most`; pages of figures and studies are in folders of their own.
const { sentencesOf, wordsOf } = require("../sentences.js");

module.exports = ({ Syntax, RuleError, report, getFilePath }, { most = 2_500 } = {}) => {
  if (!/(^|\/)docs\/[^/]+\.md$/.test(getFilePath() ?? "")) return {};
  let words = 0;
  const read = (node) => {
    for (const { text } of sentencesOf(node)) words += wordsOf(text).length;
  };
  return {
    [Syntax.Paragraph]: read,
    [Syntax.TableCell]: read,
    [`${Syntax.Document}:exit`](node) {
      if (words > most) report(node, new RuleError(`${words} words, and ${most} are the most: cut what is said twice, then divide it by reader and task`));
    },
  };
};
