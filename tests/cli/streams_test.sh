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
echo passed
