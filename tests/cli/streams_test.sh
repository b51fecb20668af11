#!/usr/bin/env bash
# What kin reads from pipes, what reads from kin, and the commands that it starts.
source "$(dirname "$0")/lib.sh"
run 0 -r repo init --plain

# interrupted ARG...: one SIGINT ends kin within seconds, with exit code 130 and a valid repository.
interrupted() {
  "$KIN" -r repo backup "$@" >out 2>err <idle &
  local kin=$! code=0
  sleep 1
  kill -INT "$kin"
  timeout 20 tail --pid="$kin" -f /dev/null || { kill -KILL "$kin"; fail "kin backup $* did not stop"; }
  wait "$kin" || code=$?
  [ "$code" = 130 ] || fail "kin backup $*: exit code $code after SIGINT"
  says "interrupted"
  run 0 -r repo check --read-data
  [ -z "$(ls repo/snapshots)" ] || fail "kin backup $* made a snapshot of what was interrupted"
}
mkfifo idle
exec 9<>idle  # a writer that never writes
# A shell without job control starts what is in the background with SIGINT ignored.
set -m
interrupted --stdin
echo "the first bytes" >&9
interrupted --stdin
interrupted --stdin-from-command -- sleep 100
interrupted --stdin-from-command -- sh -c 'echo some; exec >&-; exec sleep 100'
# It ignores SIGTERM, and ends only because nobody reads what it writes.
interrupted --stdin-from-command -- sh -c 'trap "" TERM; sleep 2; exec yes'
# It ignores SIGTERM, and never writes.
interrupted --stdin-from-command -- sh -c 'trap "" TERM; exec sleep 100'
# It is stopped, and is told to go on so that it ends at once.
started=$(date +%s)
interrupted --stdin-from-command -- sh -c 'kill -STOP $$; sleep 100'
[ $(($(date +%s) - started)) -lt 5 ] || fail "a command that was stopped was waited for"
interrupted --files-from -
# timeout(1) signals kin, and then the group that kin is in.
"$KIN" -r repo backup --stdin >out 2>err <idle &
kin=$!
sleep 1
kill -INT "$kin"
kill -INT "$kin" 2>/dev/null || true
code=0; wait "$kin" || code=$?
[ "$code" = 130 ] || fail "exit code $code after two signals at once"
says "interrupted"
# A second one that is meant ends it, whatever it does. (sh ignores SIGTERM for 5 seconds. The thread sanitizer would
# sleep for one before the end.)
TSAN_OPTIONS=${TSAN_OPTIONS:-}:atexit_sleep_ms=0 "$KIN" -r repo backup --stdin-from-command -- sh -c 'trap "" TERM; exec sleep 20' >out 2>err <idle &
kin=$!
sleep 1
kill -INT "$kin"
sleep 1
kill -INT "$kin"
timeout 2 tail -s 0.1 --pid="$kin" -f /dev/null || fail "a second Ctrl-C did not end it"
wait "$kin" || true
"$KIN" delta out - -o delta >out 2>err <idle &
kin=$!
sleep 1
kill -INT "$kin"
timeout 5 tail --pid="$kin" -f /dev/null || { kill -KILL "$kin"; fail "kin delta waits for an idle pipe"; }
wait "$kin" || true
set +m
exec 9>&-

# A pipe inside a command ends as pipes do.
run 0 -r repo backup --stdin-from-command --stdin-filename yes -- sh -c 'yes | head -n 1'
[ ! -s err ] || fail "a command inherited that SIGPIPE is ignored"
run 0 -r repo dump latest yes && [ "$(cat out)" = y ] || fail "the output of a command was not saved"
KIN_PASSWORD=secret run 0 -r sealed init
KIN_PASSWORD_COMMAND='yes secret | head -n 1' run 0 -r sealed snapshots
[ ! -s err ] || fail "the password command inherited that SIGPIPE is ignored"
KIN_PASSWORD_COMMAND='echo secret; exit 1' run 12 -r sealed snapshots
says "the password command failed"

# cut_short CODE ARG...: what reads stdout takes a line and goes away; kin says nothing of that.
cut_short() {
  local wanted=$1
  shift
  { "$KIN" -r repo "$@" 2>err; echo $? >code; } | head -n 1 >out || true
  [ "$(cat code)" = "$wanted" ] || fail "kin $* | head: exit code $(cat code) instead of $wanted"
  [ ! -s err ] || fail "kin $* | head: complains"
}
# More than a pipe holds.
mkdir many && (cd many && printf "%0100d\n" $(seq 3000) | xargs touch) && head -c 1000000 /dev/urandom >many/content
cut_short 0 -v backup many  # the work is done to its end
run 0 -r repo backup --tag empty --exclude '*' many
cut_short 141 ls latest --tag ''
cut_short 141 --json find '0*'
first=$("$KIN" -r repo --json snapshots | python3 -c 'import json,sys; print([s["id"] for s in map(json.loads, sys.stdin) if not s["tags"]][-1])')
cut_short 141 diff "$first" latest
cut_short 141 dump "$first" many
cut_short 141 dump "$first" many/content
cut_short 0 snapshots
# A disk that takes no more is a failure, and no damage.
for command in "ls $first" "find 0*" "dump $first many/content" snapshots; do
  code=0; "$KIN" -r repo $command >/dev/full 2>err || code=$?
  [ "$code" = 1 ] || fail "kin $command >/dev/full: exit code $code"
  says "cannot write to stdout"
done
for command in help "help ls" --help "ls --help" --version "--json --version"; do
  code=0; "$KIN" $command >/dev/full 2>err || code=$?
  [ "$code" = 1 ] || fail "kin $command >/dev/full: exit code $code"
  "$KIN" $command >out 2>err && [ -s out ] || fail "kin $command says nothing"
done

# A descriptor that is closed stays useless: nothing of kin's own is read or written in its stead.
before=$(ls repo/snapshots)
code=0; "$KIN" -r repo backup --stdin <&- >out 2>err || code=$?
[ "$code" = 1 ] || fail "--stdin of a closed stdin: exit code $code"
code=0; "$KIN" -r repo backup --files-from - many/content <&- >out 2>err || code=$?
[ "$code" = 1 ] || fail "--files-from - of a closed stdin: exit code $code"
code=0; "$KIN" delta many/content - -o delta <&- >out 2>err || code=$?
[ "$code" = 1 ] && [ ! -e delta ] || fail "delta from a closed stdin: exit code $code"
[ "$(ls repo/snapshots)" = "$before" ] || fail "a snapshot was made of a closed stdin"
for command in "dump $first many" "dump $first many/content" "delta many/content many/content -o -"; do
  code=0; "$KIN" -r repo $command >&- 2>err || code=$?
  [ "$code" = 1 ] || fail "kin $command >&-: exit code $code"
  says "cannot write to stdout"
done
"$KIN" -v -r repo backup many nowhere >/dev/null 2>&- && fail "nowhere was found"
"$KIN" -q -r repo backup many <&- >&- 2>&- || fail "a backup fails where all descriptors are closed"
grep -rlE "kin: |comparing with" cache && fail "the cache holds messages"
[ -z "$(find cache -name lock -size +0)" ] || fail "a lock holds output"
[ "$("$KIN" -r repo backup --stdin-from-command --stdin-filename note -- echo heard >/dev/null 2>&1 <&- && "$KIN" -r repo dump latest note)" = heard ] ||
  fail "a command's output is lost where stdin is closed"
run 0 -r repo check --read-data
echo passed
