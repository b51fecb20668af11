#!/usr/bin/env bash
# access: what an append-only repository and a read-only one refuse, and that refusing changes nothing.
. "$(dirname "$0")/lib.sh"

state() { find repo -type f | sort | xargs sha256sum; }
# refused ARG...: with exit code 17 and one sentence, and nothing has changed.
refused() {
  local before
  before=$(state)
  run 17 "$@"
  [ "$(wc -l <err)" = 1 ] || fail "more than a sentence: kin $*"
  says '(kin access read-write lifts that)'
  [ "$before" = "$(state)" ] || fail "refused, and something has changed: kin $*"
}

export KIN_PASSWORD=secret KIN_REPOSITORY=repo
run 0 init --parity 10% --append-only; says 'nothing can be removed from it'
run 0 access; says 'append-only'
run 0 --json access; [ "$(field access)" = append-only ] || fail "$(cat out)"
mkdir tree
for day in 1 2 3; do
  seq 1 2000 | sed "s/^7$/day $day/" >tree/numbers; head -c 30000 /dev/urandom >"tree/of day $day"
  run 0 backup --time "2020-10-0$day 12:00" tree
done
mapfile -t ids < <("$KIN" --json snapshots | python3 -c 'import json,sys
for line in sys.stdin: print(json.loads(line)["id"])')

# Append-only: what removes or replaces is refused; rehearsals, and what adds, are not.
refused forget "${ids[0]}"; refused forget --keep-last 1; refused forget --keep-last 1 --prune
refused damage --seed 1 --yes; refused prune; refused prune --now; refused tag --add x; refused repair packs; refused repair snapshots
refused parity remove; refused parity add 5%
KIN_NEW_PASSWORD=other refused key passwd
run 0 forget --keep-last 1 -n; run 0 prune -n; run 0 repair packs -n; run 0 repair snapshots -n
KIN_NEW_PASSWORD=other run 0 key add
other=$("$KIN" --json key list | python3 -c 'import json,sys
print([row["id"] for row in map(json.loads, sys.stdin) if not row["current"]][0])')
refused key remove "$other"
run 0 repair index; run 0 parity add 20%; run 0 parity; run 0 check --read-data; says 'no problems'
tar -cf tree.tar tree; run 0 import tree.tar
run 2 access append_only; says 'none of read-write, append-only and read-only'

# Read-only: nothing is written; what is there can be read.
run 0 access read-only; says 'from now on: nothing is written'
refused backup tree; refused import tree.tar; refused forget "${ids[0]}"; refused prune; refused tag --add x
refused repair index; refused repair packs; refused parity add; refused parity add 30%
KIN_NEW_PASSWORD=third refused key add
before=$(state)
run 0 backup -n tree; run 0 snapshots; run 0 ls latest; run 0 find numbers; run 0 stats; run 0 check --read-data
run 0 diff "${ids[0]}" "${ids[1]}"; run 0 restore "${ids[2]}" --target back; same tree back/tree
run 0 --no-cache dump latest:tree/numbers; run 0 export latest -f back.tar; run 0 report
[ "$before" = "$(state)" ] || fail "reading has changed something"

# A pack that is gone is read from parity, and not put back before that is permitted.
cp -a repo whole
pack=$(find repo/packs -type f -printf '%s %p\n' | sort -n | sed -n '1s/^[0-9]* //p'); rm "$pack"  # 20 % heal no large one
for id in "${ids[@]}" latest; do
  run 0 restore "$id" --target "healed $id"; cat err >>healed
done
same tree "healed ${ids[2]}/tree"
grep -qF 'cannot be put back: the repository is read-only' healed || fail "nobody has missed $pack: $(cat healed)"
[ ! -e "$pack" ] || fail "something was written"
run 0 access read-write; run 0 backup tree; says 'is healed from parity'
cmp "$pack" "whole/${pack#repo/}"

# There is nothing to migrate, whatever is permitted.
for access in read-only append-only read-write; do
  run 0 access "$access"; before=$(state)
  run 0 migrate; says 'nothing to migrate; the format is version 1'
  run 0 migrate --apply; says 'nothing to migrate'; run 0 --json migrate --apply; [ "$(field format)" = 1 ] || fail "$(cat out)"
  [ "$before" = "$(state)" ] || fail "something was migrated"
done
run 2 migrate surplus

# Read-write again: as ever.
run 0 access; says 'read-write'
run 0 key remove "$other"; run 0 tag --add x; run 0 forget --keep-last 1 --prune; run 0 check --read-data
run 0 --json access append-only; [ "$(field before)" = read-write ] || fail "$(cat out)"
run 0 access append-only; says 'as it was before'
