#!/usr/bin/env bash
# prune: what nobody needs goes, two prunes later or at once, and everything else is as it was.
. "$(dirname "$0")/lib.sh"

packs() { find "${1-repo}/packs" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }'; }
field() { tail -n 1 out | python3 -c 'import json,sys
row = json.load(sys.stdin)
for key in sys.argv[1].split("."): row = row[key]
print(row)' "$1"; }

run 0 init -r repo --plain
mkdir tree
for day in 1 2 3 4 5 6; do
  head -c 200000 /dev/urandom >"tree/of day $day"; rm -f "tree/of day $((day - 1))"
  seq 1 3000 | sed "s/^7$day/changed on $day/" >tree/changing
  for i in $(seq 40); do echo "a small file, number $i, of day $((day > 3 ? day : 1))" >"tree/small $i"; done
  run 0 -r repo backup --time "2020-10-0$day 12:00" tree
  rm -rf "as of $day"; cp -a tree "as of $day"
done
run 0 -r repo prune -n; says '0 packs'
run 0 -r repo prune; says '0 packs (0 B) removed'; [ ! -e repo/marks ] || [ -z "$(ls repo/marks)" ] || fail "marks without need"

# A rehearsal changes nothing.
run 0 -r repo forget --keep-last 2
before=$(find repo -type f | sort | xargs sha256sum)
run 0 -r repo prune -n; says 'would be marked as needless'; run 0 -r repo prune -n --now; says 'would be removed'
[ "$before" = "$(find repo -type f | sort | xargs sha256sum)" ] || fail "a rehearsal has changed something"

# Marked, then removed; until then it can be brought back.
full=$(packs)
run 0 --json -r repo prune; [ "$(field removed.packs)" = 0 ] && [ "$(field marked.packs)" -gt 0 ] || fail "marked at first"
marked=$(field marked.bytes)
one=$("$KIN" --json -r repo undelete | sed -n 1p | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
run 0 -r repo undelete "$one"; run 0 -r repo restore "$one" --target first; same "as of 1" first/tree
run 0 -r repo forget "$one"
run 0 --json -r repo prune; [ "$(field removed.packs)" -gt 0 ] || fail "not removed: $(cat out)"
run 0 --json -r repo prune; [ "$(packs)" -lt $((full - 700000)) ] || fail "still $(packs) of $full, $marked marked"
run 14 -r repo undelete "$one"
run 0 -r repo check --read-data
for day in 5 6; do
  id=$("$KIN" --json -r repo snapshots | python3 -c 'import json,sys
rows = [json.loads(line) for line in sys.stdin]
print([row["id"] for row in rows if row.get("time", "").startswith(f"2020-10-0{sys.argv[1]}")][0])' "$day")
  run 0 -r repo restore "$id" --target "back $day"; same "as of $day" "back $day/tree"
done

# With forget, at once; no more than a new repository of the same takes, but for a little.
run 0 -r repo forget --keep-last 1 --prune --now --max-unused 0%; says 'removed'
run 0 -r repo check --read-data; run 0 -r repo restore latest --target last; same "as of 6" last/tree
run 0 init -r fresh --plain; run 0 -r fresh backup tree
fresh=$(packs fresh); [ "$(packs)" -lt $((fresh * 11 / 10)) ] || fail "$(packs), and $fresh anew"

# What is there as a base alone is told, and goes where its deltas take less without it.
run 0 init -r based --plain; mkdir doc
head -c 300000 /dev/urandom >stays; head -c 500000 /dev/urandom >goes
cat stays goes >doc/it; run 0 -r based backup doc
{ cat stays; seq 1000; } >doc/it; cp -a doc kept; run 0 -r based backup doc
run 0 -r based forget --keep-last 1 --prune --now --max-unused 0%
says 'is there only as the base of others (--rebase: where others do as well, they go)'
[ "$(packs based)" -gt 800000 ] || fail "the base is gone"
run 0 -r based prune -n --rebase --now; says 'would be needless, as 1 delta that took'
run 0 --json -r based prune --rebase --now --max-unused 0%
[ "$(field base_only_blocks)" = 1 ] && [ "$(field rebase_freed_blocks)" = 1 ] && [ "$(field rebase_written_blocks)" = 1 ] || fail "$(cat out)"
[ "$(packs based)" -lt 320000 ] || fail "$(packs based)"
run 0 -r based check --read-data; run 0 -r based restore latest --target rebased; same kept rebased/doc
run 0 -r based prune --rebase; ! grep -q 'only as' out || fail 'still there'

# Options that cannot be.
for limit in -1% 100% x% %; do
  run 2 -r repo prune "--max-unused=$limit"; says 'takes a percentage'
done
run 0 -r repo prune --max-unused unlimited; run 0 -r repo prune --max-unused 1M
run 2 -r repo prune --grace -1; run 2 -r repo prune surplus

# On any doubt, nothing goes.
for i in 1 2 3; do echo "$i" >>tree/changing; head -c 50000 /dev/urandom >tree/more; run 0 -r repo backup tree; done
run 0 -r repo forget --keep-last 1
before=$(find repo/packs repo/snapshots -type f | sort | xargs sha256sum)
for kind in index snapshots; do
  file=$(find "repo/$kind" -type f | sort | sed -n 1p); cp "$file" keep; flip "$file" 60
  run 13 -r repo prune --now; cp keep "$file"
done
# A mark that cannot be read permits nothing, and is told of.
run 0 -r repo prune; file=$(find repo/marks -type f); flip "$file" 40
run 13 -r repo check; says mark
run 0 --json -r repo prune; [ "$(field removed.packs)" = 0 ] || fail "removed by a damaged mark"
run 0 -r repo check; run 0 --json -r repo prune; [ "$(field removed.packs)" -gt 0 ] || fail "not removed"
run 0 -r repo restore latest --target end; same tree end/tree
mv "$(find repo/packs -type f | sort | sed -n 1p)" keep-pack; "$KIN" -r repo prune --now >out 2>err && code=0 || code=$?
[ "$code" = 0 ] || [ "$code" = 13 ] || fail "exit code $code"
