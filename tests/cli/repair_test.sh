#!/usr/bin/env bash
# kin repair: after it there is no damage left to find, what was sound is there, and what is lost was named.
. "$(dirname "$0")/lib.sh"

pack_of() {  # of the largest
  find "$1/packs" -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d' ' -f2
}
state() { find "$1" -type f -path "*/[kpisfm]*/*" -exec sha256sum {} + | sort; }

run 0 init -r repo --plain
mkdir tree; seq 20000 >tree/numbers; sed 's/77/seventy-seven/' tree/numbers >tree/nearly
for i in 1 2 3; do head -c 400000 /dev/urandom >"tree/random $i"; done; for i in $(seq 30); do echo "a small file, number $i" >"tree/small $i"; done
mkdir -p tree/deep/deeper; head -c 5000 /dev/urandom >tree/deep/deeper/bytes; (cd tree && tar -czf small.tar.gz small*)
run 0 -r repo backup tree; cp -a tree older; echo more >>tree/numbers; head -c 70000 /dev/urandom >tree/new; run 0 -r repo backup tree

# Where nothing is wrong, nothing is done.
before=$(state repo)
run 0 -r repo repair packs; says '0 damaged, 0 missing'; run 0 -r repo repair snapshots; says '2 snapshots are whole'
[ "$before" = "$(state repo)" ] || fail "a sound repository was changed"
run 2 -r repo repair; run 2 -r repo repair tree; run 2 -r repo repair packs surplus; run 10 -r nowhere repair packs

# One block is lost, the others of its pack are not; a backup brings it back.
cp -a repo hurt; pack=$(pack_of hurt); flip "$pack" $(($(stat -c %s "$pack") / 2))
run 13 -r hurt check --read-data; says 'kin repair'
before=$(state hurt); run 3 -r hurt repair packs -n; says 'would be stored again'; [ "$before" = "$(state hurt)" ] || fail "a rehearsal"
run 3 -r hurt repair packs; says '1 damaged, 0 missing'; says '1 lost'
before=$(state hurt); run 3 -r hurt repair snapshots -n; says 'would be replaced'; [ "$before" = "$(state hurt)" ] || fail "a rehearsal"
cp -a hurt both
run 0 -r hurt backup tree older; run 0 -r hurt repair snapshots; says '3 snapshots are whole'
run 0 -r hurt check --read-data; run 0 -r hurt restore latest --target back; same tree back/tree; same older back/older
run 0 -r hurt prune --now; run 0 -r hurt prune --now; [ ! -e "$pack" ] || fail "the damaged pack is still there"; run 0 -r hurt check --read-data

# What a backup has stored again since is not stored a third time, and no longer lost.
cp -a repo again; pack=$(pack_of again); flip "$pack" $(($(stat -c %s "$pack") / 2))
run 13 -r again check --read-data; run 3 -r again backup tree older
before=$(find again/packs -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
run 0 -r again repair packs; says 'sound in other packs'
after=$(find again/packs -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
[ $((after - before)) -lt 20000 ] || fail "$((after - before)) bytes were stored again"
run 0 -r again check --read-data; run 0 -r again repair snapshots; says '3 snapshots are whole'

# Without that, the snapshots do without it.
run 3 -r both repair snapshots; says '2 snapshots now replaced'; cp err named
run 0 -r both check --read-data; run 0 -r both snapshots; says repaired
run 0 -r both restore latest --target left
(cd tree && find . -type f -print0) | while IFS= read -r -d '' file; do
  cmp -s "tree/$file" "left/tree/$file" || { [ ! -e "left/tree/$file" ] && grep -qF "/${file#./}: " named; } || fail "$file was lost, untold"
done
run 0 -r both repair snapshots; run 0 -r both prune --now; run 0 -r both check --read-data

# A snapshot that cannot be read.
cp -a repo hurt2; file=$(find hurt2/snapshots -type f | sort | sed -n 1p); flip "$file" 50
run 3 -r hurt2 repair snapshots; says 'set aside'; says '1 snapshot is whole'; run 0 -r hurt2 check --read-data
[ -e "hurt2/forgotten/$(basename "$file")" ] || fail "it is gone"

# Whatever the damage: afterwards there is none, and what is restored is right.
rounds=${KIN_TEST_LONG:+40}
for seed in $(seq "${rounds:-3}"); do
  for kind in flip zero swap cut truncate drop; do
    rm -rf copy back; cp -a repo copy; run 0 -r copy damage --yes --seed "$seed" --kind "$kind" --files all --count 2; cp out what
    "$KIN" --no-cache -r copy repair index >out 2>err || [ $? = 13 ] || fail "repair index: $(cat what)"
    for part in packs snapshots; do "$KIN" --no-cache -r copy repair $part >out 2>>named || [ $? = 3 ] || fail "repair $part: $(cat what)"; done
    run 0 --no-cache -r copy check --read-data
    code=0; "$KIN" --no-cache -r copy restore latest -t back >out 2>err || code=$?
    [ "$code" = 0 ] || { [ "$code" = 14 ] && ! ls copy/snapshots/* >/dev/null 2>&1; } || fail "restore: exit code $code: $(cat what)"
    [ ! -d back/tree ] || (cd back/tree && find . -type f -print0) | while IFS= read -r -d '' file; do
      cmp -s "tree/$file" "back/tree/$file" || cmp -s "older/$file" "back/tree/$file" || fail "wrong bytes in $file: $(cat what)"
    done
  done
done
