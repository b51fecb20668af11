#!/usr/bin/env bash
# kin forget keeps what its rules say, kin undelete brings the others back, and both lose nothing.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ids() { run 0 --json -r repo snapshots; python3 -c 'import json
for line in open("out"): print(json.loads(line)["id"])'; }
forgotten() { ls repo/forgotten 2>/dev/null | wc -l; }

run 0 init --plain -r repo
mkdir -p tree other
# Ten days; each adds a file that no other has, and changes one that all have.
for day in $(seq 1 10); do
  head -c 50000 /dev/urandom >tree/common-part
  head -c $((100000 + day)) /dev/urandom >"tree/of day $day"
  rm -f "tree/of day $((day - 1))"
  run 0 -r repo backup --time "2020-10-$(printf %02d "$day") 12:00:00" --host oak tree
done
run 0 -r repo backup --time "2020-10-10 13:00:00" --host oak --tag mine,kept other
[ "$(ids | wc -l)" = 11 ] || fail "snapshots"

# What says nothing is refused; what would leave a group without any is, too.
run 2 -r repo forget; says 'nothing says which snapshots are to be kept'
run 2 -r repo forget --keep-last 0; says 'nothing says'
run 2 -r repo forget --keep-last -3
run 2 -r repo forget --keep-last 99999999999
run 2 -r repo forget --keep-within 3x
run 2 -r repo forget --keep-last 1 --group-by colour
run 2 -r repo forget --keep-tag mine; says 'would keep none of the 10 snapshots'
run 2 -r repo forget --keep-last 1 "$(ids | sed -n 1p)"; says 'not both'
run 14 -r repo forget ffffffff; says 'there is no snapshot'
[ "$(ids | wc -l)" = 11 ] && [ "$(forgotten)" = 0 ] || fail "something was forgotten"

# A rehearsal says what goes, to the byte: as much as a repository without them lacks.
run 0 --json -r repo forget -n --keep-daily 3; freed=$(field freed_bytes)
[ "$(field forgotten)" = 7 ] && [ "$(field kept)" = 4 ] && [ "$(field unneeded_bytes)" = 0 ] || fail "rehearsal"
# Their own files cannot be made smaller: 7 times both, and what is around them.
[ "$freed" -gt $((7 * 150000)) ] && [ "$freed" -lt $((7 * 150000 + 7 * 4000)) ] || fail "frees $freed"
[ "$(ids | wc -l)" = 11 ] || fail "a rehearsal has forgotten something"
run 0 -r repo forget -n --keep-daily 3; says 'needed by these alone'; says 'would be forgotten'

run 0 --json -r repo forget --keep-daily 3
python3 - <<'PYTHON' || fail "not the last three"
import json
rows = [json.loads(line) for line in open("out")]
kept = sorted(row["time"][:10] for row in rows if row["message_type"] == "kept" and row["paths"][0].endswith("/tree"))
assert kept == ["2020-10-08", "2020-10-09", "2020-10-10"], kept
assert all(row["reasons"] == ["daily"] for row in rows if row["message_type"] == "kept"), rows
PYTHON
[ "$(ids | wc -l)" = 4 ] && [ "$(forgotten)" = 7 ] || fail "forgotten"
run 0 -r repo forget --keep-daily 3; says '0 snapshots forgotten, 4 kept'
run 0 --json -r repo forget -n --keep-last 1; [ "$(field unneeded_bytes)" = "$freed" ] || fail "what nobody needs: $(cat out)"
run 0 -r repo check; run 0 -r repo restore latest --host oak --path "$PWD/tree" --target back; same tree "back/tree"

# One that a clock made that was ahead stays, and no other goes for it.
cp -a repo ahead; run 0 -r ahead backup --time "2100-01-01 12:00:00" --host oak tree
run 0 -r ahead forget -n --keep-daily 3; says 'yet to come'; says '0 snapshots would be forgotten, 5 kept'
run 0 -r ahead forget -n --keep-within 3d; says '0 snapshots would be forgotten, 5 kept'
rm -r ahead

# It comes back, as it was.
run 0 -r repo undelete; says '7 forgotten snapshots'; one=$(sed -n 1p out | cut -c1-8)
run 0 -r repo undelete "$one"; says 'is back'; [ "$(ids | wc -l)" = 5 ] || fail "not back"
run 0 -r repo restore "$one" --target one; [ -s "one/tree/of day 1" ] || fail "not what it was"
run 14 -r repo undelete "$one"; says 'there is no forgotten snapshot'
run 2 -r repo undelete --all "$one"
run 0 -r repo undelete --all; [ "$(ids | wc -l)" = 11 ] && [ "$(forgotten)" = 0 ] || fail "not all back"
run 0 -r repo check

# By name; twice is once. A copy in both places, as a crash leaves it, is a snapshot.
one=$(ids | sed -n 1p)
cp "repo/snapshots/$one" keep; run 0 -r repo forget "$one" "$one"; says '1 snapshot forgotten, 10 kept'
cp keep "repo/snapshots/$one"; run 0 -r repo check; run 0 -r repo forget "$one"; [ "$(ids | wc -l)" = 10 ] || fail "still there"

# Damage: what cannot be read is not forgotten, and not brought back.
flip "repo/forgotten/$one" 60; run 13 -r repo undelete --all; [ "$(ids | wc -l)" = 10 ] || fail "a damaged one came back"
cp keep "repo/forgotten/$one"
other=$(ids | sed -n 1p); flip "repo/snapshots/$other" 60
run 13 -r repo forget --keep-last 1 --group-by ''; [ -e "repo/snapshots/$other" ] || fail "a damaged one was forgotten"
run 13 -r repo forget -n --keep-last 1; says 'cannot be told'
rm -r repo/packs/*; run 13 -r repo undelete "$one"; says 'stays forgotten'; [ -e "repo/forgotten/$one" ] || fail "came back broken"
