#!/usr/bin/env bash
# Installs the executors' dependencies into a virtual environment, and prints its Python: prepare.sh [--torch] [DIRECTORY]
# Without a directory it is .muster/executors below the repository. Done once; again only when requirements.lock has changed.
# With --torch it installs those of `transformers` and `diffusers`, 6 GB: requirements-torch.lock, .muster/executors-torch.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lock=requirements.lock place=executors
[ "${1:-}" != --torch ] || { lock=requirements-torch.lock place=executors-torch; shift; }
to=${1:-$here/../../../.muster/$place}
python=${PYTHON:-python3}

"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || {
  echo "executors: Python 3.11 to 3.14 is needed, or PYTHON=... that names one" >&2
  exit 1
}
has_venv() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }
if ! has_venv; then
  echo "executors: installing Python's venv with apt-get" >&2
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  { flock 8 && "${as_root[@]}" apt-get update && "${as_root[@]}" apt-get install -y --no-install-recommends python3-venv; } >/dev/null 2>&1 8</var/lib/dpkg || true
  has_venv || { echo "executors: Python's venv is missing, and apt-get could not install python3-venv: do it, then run this again" >&2; exit 1; }
fi
mkdir -p "$to"
to=$(cd "$to" && pwd)
# One at a time: several tests may begin at once.
exec 9>"$to/lock"
flock 9
wanted=$("$python" -V; sha256sum <"$here/$lock")
if [ "$(cat "$to/done" 2>/dev/null)" != "$wanted" ]; then
  echo "executors: installing into $to" >&2
  rm -rf "$to/venv"
  "$python" -m venv "$to/venv"
  "$to/venv/bin/pip" install --quiet --disable-pip-version-check --require-virtualenv --no-deps --only-binary :all: \
    --require-hashes --requirement "$here/$lock" >&2
  printf '%s\n' "$wanted" >"$to/done"
fi
echo "$to/venv/bin/python"
