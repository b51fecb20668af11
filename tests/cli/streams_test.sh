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
  timeout 5 tail --pid="$kin" -f /dev/null || { kill -KILL "$kin"; fail "kin backup $* did not stop"; }
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
echo passed
