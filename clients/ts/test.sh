#!/usr/bin/env bash
# All tests of the TypeScript package, against the embedded node. Needs the same as pack.sh, which it runs unless MUSTER_PACKAGE names a packed file.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }; }
[ -n "${MUSTER_PACKAGE:-}" ] || quietly ./pack.sh "$work"
target=${CARGO_TARGET_DIR:-../../target}
MUSTER_DEVNODE=${MUSTER_DEVNODE:-$(realpath "$(ls -t "$target"/{release,debug}/muster-devnode 2>/dev/null | head -n 1)")}
MUSTER_PACKAGE=${MUSTER_PACKAGE:-$(ls "$work"/*.tgz)}
export MUSTER_DEVNODE MUSTER_PACKAGE
node_modules/.bin/size-limit
quietly node_modules/.bin/publint --strict "$MUSTER_PACKAGE"
quietly node_modules/.bin/attw --profile esm-only "$MUSTER_PACKAGE"
node --test --test-timeout 3000000 --test-reporter spec test/*.test.mjs
