#!/usr/bin/env bash
# kin damage, whatever the kind and the seed: check tells of it, and restore gives the right bytes or says what it
# does not give.
. "$(dirname "$0")/lib.sh"

run 0 init -r repo --plain
mkdir tree; seq 20000 >tree/numbers; sed 's/77/seventy-seven/' tree/numbers >tree/nearly
head -c 100000 /dev/urandom >tree/random; for i in $(seq 30); do echo "a small file, number $i" >"tree/small $i"; done
tar -czf tree/small.tar.gz tree/small*
run 0 -r repo backup tree; echo more >>tree/numbers; run 0 -r repo backup tree
run 2 -r repo damage; says 'with --yes'
run 2 -r repo damage --yes --kind bend; says 'truncate or drop'
run 2 -r repo damage --yes --files config; run 2 -r repo damage --yes --count 0; run 2 -r repo damage --yes --seed x
run 14 -r repo damage --yes --files keys
run 0 -r repo check --read-data

# The same seed does the same.
for i in 1 2; do cp -a repo "copy$i"; run 0 --json -r "copy$i" damage --yes --seed 5 --kind zero --count 3; cp out "said$i"; done
cmp said1 said2 || fail "one seed, two damages"
diff -r copy1 copy2 >/dev/null || fail "one seed, two repositories"; rm -r copy1 copy2

rounds=${KIN_TEST_LONG:+40}; detected=0 restored=0 told=0
for seed in $(seq "${rounds:-4}"); do
  for kind in flip zero swap cut truncate drop; do
    rm -rf copy back; cp -a repo copy
    run 0 -r copy damage --yes --seed "$seed" --kind "$kind" --files all
    cp out what
    run 13 --no-cache -r copy check --read-data; detected=$((detected + 1))
    code=0; "$KIN" --no-cache -r copy restore latest -t back >out 2>err || code=$?
    if [ "$code" = 0 ]; then
      # Then it was in what the newest does not need, or in a snapshot that is not listed any more.
      grep -q snapshot what || { same tree back/tree; restored=$((restored + 1)); }
    else
      told=$((told + 1))
      [ ! -d back/tree ] || (cd back/tree && find . -type f -print0) | while IFS= read -r -d '' file; do
        cmp -s "tree/$file" "back/tree/$file" || grep -qF "${file#./}" err || fail "wrong bytes in $file, untold: $(cat what)"
      done
    fi
  done
done
echo "passed: $detected damages told by check, $restored restores were whole, $told said what they lack"
