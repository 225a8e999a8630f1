# Sourced by tools/run and tools/test: what HotKV needs from Debian 12, and how to get what is missing.
#
# need_packages build        compiler, build tools, libraries
# need_packages build test   and what the tests use
# Nothing is touched when all is there. redis-server is taken from redis-tools (its binary lies in there), so that
# no Redis service is left running on the machine.

HOTKV_PACKAGES_BUILD="g++ cmake ninja-build ccache pkg-config liblmdb-dev libzstd-dev liburing-dev libroaring-dev
  libfmt-dev catch2 libbenchmark-dev libmimalloc-dev libxxhash-dev nlohmann-json3-dev libcli11-dev"
HOTKV_PACKAGES_TEST="redis-tools python3 python3-redis"
HOTKV_PACKAGES_BENCH="redis-tools python3 libhnswlib-dev"

say() { printf '%s\n' "$*" >&2; }

missing_packages() {
  # One call of dpkg-query for all of them; unknown names are reported on its error output only.
  local installed
  installed=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null | sed -n 's/^.i *//p')
  local package
  for package in "$@"; do
    grep -qxF -- "$package" <<<"$installed" || printf '%s ' "$package"
  done
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "Not root and no sudo here. As root, run: $*"
    return 1
  fi
}

install_packages() {
  local log status=0
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  say "Installing: $*"
  {
    as_root apt-get -qq update </dev/null >"$log" 2>&1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "$@" \
      </dev/null >>"$log" 2>&1
  } || status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 20 "$log" >&2
    say "apt-get could not install: $*"
  fi
  rm -f "$log"
  return "$status"
}

need_packages() {
  local names="" group missing
  for group in "$@"; do
    case $group in
      build) names="$names $HOTKV_PACKAGES_BUILD" ;;
      test) names="$names $HOTKV_PACKAGES_TEST" ;;
      bench) names="$names $HOTKV_PACKAGES_BENCH" ;;
    esac
  done
  if ! command -v dpkg-query >/dev/null; then
    say "This is not Debian: packages are not checked. Needed: $(echo $names)"
    return 0
  fi
  missing=$(missing_packages $names)
  [ -z "$missing" ] || install_packages $missing
}

# Node's clients for tests/clients, from npm; without them those tests are skipped and say so.
need_node_clients() {
  local root=$1
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    command -v apt-get >/dev/null && install_packages nodejs npm || true
  fi
  [ -f "$root/build/node/.complete" ] &&
    cmp -s "$root/tests/clients/package.json" "$root/build/node/package.json" && return 0
  command -v npm >/dev/null || { say "npm is not to be had: the Node clients' tests are skipped."; return 0; }
  mkdir -p "$root/build/node"
  cp "$root/tests/clients/package.json" "$root/build/node/"
  if (cd "$root/build/node" && timeout 300 npm install --no-audit --no-fund --silent </dev/null >npm.log 2>&1); then
    touch "$root/build/node/.complete"
  else
    say "npm could not fetch the Node clients (build/node/npm.log): their tests are skipped."
  fi
}

# report_skipped FILE: FILE is ctest's output. Names what was skipped, and fails where CI is set: there everything has to be
# installed, and a test that does not run tests nothing.
report_skipped() {
  local names
  names=$(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*\*\*\*Skipped.*$/\1/p' "$1")
  [ -n "$names" ] || return 0
  say ""
  say "################ SKIPPED, so not tested (what was missing is in Testing/Temporary/LastTest.log):"
  say "$(sed 's/^/################   /' <<<"$names")"
  [ -z "${CI:-}" ] || { say "################ CI is set: this is a failure."; return 1; }
}

# build_preset ROOT PRESET [targets…]: configures when needed and builds; silent unless it fails.
build_preset() {
  local root=$1 preset=$2 log
  shift 2
  mkdir -p "$root/build/$preset"
  log="$root/build/$preset/build.log"
  if ! (cd "$root" && cmake --preset "$preset") >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    say "Configuring preset $preset failed (build/$preset/build.log)."
    return 1
  fi
  if ! ninja -C "$root/build/$preset" -j "$(nproc)" "$@" </dev/null >"$log" 2>&1; then
    grep -E 'error|FAILED|undefined reference' "$log" | head -n 40 >&2
    say "Building preset $preset failed (build/$preset/build.log)."
    return 1
  fi
}
