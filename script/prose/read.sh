#!/usr/bin/env bash
# Reads the pages and the comments of sources: no sentence of more than 35 words, no page of docs/ above 2,500, none of the
# constructions that CONTRIBUTING.md drops.
#   script/prose/read.sh                 all of them; each finding with its line
#   script/prose/read.sh --comments      counts the findings in comments by folder; FILES may follow
#   script/prose/read.sh --table         words, sentences, the longest, and readability, page by page
#   script/prose/read.sh --since COMMIT  the same of all pages together, at that commit and now; a shallow clone must fetch it first
#   script/prose/read.sh [--table] PAGES
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=script/prose
table=
if [ "${1:-}" = --table ]; then table=yes; shift; fi
if [ "${1:-}" = --since ]; then table=yes; fi
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
  echo "prose: textlint needs Node.js 20, and this is $(node --version)" >&2
  exit
fi
if ! cmp -s $here/package-lock.json $here/node_modules/.installed; then
  echo "prose: installing textlint with npm" >&2
  npm ci --prefix $here --silent --no-audit --no-fund
  cp $here/package-lock.json $here/node_modules/.installed
fi
if [ "${1:-}" = --comments ]; then exec node $here/comments.js --count "${@:2}"; fi
pages=("$@")
if [ ${#pages[@]} = 0 ]; then mapfile -t pages < <(git ls-files '*.md'); fi
if [ -n "$table" ]; then exec node $here/table.js "${pages[@]}"; fi
code=0
$here/node_modules/.bin/textlint --rulesdir $here/rules "${pages[@]}" || code=$?
[ $# -gt 0 ] || node $here/comments.js || code=$?
exit $code
