#!/usr/bin/env bash
# Packs that are damaged or gone are healed from parity by who meets them, and it is told; parity is made, made anew and
# removed as it is asked for.
. "$(dirname "$0")/lib.sh"

run 2 init -r repo --plain --parity 0%; says 'no percentage'
run 0 init -r repo --plain --parity 20%; says '20 %'
mkdir tree
for i in $(seq 12); do
  head -c 100000 /dev/urandom >"tree/random $i"
  run 0 -r repo backup tree
  says 'parity for '
done
run 0 -r repo parity; says '24 packs with'
run 0 -r repo --json parity; [ "$(field percent)" = 20 ] && [ "$(field bare_packs)" = 0 ] || fail "another parity"

# Whatever the damage: check heals, and what is there then is what was there.
healed() { diff -r repo/packs copy/packs >/dev/null || fail "the packs are not as they were"; }
for seed in 1 2; do
  for kind in flip zero swap cut truncate drop; do
    rm -rf copy; cp -a repo copy
    run 0 -r copy damage --yes --seed "$seed" --kind "$kind"
    run 13 --no-cache -r copy check --read-data --no-heal
    run 0 --no-cache -r copy check --read-data
    says 'healed from parity'; says 'no problems were found'
    healed
  done
done

rm -rf copy; cp -a repo copy; run 0 -r copy damage --yes --seed 1 --kind drop
run 0 --no-cache -r copy --json check; [ "$(field healed_packs)" = 1 ] && [ "$(field bare_packs)" = 0 ] || fail "another count"
rm -r copy/parity; run 0 --no-cache -r copy --json check; [ "$(field bare_packs)" = 24 ] || fail "another count"

# So does a restore, and a backup, which then stores nothing again.
largest() { find copy/packs -type f -printf '%s %p\n' | sort -n | tail -n 1 | cut -d' ' -f2; }
rm -rf copy; cp -a repo copy; pack=$(largest); rm "$pack"
run 0 --no-cache -r copy restore latest -t back
says "pack $(basename "$pack" | cut -c1-8) was damaged or missing, and is healed from parity"
same tree back/tree; healed
rm "$(largest)"; run 0 --no-cache -r copy backup tree; says 'healed from parity'
run 0 --no-cache -r copy check --read-data
rm "$(largest)"; cp -a copy/packs before
run 0 --no-cache -r copy repair packs -n; says '1 pack would be healed'; says '0 missing'
diff -r copy/packs before || fail "a dry run wrote packs"; rm -r before
run 0 --no-cache -r copy repair packs; says '1 pack healed'
# Beyond what there is parity for, the damage is told as ever.
find copy/packs -type f -size +50k -print0 | head -z -n 6 | xargs -0 rm
run 13 --no-cache -r copy check; says 'is missing'

# Damage to parity itself is told, and made good; packs that lack it are counted.
rm -rf copy; cp -a repo copy
run 0 -r copy damage --yes --files parity --kind zero --seed 3
run 13 -r copy check --read-data; says 'kin parity add'
run 0 -r copy parity add; run 0 -r copy check --read-data
rm -r copy/parity; run 0 -r copy check; says 'without parity'
run 0 -r copy parity add; run 0 -r copy parity; says '24 packs with'

# Another percentage, and none.
bytes() { run 0 -r copy --json parity; field file_bytes; }
before=$(bytes); run 0 -r copy parity add 50%; [ "$(bytes)" -gt $((2 * before)) ] || fail "50 % is not more than 20 %"
run 2 -r copy parity add 101%
run 0 -r copy parity remove; [ "$(bytes)" = 0 ] || fail "parity is left"
run 2 -r copy parity add; says 'how much'
run 0 -r copy backup tree; run 0 -r copy check --read-data

# Who waits for another goes by what that one leaves, not by what there was before.
rm -rf copy other; cp -a repo copy; cp -a repo other; run 0 -r other parity remove
exec 9<copy; flock 9
"$KIN" -r copy parity add >out 2>err 9<&- & waiting=$!
sleep 1; cp other/config copy/config; exec 9<&-
code=0; wait $waiting || code=$?
[ "$code" = 2 ] && says 'how much' || fail "it did not see that parity was removed"

# After a prune, nothing lacks of what parity is of.
head -c 100000 /dev/urandom >"tree/random 1"; run 0 -r repo backup tree
run 0 -r repo forget --keep-last 1; run 0 -r repo prune --now; says 'made anew'
run 0 -r repo --json parity; [ "$(field bare_packs)" = 0 ] || fail "packs without parity"
rm -rf copy; cp -a repo copy; rm "$(largest)"
run 0 --no-cache -r copy check --read-data; healed

# A stranger's reader comes to the same parity, from the page that says what every byte means.
same_parity() { "$root/scripts/read_repository" --parity "$1" >out 2>err && says "$2 packs have parity" || fail "another parity"; }
run 0 -r repo --json parity; same_parity repo "$(field packs)"
export KIN_PASSWORD=secret
run 0 -r large init --parity 3%
for i in 1 2 3; do head -c 600000 /dev/urandom >"tree/large $i"; run 0 -r large backup "tree/large $i"; done
same_parity large 6
