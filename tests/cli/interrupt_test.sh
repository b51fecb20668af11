#!/usr/bin/env bash
# Killed at any moment, the repository stays valid, and the next run goes on from what was stored.
source "$(dirname "$0")/lib.sh"
rounds=${KIN_TEST_LONG:+40}
rounds=${rounds:-8}

mkdir tree
python3 - <<'PYTHON'
import os, random
rng = random.Random(7)
for d in range(20):
    os.makedirs(f"tree/{d:02}")
    for f in range(60):
        with open(f"tree/{d:02}/{f:03}", "wb") as out:
            out.write(rng.randbytes(rng.choice([100, 5000, 70000, 400000])))
with open("tree/large", "wb") as out:
    out.write(rng.randbytes(90_000_000))
PYTHON
run 0 -r repo init --plain
run 0 -r repo backup --host first tree/00
started=$(date +%s%N)
run 0 -r whole init --plain
run 0 -r whole backup tree
whole_ms=$((($(date +%s%N) - started) / 1000000))

for ((i = 1; i <= rounds; ++i)); do
  "$KIN" -r repo backup tree >/dev/null 2>&1 &
  sleep "$(python3 -c "print($whole_ms * $i / $rounds / 1000)")"
  kill -9 $! 2>/dev/null || true
  wait $! 2>/dev/null || true
  run 0 -r repo check
  run 0 -r repo restore latest --host first -t "first$i"
  same tree/00 "first$i/tree/00" --ignore-root
  rm -rf "first$i"
done
run 0 -r repo backup tree
run 0 -r repo check --read-data
run 0 -r repo restore latest -t back
same tree back/tree
[ -z "$(ls repo/tmp)" ] || [ "$(ls repo/tmp | wc -l)" -le 1 ] || fail "rubbish is left in tmp/"

# Ctrl-C: a clean end, and what was stored counts: the next run reads less.
set -m  # or the shell has background jobs ignore interrupts
for part in 0.6 0.4 0.2; do
  rm -rf gentle
  run 0 -r gentle init --plain
  "$KIN" -r gentle backup tree >out 2>err &
  sleep "$(python3 -c "print($whole_ms * $part / 1000)")"
  kill -INT $! 2>/dev/null || true
  code=0; wait $! || code=$?
  [ "$code" = 0 ] || break  # else it was quicker
done
set +m
[ "$code" = 130 ] || fail "exit code $code after SIGINT"
says "interrupted"
run 0 -r gentle check --read-data
run 0 -r gentle --json backup tree
[ "$(field bytes_read)" -lt "$(field total_bytes_processed)" ] || fail "nothing was kept of the interrupted run"
run 0 -r gentle restore latest -t gentle-back
same tree gentle-back/tree
echo passed
