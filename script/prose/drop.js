// The constructions that CONTRIBUTING.md drops, each with its plain form.
module.exports = [
  [/^(?:Who|Whom|Whoever|Whomever)\b(?![^.]*\?$)/, "a clause with who as the subject: name the actor"],
  [/^(?:What|Whatever)\b(?![^.]*\?$)/, "a clause with what as the subject: name the thing"],
  [/\b(?:he|him|his|himself)\b/i, "accounts, nodes and people are they"],
  [/\b(?:has|have) to\b/, "must"],
  [/\bwhom\b/i, "name the actor"],
  [/\bdear(?:er|est)?\b/i, "expensive, or a figure"],
  [/\b(?:thereof|therein|whereby|hereby|heretofore|aforementioned)\b/i, "plain words"],
];
