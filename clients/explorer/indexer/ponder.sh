# Sourced in this directory: installs the packages, and mends one.
export PONDER_TELEMETRY_DISABLED=1
# npm writes this file when it has installed.
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  echo "indexer: installing Ponder with npm" >&2
  # Not `npm ci`: it refuses the lock where the registry lacks a package for some other platform.
  npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.package-lock.json
fi
# Ponder 0.16.10 asks the chain for each event of a contract separately, in each range of blocks: the code that joins them into one question mistakes
# `null`, which stands for any topic, for a topic. Check this again for another version.
sync=node_modules/ponder/dist/esm/sync-historical/index.js
if ! grep -q 'hasTopic1 = filter.topic1 != null' $sync; then
  sed -i -E 's/(hasTopic([123]) = filter\.topic\2) !== undefined/\1 != null/' $sync
  [ "$(grep -c 'hasTopic[123] = filter.topic[123] != null' $sync)" = 3 ] || { echo "indexer: Ponder's $sync is not as prepare.sh knows it" >&2; exit 1; }
fi
# It serves 1,000 live queries at a time, but also counts those that it refuses, for ever: after a thousand mistakes nobody could listen. Count only those that begin.
client=node_modules/ponder/dist/esm/client/index.js
if ! grep -A 1 -F 'liveQueryCount++;' $client | grep -qF 'return streamSSE('; then
  sed -i -E -e '/^ *liveQueryCount\+\+;$/d' -e 's/^( *)return streamSSE\(/\1liveQueryCount++;\n&/' $client
  [ "$(grep -cF 'liveQueryCount++;' $client)" = 1 ] || { echo "indexer: Ponder's $client is not as ponder.sh knows it" >&2; exit 1; }
fi
# It remembers which questions of SQL it allows by ten digits of their hashes. Two with the same ten are found in seconds, one of them a SELECT and the other anything. Compare
# all digits.
parse=node_modules/ponder/dist/esm/utils/sql-parse.js
sed -i -E '/^ *\.digest\("hex"\)$/{N;s/\n *\.slice\(0, 10\);$/;/}' $parse
[ "$(grep -c '\.digest("hex");$' $parse)" = 2 ] && ! grep -q 'slice(0, 10)' $parse || { echo "indexer: Ponder's $parse is not as ponder.sh knows it" >&2; exit 1; }
