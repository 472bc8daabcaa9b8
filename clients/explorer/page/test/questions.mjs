// Questions of somebody who has never heard of the project, and the page's answers: from the first view, by clicks or a search, to the words that answer it.
// README.md has the table of them; page.test.mjs goes these ways.

/** Each with its way and with the expected text and its place: a label of the first view's figures, or an element of the page. */
export const questions = (made) => [
  { asked: "Is it alive?", read: "[data-test=status]", answer: /Block [\d,]+, \d+ (s|min) old/ },
  { asked: "How many machines are there, and how many are free?", figure: "Nodes", answer: /^8\s*\d+ idle/ },
  { asked: "What does a task cost?", figure: "Price", answer: /^[\d.,]+ \S+.*for a second of estimated time/ },
  { asked: "How long does one wait?", figure: "Waiting, 24 h", answer: /\d+(\.\d+)? (s|min).*creation to start/ },
  { asked: "Do tasks succeed?", figure: "Success, 24 h", answer: /\d+ %\s*\d+ of \d+ that ran/ },
  { asked: "Does anybody cheat, and what becomes of them?", way: ["Nodes", { choose: ["Slashed", "only slashed ones"] }, { open: 'table[data-table="nodes"] tbody a[href^="#/node/"]' }], read: "[data-test=wrong]", answer: /It was slashed once, [\d.]+ ETH/ },
  { asked: "What became of my task, and who was paid?", way: [{ search: `${made.single[12]}` }], read: ".timeline", answer: /Created with a fee.*Started on node \d+.*was paid/ },
  { asked: "What would my card earn?", way: ["What if"], read: ".figures", answer: /Share of all tasks\s*[\d.]+ %.*A day at this pace\s*[\d.,]+ \S+/s },
  { asked: "Is it fair who gets the tasks?", way: ["Fairness"], read: ".figures", answer: /Unexplained\s*\d+\s*nodes outside the range for all together/ },
  { asked: "Who can change the rules, and have they?", way: ["History"], read: "[data-test=acts]", answer: /a change of programs waits 2 d/ },
];
