#!/usr/bin/env bash
# copy: snapshots go from one repository to another with another key, and are restored there as they were.
. "$(dirname "$0")/lib.sh"

packs() { find "$1/packs" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'; }
state() { find "$1" -type f | sort | xargs sha256sum; }
# copies REPO: for each of its snapshots, the one that it is a copy of, and its own id.
copies() {
  "$KIN" --json -r "$1" snapshots | python3 -c 'import json,sys
for row in map(json.loads, sys.stdin): print(row.get("original", "-"), row["id"])'
}
copy_of() { copies "$1" | sed -n "s/^$2 //p"; }

# Large and small files that change a little, archives whose members do, holes, links and odd names.
mkdir -p tree/deep/er
seq 1 400000 >tree/large
head -c 300000 /dev/urandom >tree/noise
for i in $(seq 60); do seq "$i" 300 >"tree/deep/small $i"; done
cp -r "$root/store" tree/sources
printf 'a\nb' >"tree/deep/er/"$'odd \n name \xff'; ln -s ../large tree/deep/link; ln tree/noise tree/noise.too
truncate -s 3M tree/holes; echo end >>tree/holes; mkfifo tree/fifo; touch -d @1 tree/deep
ids=()
for day in 1 2 3 4; do
  sed -i "${day}00000s/.*/changed on day $day/" tree/large
  echo "// of day $day" >>tree/sources/repository.cpp; rm -f "tree/deep/small $day"
  tar -C tree -cf tree/archive.tar sources; gzip -nc tree/archive.tar >tree/archive.tar.gz
  (cd tree && python3 -c 'import shutil; shutil.make_archive("archive", "zip", "sources")')
  [ -e plain ] || run 0 init -r plain --plain
  run 0 --json -r plain backup --tag "day$day" --host "host$((day % 2))" --time "2020-10-0$day 12:00" tree
  ids+=("$(field snapshot_id)")
  rm -rf "as of $day"; cp -a --sparse=always tree "as of $day"
done

# Into an encrypted one. The rehearsal writes nothing.
echo secret >password
export KIN_REPOSITORY=safe KIN_PASSWORD_FILE=$work/password
run 0 init --parity 5%
before=$(state safe)
run 0 copy --from plain -n; says '4 snapshots would be copied, 0 there already'
[ "$before" = "$(state safe)" ] || fail "a rehearsal has written something"
source_before=$(state plain)
run 0 --json copy --from plain
[ "$(field copied)" = 4 ] && [ "$(field deltas_replaced)" = 0 ] || fail "$(tail -n 1 out)"
[ "$source_before" = "$(state plain)" ] || fail "the source has changed"
kept=$(field deltas_kept)
[ "$kept" -gt 5 ] || fail "$kept deltas kept"
run 0 check --read-data; says 'no problems'
for day in 1 2 3 4; do
  id=$(copy_of safe "${ids[day - 1]}")
  run 0 restore "$id" --target "back $day"; same "as of $day" "back $day/tree"
  run 0 --json snapshots --host "host$((day % 2))" --tag "day$day"; says "$id"; says "2020-10-0${day}T12:00"
done
# Deltas are deltas still: with recipes and trees anew, it takes what the source takes, to within 3 %.
least=$(($(packs plain) * 97 / 100)); most=$(($(packs plain) * 103 / 100))
[ "$(packs safe)" -ge "$least" ] && [ "$(packs safe)" -le "$most" ] || fail "$(packs safe) of $(packs plain)"
run 0 parity; grep -q '^[1-9]' out || fail "no parity"

# Again: nothing is to do, and nothing is written.
before=$(state safe)
run 0 --json copy --from plain; [ "$(field copied)" = 0 ] && [ "$(field present)" = 4 ] || fail "$(tail -n 1 out)"
[ "$before" = "$(state safe)" ] || fail "a second copy has written something"

# A new day costs what is new.
echo 'and more' >>tree/large; cp -a --sparse=always tree "as of 5"
unset KIN_PASSWORD_FILE
run 0 --json -r plain backup --host host1 --time "2020-10-05 12:00" tree; ids+=("$(field snapshot_id)")
export KIN_PASSWORD_FILE=$work/password
grown=$(packs safe)
run 0 --json copy --from plain; [ "$(field copied)" = 1 ] && [ "$(field read_bytes)" -lt 20000 ] || fail "$(tail -n 1 out)"
[ $(($(packs safe) - grown)) -lt 60000 ] || fail "grown by $(($(packs safe) - grown)) bytes"
run 0 restore latest --target "back 5"; same "as of 5" "back 5/tree"

# The copy serves as a parent, and what it has is not stored again.
run 0 --json backup --host host1 tree
[ "$(field files_new)" = 0 ] && [ "$(field data_added)" -lt 60000 ] || fail "$(tail -n 1 out)"

# And back into a plain one, chosen by a filter and by id; then all. Nothing comes that was not asked for.
fourth=$(copy_of safe "${ids[3]}")
unset KIN_PASSWORD_FILE
run 0 init -r again --plain
secret=(--from safe --from-password-file "$work/password")
run 0 -r again copy "${secret[@]}" --tag day2; run 0 -r again copy "${secret[@]}" "${fourth:0:12}"
[ "$(copies again | sort)" = "$(copies again | grep -e "^${ids[1]}" -e "^${ids[3]}" | sort)" ] || fail "$(copies again)"
[ "$(copies again | wc -l)" = 2 ] || fail "$(copies again)"
run 0 -r again check --read-data; run 0 -r again --json prune -n; [ "$(field unused_bytes)" = 0 ] || fail "$(cat out)"
for day in 2 4; do
  run 0 -r again restore "$(copy_of again "${ids[day - 1]}")" --target "again $day"; same "as of $day" "again $day/tree"
done
KIN_FROM_PASSWORD=secret run 0 -r again copy --from safe; says '4 snapshots copied, 2 there already'
run 0 -r again check --read-data
# What it was copied from knows them all.
run 0 -r plain copy "${secret[@]}" -n --tag day1; says '0 snapshots would be copied, 1 there already'

# What cannot be.
run 2 -r plain copy; says 'from which repository?'
run 2 -r plain copy --from plain; says 'the same repository'
run 2 -r plain copy --from ./plain/../plain; says 'the same repository'
run 10 -r plain copy --from nowhere; says 'the source: there is no repository at nowhere'
run 12 -r plain copy --from safe --from-password-command 'echo wrong'; says 'the source'
run 12 -r again copy --from plain --from-password-file "$work/password"; says 'is not encrypted, but a password is set'
run 14 -r again copy --from plain cafe; says 'there is no snapshot cafe'
run 0 -r again access read-only; run 17 -r again copy --from plain; says 'read-only'
run 0 -r again access append-only; run 0 -r plain access read-only
run 0 -r again copy --from plain; says '0 snapshots copied, 5 there already'
run 0 -r plain access read-write

# Damage costs the snapshots that have it, and they are named.
cp -r plain harmed; rm -rf cache
head -c 100000 /dev/urandom >tree/lost; run 0 -r harmed backup tree
newest=$(find harmed/packs -type f -size +90k -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
flip "$newest" 60000
run 0 init -r rest --plain
run 3 -r rest copy --from harmed; says 'cannot be copied: tree/lost: object'; says '5 snapshots copied, 0 there already, 1 left out'
run 0 -r rest check --read-data; run 0 -r rest restore "$(copy_of rest "${ids[2]}")" --target rest3; same "as of 3" rest3/tree

# Killed at some moment, it leaves a sound repository, and the next one goes on.
for delay in 0.02 0.1 0.2 0.4; do
  rm -rf killed; run 0 init -r killed --plain
  { timeout -s KILL "$delay" "$KIN" -q -r killed copy --from plain; } 2>/dev/null || true
  run 0 -r killed check --read-data; run 0 -r killed copy --from plain
  run 0 -r killed check --read-data; [ "$(copies killed | wc -l)" = 5 ] || fail "$(copies killed)"
done
run 0 -r killed restore "$(copy_of killed "${ids[0]}")" --target killed1; same "as of 1" killed1/tree
