# Sourced: postgres_start DIRECTORY starts Debian's PostgreSQL on a free port, with the users of deploy/roles.sql. It sets DATABASE_URL, the indexer's, and
# SERVE_DATABASE_URL, the servers'. Its processes have the memory that deploy/compose.yaml gives them. postgres_stop stops it. Returns 1 where it cannot be had. PostgreSQL refuses to run as root, so root lends it the user nobody.
postgres_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1; }

as_other() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$pg_dir" "$@"; else "$@"; fi
}

postgres_start() {
  if [ -z "$(postgres_bin)" ]; then
    echo "indexer: installing PostgreSQL with apt" >&2
    local as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    # One at a time: other tests may install something, too.
    { flock 8 && "${as_root[@]}" apt-get update -qq && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql; } >&2 8</var/lib/dpkg || return 1
  fi
  pg_dir=$1
  mkdir -p "$pg_dir"
  chmod 755 "$pg_dir"
  [ "$(id -u)" != 0 ] || chown nobody "$pg_dir"
  local port
  port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
  local roles
  roles=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../deploy/roles.sql")
  cd "$pg_dir" || return 1
  as_other "$(postgres_bin)/initdb" -D "$pg_dir/data" -U postgres -A trust --no-sync >"$pg_dir/log" 2>&1 &&
    as_other sh -c 'ulimit -d 524288 && exec "$@"' pg_ctl "$(postgres_bin)/pg_ctl" -D "$pg_dir/data" -l "$pg_dir/server.log" -w -o "-c listen_addresses=127.0.0.1 -p $port -k $pg_dir -c fsync=off" start >/dev/null &&
    INDEXER_PASSWORD=indexer SERVE_PASSWORD=serve as_other "$(postgres_bin)/psql" -X -q -v ON_ERROR_STOP=1 -h "$pg_dir" -p "$port" -U postgres -d postgres >>"$pg_dir/log" 2>&1 <"$roles" ||
    { cat "$pg_dir/log" >&2; return 1; }
  cd - >/dev/null || return 1
  export DATABASE_URL="postgresql://muster@127.0.0.1:$port/postgres" SERVE_DATABASE_URL="postgresql://muster_serve@127.0.0.1:$port/postgres" DATABASE_READER=muster_serve
}

postgres_stop() { [ -z "${pg_dir:-}" ] || as_other "$(postgres_bin)/pg_ctl" -D "$pg_dir/data" -m immediate stop >/dev/null 2>&1 || true; }
