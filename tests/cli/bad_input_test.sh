#!/usr/bin/env bash
# Whatever is wrong gets one clear sentence that names it, and its own exit code; nothing is lost or overwritten.
source "$(dirname "$0")/lib.sh"

mkdir tree && echo content >tree/file && seq 20000 >tree/numbers

run 10 -r nowhere snapshots
says "there is no repository at nowhere"
mkdir empty && run 10 -r empty snapshots
says "empty is not a kin repository"
run 10 -r tree/file snapshots
says "is not a kin repository"
run 2 -r tree/file frobnicate
run 2 backup

# Nothing behind the "=" of an option, as of a variable that is not set: the next word is not its value.
mkdir given && cp tree/file given/a.txt && cp tree/file given/b.txt
for option in --html= --against= --scratch= --exclude= --files-from=; do
  run 2 estimate $option given/a.txt given/b.txt
  says "there is no value behind $option"
done
run 2 groups --html= given/a.txt given/b.txt
run 2 study detectors --html= given/a.txt given/b.txt
run 2 delta given/a.txt given/b.txt --output= given/b.txt
run 2 --repository= nowhere snapshots
run 2 estimate --html '' given/a.txt
run 2 estimate --against '' given/a.txt
cmp tree/file given/a.txt && cmp tree/file given/b.txt || fail "an input was overwritten"
[ ! -e nowhere ] || fail "something was made"
mkdir ./--html= && run 0 estimate -- --html=  # a path, behind --

export KIN_PASSWORD=right
run 0 -r repo init
run 2 -r repo init
says "is a repository already"
run 0 -r repo backup tree
KIN_PASSWORD=wrong run 12 -r repo snapshots
says "wrong password"
KIN_PASSWORD=wrong run 12 -r repo --json backup tree
python3 -c 'import json; m = json.load(open("err")); assert m["message_type"] == "exit_error" and m["code"] == 12, m'
run 14 -r repo restore 0123abcd -t target
says "there is no snapshot 0123abcd"
run 14 -r repo restore latest:no/such/path -t target
says "there is no no/such/path in snapshot"
run 14 -r repo snapshots 0123abcd
run 2 -r repo restore latest -t tree/file
says "the target tree/file is not a directory"
[ "$(cat tree/file)" = content ] || fail "the target was overwritten"
run 2 -r repo restore latest -t ''
says "--target is empty"
run 14 -r repo backup no-such-path
says "no-such-path"
run 3 -r repo backup tree no-such-path
says "no-such-path"
run 2 -r repo check --read-data-subset 9/2
run 2 -r repo backup --time 2026-02-31 tree
run 2 -r repo backup --exclude-larger-than lots tree
run 14 -r repo backup --exclude-file no-such-file tree
says no-such-file
unset KIN_PASSWORD
# Nobody to ask: without a terminal it says how a password is given.
code=0; setsid -w "$KIN" -r repo snapshots </dev/null >out 2>err || code=$?
[ "$code" = 12 ] || fail "exit code $code without a password"
says KIN_PASSWORD_FILE

# A password that cannot be meant for this repository: someone may have put a plain one in place of the encrypted one.
run 0 -r plain init --plain
KIN_PASSWORD=right run 12 -r plain snapshots
says "is not encrypted, but a password is set"
run 0 -r plain backup tree

# A newer format.
cp -a plain newer
printf '\x09' | dd of=newer/config bs=1 seek=8 conv=notrunc status=none
run 15 -r newer snapshots
says "need a newer kin"

# Damage, kind by kind.
damaged() { rm -rf hurt cache && cp -a plain hurt; }
pack() { find "hurt/packs" -type f | sort | sed -n 1p; }
damaged; flip hurt/config 60
run 13 -r hurt snapshots
damaged; : >hurt/config
run 13 -r hurt snapshots
damaged; rm "$(pack)"
run 13 -r hurt check
says "is missing"
run 13 -r hurt restore latest -t partial
says "is missing"
for target in packs index snapshots; do
  damaged
  file=$(find "hurt/$target" -type f -size +0 | sort | sed -n 1p)
  size=$(stat -c %s "$file")
  flip "$file" $((size / 2))
  run 13 -r hurt check --read-data
  says "$(basename "$file" | cut -c1-8)"
  damaged
  file=$(find "hurt/$target" -type f -size +0 | sort | sed -n 1p)
  truncate -s $((size - 5)) "$file"
  run 13 -r hurt check --read-data
  says "$(basename "$file" | cut -c1-8)"
done
# A FIFO in a file's place is no file, and nothing to wait for.
damaged; file=$(pack); rm "$file"; mkfifo "$file"
run 13 -r hurt restore latest -t fifo
# Too deep for the stack is an error that names the place; the rest is saved.
python3 -c "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(2000)]"
run 3 -r plain backup d tree
says "directories deep"
rm -rf d
# Foreign files are ignored; the index can be made again from the packs.
damaged; echo junk >hurt/packs/junk; echo junk >hurt/index/junk; mkdir -p hurt/packs/zz; echo >hurt/snapshots/README
run 0 -r hurt check --read-data
damaged; rm hurt/index/*
run 13 -r hurt restore latest -t indexless
run 0 -r hurt repair index
run 0 -r hurt restore latest -t rebuilt
same tree rebuilt/tree
# A damaged block header costs its block; the blocks behind it stay known, also to a new index.
rm -rf many && mkdir many && for i in 1 2 3 4 5; do head -c 400000 /dev/urandom >"many/$i"; done
run 0 -r headers init --plain
run 0 -r headers backup many
pack=$(find headers/packs -type f -size +1000k | sed -n 1p)
flip "$pack" 40
run 13 -r headers restore latest -t before
run 13 -r headers repair index
run 13 -r headers restore latest -t after
[ "$(ls before/many)" = "$(ls after/many)" ] && [ "$(ls after/many | wc -l)" = 4 ] || fail "repair index lost blocks behind the damage"
# Sources that would fall together in the snapshot are not dropped in silence.
mkdir -p here/tmp && echo 1 >here/tmp/one
(cd here && "$KIN" -r ../plain backup tmp /tmp/no-such-file-of-kin) >out 2>err && fail "overlapping sources were accepted"
(cd here && "$KIN" -r ../plain -q backup . "$work/tree") || fail "a directory and its neighbour could not be backed up"
run 0 -r plain ls latest
grep -q "here/tmp/one" out && grep -q "tree/file" out || fail "one of two sources is missing"
# A newest snapshot that is damaged is not passed over for an older one.
damaged; sleep 1; run 0 -r hurt backup tree
newest=$(ls -t hurt/snapshots | sed -n 1p)
flip "hurt/snapshots/$newest" 50
run 13 -r hurt restore latest -t older
says "${newest:0:8}"
# A damaged repository costs no file that is there already.
damaged; mkdir -p kept && cp -a tree kept/ && echo precious >kept/tree/file
file=$(pack); for p in $(find hurt/packs -type f); do size=$(stat -c %s "$p"); flip "$p" $((size - 30)); done
run 13 -r hurt restore latest -t kept
[ "$(cat kept/tree/file)" = precious ] || fail "a damaged repository destroyed a file"
echo passed
