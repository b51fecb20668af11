#!/usr/bin/env bash
# The local cache is never vital: deleted, full or locked, all goes on; and nobody removes it while it is in use.
source "$(dirname "$0")/lib.sh"
mkdir tmp && export TMPDIR=$work/tmp
run 0 -r repo init --plain
seq 3000000 >input

# Starts a backup that has read half of its input, and waits for the rest.
start() {
  rm -f pipe && mkfifo pipe
  "$KIN" -r repo "$@" backup --stdin <pipe >out 2>err &
  backup=$!
  exec 9>pipe
  head -c 12000000 input >&9
  local index='cache/kin/*/index-*/db/CURRENT'
  [ "${1-}" = --no-cache ] && index='tmp/kin-index-*/db/CURRENT'
  for _ in $(seq 100); do
    compgen -G "$index" >/dev/null && return
    sleep 0.1
  done
  fail "there is no index after 10 seconds"
}
# Gives it the rest; it must end well.
finish() {
  tail -c +12000001 input >&9
  exec 9>&-
  wait $backup || fail "the backup failed"
  run_saved=$(cat out err)
  run 0 -r repo check --read-data
  run 0 -r repo dump latest stdin
  cmp -s input out || fail "what was saved is not what was read"
}

start
rm -rf cache
finish
grep -q "going on without the cache" <<<"$run_saved" || fail "the loss of the cache is not told: $run_saved"
[ "$(grep -c "going on without" <<<"$run_saved")" = 1 ] || fail "it is told more than once"
[ -z "$(ls tmp)" ] || fail "a temporary index is left"

# Another kin does not remove it, however old it looks; afterwards it may.
start
find cache -exec touch -d '3 days ago' {} +
"$KIN" cache --cleanup --max-age 1 >listed 2>&1 || fail "cache --cleanup failed"
grep -q "in use" listed || fail "a cache in use is not told as such: $(cat listed)"
[ -d cache/kin/*/index-*/db ] || fail "a cache in use was removed"
finish
grep -q "going on without" <<<"$run_saved" && fail "the cache was lost"
find cache -exec touch -d '3 days ago' {} +
run 0 cache --cleanup --max-age 1
says "removed"
[ -z "$(ls cache/kin)" ] || fail "the old cache is still there"

# One that is only asked is not written to, but it is used.
run 0 -r repo backup input
run 0 -r repo similar input
run 0 -r repo similar input
touch reference
run 0 -r repo similar input
cp out first
[ -z "$(find cache -type f -newer reference ! -name lock)" ] || fail "who only asks writes to the cache"
find cache -exec touch -d '3 days ago' {} +
run 0 -r repo similar input
cmp -s out first || fail "another answer"
run 0 cache --cleanup --max-age 1
[ -d cache/kin/*/index-*/db ] || fail "a cache that was just asked was removed as old"

# What a process that was killed has left in it is known to who asks next, and to who asks meanwhile.
start
run 0 -r repo similar input
says "another kin is using the feature store"
kill -9 $backup && wait $backup 2>/dev/null || true
exec 9>&-
for _ in 1 2 3; do
  run 0 -r repo similar input
  cmp -s out first || fail "another answer after a kill"
done
for _ in 1 2 3 4; do "$KIN" -r repo similar input >/dev/null 2>&1 & pids="${pids-} $!"; done
for pid in $pids; do wait "$pid" || fail "one of several that ask at once failed"; done
run 0 -r repo similar input
cmp -s out first || fail "another answer after several asked at once"
rm -rf cache

# A temporary index of a process that was killed goes with the next one, those of the living stay.
start --no-cache
kill -9 $backup && wait $backup 2>/dev/null || true
exec 9>&-
killed=$(ls tmp)
[ -n "$killed" ] || fail "no temporary index to sweep"
mkdir tmp/kin-index-other tmp/kin-backup
start --no-cache
run 0 -r repo --no-cache snapshots
for name in $killed; do [ ! -e "tmp/$name" ] || fail "$name is still there"; done
finish
[ "$(ls tmp)" = "$(printf 'kin-backup\nkin-index-other')" ] || fail "there are $(ls tmp)"
# No place for one at all.
TMPDIR=$work/missing run 0 -r repo --no-cache check
TMPDIR=$work/missing run 0 -r repo --no-cache backup input

# A cache opens where hardly a thread can be had. (Root has no such limit.)
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 711 . && mkdir few && cp "$KIN" few/kin && cp input few && chown -R 54321 few
  few() {
    (cd few && XDG_CACHE_HOME=$PWD/cache TMPDIR=$PWD setpriv --reuid=54321 --regid=54321 --clear-groups \
      bash -c 'ulimit -u '"$1"'; shift; ./kin "$@"' kin "$@" >out 2>err) || fail "with $1 threads: kin ${*:2}"
  }
  few 1000 -r repo init --plain
  few 1000 -r repo backup input
  few 8 -r repo ls latest
  few 8 -r repo similar input
fi

# A place where none can be is told, once.
echo file >no-cache
for place in no-cache /proc/kin no-cache/below; do
  run 0 --cache-dir "$place" -r repo backup input
  [ "$(grep -c "going on without the cache" err)" = 1 ] || fail "--cache-dir $place: not told, or more than once"
done
run 0 --no-cache -r repo backup input
[ ! -s err ] || fail "complains of a cache that nobody wants"

# A disk that is full: before it begins, and in its midst.
if [ "$(id -u)" = 0 ] && rm -rf cache && mkdir cache && mount -t tmpfs -o size=8m none cache 2>/dev/null; then
  trap 'umount -l "$work/cache"; cleanup' EXIT
  start
  dd if=/dev/zero of=cache/filler bs=4k 2>/dev/null || true
  finish
  grep -q "going on without the cache" <<<"$run_saved" || fail "the cache had room: $run_saved"
  seq 100 >small
  run 0 -r repo backup small
  rm cache/filler
  run 0 -r repo backup small
fi
echo passed
