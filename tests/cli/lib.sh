# Sourced by the tests of the program: $KIN is the binary, $work a fresh directory, and a failed expectation ends the test with its line.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
KIN=${KIN:-$root/build/release/kin}
work=$(mktemp -d)
cleanup() {
  chmod -R u+rwx "$work" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
export XDG_CACHE_HOME=$work/cache XDG_DATA_HOME=$work/data HOME=$work TMPDIR=$work
unset KIN_REPOSITORY KIN_PASSWORD KIN_PASSWORD_FILE KIN_PASSWORD_COMMAND KIN_CACHE_DIR

fail() {
  echo "FAILED: ${BASH_SOURCE[1]}:${BASH_LINENO[0]}: $*" >&2
  [ -s out ] && { echo "--- stdout" >&2; head -20 out >&2; }
  [ -s err ] && { echo "--- stderr" >&2; head -20 err >&2; }
  exit 1
}

# run CODE ARG...: kin with these arguments must end with this exit code; its output is in files out and err.
run() {
  local wanted=$1 code=0
  shift
  "$KIN" "$@" >out 2>err || code=$?
  [ "$code" = "$wanted" ] || fail "kin $*: exit code $code instead of $wanted"
}

# flip FILE OFFSET: all bits of that byte; whatever stood there, it is another now.
flip() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  printf '%b' "\\x$(printf '%02x' $((byte ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

says() { grep -qF -- "$1" out err || fail "does not say: $1"; }
same() { "$root/scripts/compare_trees" "$@" >differences || { head -20 differences >&2; fail "trees differ: $*"; }; }
# In a fresh process: the number of a field in the last JSON line of out.
field() { tail -n 1 out | python3 -c 'import json,sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
