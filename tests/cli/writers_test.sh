#!/usr/bin/env bash
# Two writers at once, on one machine and with one cache directory: both finish, both snapshots are whole. And who reads meanwhile sees no damage.
source "$(dirname "$0")/lib.sh"
mkdir -p a b shared
for i in $(seq 300); do seq "$i" $((i + 2000)) >"shared/$i"; done
cp -a shared a/; cp -a shared b/; seq 100000 >a/own; seq 100001 200000 >b/own
run 0 -r repo init --plain
for round in 1 2 3; do
  echo "$round" >a/round; echo "$round" >b/round
  "$KIN" -r repo -q backup a >a.out 2>&1 & first=$!
  "$KIN" -r repo -q backup b >b.out 2>&1 & second=$!
  wait $first || { cat a.out; fail "the first writer failed"; }
  wait $second || { cat b.out; fail "the second writer failed"; }
done
run 0 -r repo check --read-data
for tree in a b; do
  run 0 -r repo restore latest --path "$work/$tree" -t "restored-$tree"
  same "$tree" "restored-$tree/$tree"
done
# Readers beside a writer that never rests.
mkdir busy
(
  for i in $(seq 1000); do
    echo "$i" >busy/file
    "$KIN" -r repo -q backup busy || exit 1
    [ ! -e stop ] || exit 0
  done
) >busy.out 2>&1 &
writer=$!
for _ in $(seq 5); do
  run 0 -r repo --no-cache check
  run 0 -r repo --no-cache ls latest
  run 0 -r repo --no-cache stats latest
done
touch stop
wait $writer || { cat busy.out; fail "the writer failed"; }
# Tags at once: every change arrives, and no snapshot becomes two.
count=$(ls repo/snapshots | wc -l)
pids=()
for i in 1 2 3 4; do
  "$KIN" -r repo --no-cache -q tag --add "t$i" >"tag.$i" 2>&1 & pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || { cat tag.*; fail "tag failed"; }; done
[ "$(ls repo/snapshots | wc -l)" = "$count" ] || fail "$count snapshots became $(ls repo/snapshots | wc -l)"
run 0 -r repo --json snapshots --tag t1,t2,t3,t4
[ "$(wc -l <out)" = "$count" ] || fail "a tag was lost"
echo passed
