#!/usr/bin/env bash
# check for a time: how far it came, and that it names the files all the same.
. "$(dirname "$0")/lib.sh"

run 0 init -r repo --plain
mkdir tree
for i in 1 2 3; do head -c 400000 /dev/urandom >"tree/random $i"; seq 20000 | sed "s/^7$i/x/" >tree/numbers; run 0 -r repo backup tree; done
packs=$(find repo/packs -type f | wc -l)
run 0 -r repo check; [ ! -s err ] || fail "words: $(cat err)"; says 'the longest chain has 2 deltas'
run 0 -r repo check --max-duration 1h; says "read $packs of $packs packs"; says 'the oldest check is now of a moment ago'
run 0 --json -r repo check --max-duration 1s; [ "$(field packs_never_read)" = 0 ] && [ "$(field packs_to_read)" = "$packs" ] || fail "$(cat out)"
[ "$(field longest_chain)" = 2 ] && [ "$(field missing_bases)" = 0 ] || fail "$(cat out)"
run 0 --no-cache -r repo check --max-duration 1h; says "read $packs of $packs packs"

# Damage is met, and the file is named; and it counts as not read.
pack=$(find repo/packs -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d' ' -f2); cp "$pack" keep; flip "$pack" $(($(stat -c %s "$pack") / 2))
run 13 -r repo check --max-duration 1h; says "$(basename "$pack" | cut -c 1-8)"; says ':/tree/'; says '1 not yet read and found sound'
cp keep "$pack"; run 0 -r repo check --max-duration 1h; says 'the oldest check is now of'

for words in '--max-duration 0s' '--max-duration x' '--max-duration 1h --read-data' '--max-duration 1h --read-data-subset 1/2' '--max-duration'; do
  # shellcheck disable=SC2086
  run 2 -r repo check $words
done
