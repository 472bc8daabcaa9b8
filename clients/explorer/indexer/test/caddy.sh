# Sourced: caddy_find DIRECTORY puts Debian's Caddy on PATH where there is none, unpacked into that directory: installing it would start it. Returns 1 where it cannot be had.
caddy_find() {
  ! command -v caddy >/dev/null || return 0
  mkdir -p "$1"
  (cd "$1" && apt-get download -qq caddy && dpkg -x caddy_*.deb .) >/dev/null 2>&1 || return 1
  PATH=$PATH:$1/usr/bin
}
