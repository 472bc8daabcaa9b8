// No construction of CONTRIBUTING.md's list of what to drop.
const { sentencesOf } = require("../sentences.js");

const DROP = [
  [/^(?:Who|Whom|Whoever|Whomever)\b(?![^.]*\?$)/, "a clause with who as the subject: name the actor"],
  [/^What\b(?![^.]*\?$)/, "a clause with what as the subject: name the thing"],
  [/\b(?:he|him|his|himself)\b/i, "accounts, nodes and people are they"],
  [/\b(?:has|have) to\b/, "must"],
  [/\bwhom\b/i, "name the actor"],
  [/\bdear(?:er|est)?\b/i, "expensive, or a figure"],
  [/\b(?:thereof|therein|whereby|hereby|heretofore|aforementioned)\b/i, "plain words"],
];

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
