# Sourced by what starts nodes.
# listening LOG COMMAND ...: starts it, and waits until it says where it listens: that is then $url, and its process $started.
listening() {
  : >"$1"
  "${@:2}" >"$1" &
  started=$!
  url=
  while [ -z "$url" ]; do
    kill -0 "$started" 2>/dev/null || { echo "$2 did not start: $(cat "$1")" >&2; exit 1; }
    sleep 0.1
    url=$(sed -n 's/^Listening on \(http[^ ]*\).*/\1/p' "$1")
  done
}
