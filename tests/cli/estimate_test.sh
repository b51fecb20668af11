#!/usr/bin/env bash
# kin estimate tells what a backup would take and what simpler ways would, and leaves nothing behind.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

nothing_left() {
  [ -z "$(find "$work/cache" "$work/scratch" -name 'kin-index-*' 2>/dev/null)" ] || fail "left something behind"
  [ ! -e "$work/data" ] || fail "made a repository"
}
# true_of EXPRESSION: of `it`, the last JSON line; `of[NAME]` is what a method takes.
true_of() {
  python3 - "$1" <<'PYTHON' || fail "not so: $1"
import json, sys
it = json.loads(open("out").read().splitlines()[-1])
of = {method["name"]: method["bytes"] for method in it.get("methods", [])}
sys.exit(0 if eval(sys.argv[1]) else 1)
PYTHON
}

mkdir tree scratch none
python3 - <<'PYTHON'
import gzip, io, random, tarfile
chance = random.Random(1)
words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(3000)]
def text(size):
    return " ".join(chance.choices(words, k=size // 6)).encode()[:size]
def changed(content):
    at = chance.randrange(len(content) - 100)
    return content[:at] + b"something else" + content[at + 50:]
for i in range(30):
    content = text(20000)
    open(f"tree/{i}.txt", "wb").write(content)
    open(f"tree/{i}.new.txt", "wb").write(changed(content))
    if i < 5:
        open(f"tree/{i}.copy.txt", "wb").write(content)
members = [text(30000) for _ in range(10)]
for version in range(4):
    members[version] = changed(members[version])
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number, content in enumerate(members):
            member = tarfile.TarInfo(f"m{number}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    open(f"tree/{version}.tar.gz", "wb").write(gzip.compress(out.getvalue(), 6, mtime=0))
PYTHON
: >tree/empty
mkdir tree/directory

# What is said is so: by counting, and by the order of the ways.
run 0 --json estimate tree
nothing_left
true_of 'it["message_type"] == "estimate" and it["files"] == 70 and it["distinct_files"] == 65 and it["skipped"] == 0'
true_of 'not it["changed"]'
bytes=$(find tree -type f -printf '%s\n' | awk '{sum += $1} END {print sum}')
true_of "it['bytes'] == $bytes and of['identical_files'] == $bytes - 100000"
true_of 'it["containers"]["opened"] == {"gzip": 4, "tar": 4}'
true_of 'of["compression"] > of["chunks"] > of["deltas"] > of["deltas_opened"] and of["kin_closed"] > of["kin"]'
true_of 'all(abs(method["percent"] - 100 * method["bytes"] / it["bytes"]) < 0.001 for method in it["methods"])'
estimated=$(python3 -c 'import json; print(json.loads(open("out").read().splitlines()[-1])["methods"][-1]["bytes"])')

# A backup then takes what was said, within 2 %: what resembles what depends a little on the repository's key.
run 0 init --plain -r repo
empty=$(find repo -type f -printf '%s\n' | awk '{sum += $1} END {print sum}')
run 0 -r repo backup tree
stored=$(find repo -type f -printf '%s\n' | awk -v empty="$empty" '{sum += $1} END {print sum - empty}')
python3 -c "import sys; sys.exit(abs($estimated - $stored) > 0.02 * $stored)" ||
  fail "estimated $estimated, and stored $stored"

# In text, as a table for spreadsheets, and with less.
run 0 estimate tree
says "70 files"
says "kin, with trees, index and all"
[ "$(wc -L <out)" -le 120 ] || fail "lines too long"
run 0 estimate --csv tree
[ "$(head -1 out)" = "method,bytes,percent" ] || fail "no head"
grep -qx "original,$bytes,100" out || fail "no original"
[ "$(wc -l <out)" = 9 ] || fail "not all rows"
run 0 --json estimate --no-unpack tree
true_of 'it["containers"]["opened"] == {} and "deltas_opened" not in of and "kin_closed" not in of and of["kin"] > 0'
run 0 --json estimate --exclude '*.gz' tree
true_of 'it["files"] == 66 and "deltas_opened" not in of'
nothing_left

# A study: the same in more ways, which must agree where they are the same.
run 0 --json estimate --study tree
true_of '[row["features"] for row in it["study"]["features"]] == [4, 8, 16, 32]'
true_of '[row["bytes"] for row in it["study"]["shingles"]] == [8, 16, 32, 64]'
true_of 'it["study"]["shingles"][2]["kin"] == it["study"]["features"][2]["kin"]'
true_of 'it["study"]["features"][2]["deltas"] == of["deltas"] and it["study"]["features"][2]["kin"] == of["kin_closed"]'
true_of 'it["study"]["blocks"][0]["compressed"] == of["chunks"] and it["study"]["thresholds"][0]["percent"] == 100'
true_of 'it["study"]["programs"]["smaller"] <= min(it["study"]["programs"]["zstd"], it["study"]["programs"]["xdelta3"])'
true_of 'it["study"]["equal_bases"]["best"] <= it["study"]["equal_bases"]["average"]'
true_of 'it["study"]["least_sizes"][0]["objects"] == sum(row["objects"] for row in it["by_features"])'
run 0 estimate --study tree
says "With sketches of at most"
says "the paper: MH mail"
says "a study: all files are read and stored up to 9 times"
[ "$(wc -L <out)" -le 120 ] || fail "lines too long"
run 2 estimate tree --study --against repo
nothing_left

# A sample: of little data all of it, which says the same; else what is told is between bounds.
run 0 --json estimate --sample tree
true_of "it['files'] == 70 and it['bytes'] == $bytes and it['sample']['files'] == 70 and it['sample']['bytes'] == $bytes"
true_of 'it["sample"]["distinct_files"] == 65 and it["sample"]["delta_objects"] > 0'
true_of '"distinct_files" not in it and "delta_objects" not in it'
true_of "abs(of['kin'] - $estimated) < 0.02 * $estimated and of['identical_files'] == $bytes - 100000"
true_of 'all(method["low"] == method["bytes"] == method["high"] for method in it["methods"])'
run 0 estimate --sample tree
says "all of them are looked at"
says "70 files"
mkdir many
python3 - <<'PYTHON'
import random
chance = random.Random(2)
for i in range(200):
    content = bytes(chance.choices(b"abcdefgh \n", k=3000))
    for version in range(2):
        open(f"many/{i}.{version}", "wb").write(content + b"%d" % version)
PYTHON
many=$(find many -type f -printf '%s\n' | awk '{sum += $1} END {print sum}')
drawn() { python3 -c 'import json; print(json.loads(open("out").read().splitlines()[-1])["sample"])'; }
run 0 --json estimate many
true_kin=$(python3 -c 'import json; print(json.loads(open("out").read().splitlines()[-1])["methods"][-1]["bytes"])')
run 0 --json estimate --sample-percent 30 --sample-seed 7 many
true_of "it['bytes'] == $many and 0 < it['sample']['bytes'] < $many / 2 and it['sample']['seed'] == 7"
true_of 'it["sample"]["files"] == 2 * it["sample"]["families"] >= 60'
true_of 'all(method["low"] <= method["bytes"] <= method["high"] for method in it["methods"])'
true_of "all(method['high'] <= max(method['bytes'], $many) for method in it['methods'] if 'kin' not in method['name'])"
true_of "it['methods'][-1]['low'] <= $true_kin <= it['methods'][-1]['high'] < 2 * $true_kin"
sampled=$(drawn)
run 0 --json estimate --sample-percent 30 --sample-seed 7 many
[ "$(drawn)" = "$sampled" ] || fail "the same seed, and another sample"
run 0 --json estimate --sample-percent 30 --sample-seed 8 many
[ "$(drawn)" != "$sampled" ] || fail "another seed, and the same sample"
run 0 estimate --sample-percent 30 many
says "families of similar ones"
says "95 % sure between"
[ "$(wc -L <out)" -le 120 ] || fail "lines too long"
run 0 estimate --csv --sample-percent 30 many
[ "$(head -1 out)" = "method,bytes,percent,low,high" ] || fail "no bounds in the table"
run 0 estimate --html page.html --sample-percent 30 many
grep -q "at least" page.html || fail "no bounds in the page"
chmod 600 page.html
run 0 estimate --html page.html tree/0.txt
[ "$(stat -c %a page.html)" = 600 ] || fail "a new page is shown to more than the old one"

# sample_holds PERCENT TREE: what kin takes of all of it is between the bounds of samples, and these not twice that apart.
sample_holds() {
  local kin seed
  run 0 --json estimate --no-unpack "$2"
  kin=$(python3 -c 'import json; print(json.loads(open("out").read().splitlines()[-1])["methods"][-1]["bytes"])')
  for seed in 1 2; do
    run 0 --json estimate --no-unpack --sample-percent "$1" --sample-seed "$seed" "$2"
    true_of "it['methods'][-1]['low'] <= $kin <= it['methods'][-1]['high'] <= it['methods'][-1]['low'] + 2 * $kin"
  done
}
# Files with nothing in them.
mkdir empty
(cd empty && seq 5000 | xargs touch)
run 0 --json estimate empty
empty_kin=$(python3 -c 'import json; print(json.loads(open("out").read().splitlines()[-1])["methods"][-1]["bytes"])')
run 0 --json estimate --sample-percent 10 empty
true_of "it['sample']['files'] == 5000 and abs(of['kin'] - $empty_kin) < 0.02 * $empty_kin"
rm -r empty
# Many tiny ones, of which what is beside their content is most; and with empty ones among them.
mkdir tiny
python3 - <<'PYTHON'
import os, random
chance = random.Random(4)
for i in range(20000):
    if i % 1000 == 0:
        os.mkdir(f"tiny/{i // 1000}")
    with open(f"tiny/{i // 1000}/{i}", "wb") as file:
        file.write(b"file %d says %d\n" % (i, chance.randrange(10**6)) * chance.randint(1, 5))
PYTHON
sample_holds 5 tiny
for i in 5 6 7 8 9; do (cd tiny/$i && truncate -s 0 $i???); done
sample_holds 10 tiny
rm -r tiny
# A large file that is not as the small ones are.
mkdir large large/small
python3 - <<'PYTHON'
import random
chance = random.Random(3)
open("large/large", "wb").write(b"abcdefgh" * (4 << 20))
for i in range(2000):
    open(f"large/small/{i}", "wb").write(chance.randbytes(50))
PYTHON
sample_holds 10 large
true_of "of['identical_files'] == it['bytes'] and it['methods'][0]['low'] > 0.9 * it['bytes']"
cp large/large large/again
for name in a b c d; do truncate -s 1T large/$name; done
run 0 --json estimate --no-unpack large
identical=$(python3 -c 'import json; print(json.loads(open("out").read().splitlines()[-1])["methods"][0]["bytes"])')
run 0 --json estimate --no-unpack --sample-percent 10 large
true_of "of['identical_files'] == $identical and it['methods'][0]['high'] > 4 << 40"
rm -r large
run 3 --json estimate --sample tree missing
true_of 'it["skipped"] == 1'
run 2 estimate tree --sample --study
run 2 estimate tree --sample-percent 0
run 2 estimate tree --sample-percent 101
run 2 estimate tree --sample --against repo

# What does not go together, or is no number, is refused, and not read as something else.
run 2 estimate tree --study --sample-seed 3
says "--sample-seed goes with --sample or --sample-percent"
run 2 estimate tree --sample-seed 3
run 2 estimate tree --study --csv
run 2 estimate tree --scratch scratch --against repo
for percent in nan 0x10 inf 1e 10% ' 10'; do
  run 2 estimate tree --sample-percent "$percent"
done
for seed in -1 18446744073709551616 010 0x10 1.5 +1 ' 1'; do
  run 2 estimate tree --sample --sample-seed="$seed"
  says "is not a whole number"
done
run 0 --json estimate none --sample --sample-seed 18446744073709551615
true_of 'it["sample"]["seed"] == 18446744073709551615'
nothing_left

# One thing on stdout: what was asked for.
for form in "--csv" "--html -"; do
  run 0 -v estimate $form tree
  head -1 out | grep -qE '^(method,bytes,percent|<!DOCTYPE html>)$' || fail "something else before it"
  run 2 --json estimate $form tree
  says "choose one"
done
run 0 -q estimate tree/0.txt
says "1 file, 19.531 KiB; 1 of them different"
says "kin, with trees, index and all"

# Against a repository: nothing new, and something.
run 0 --json estimate tree --against repo
true_of 'it["message_type"] == "summary" and it["dry_run"] and it["data_added"] == 0 and it["files_unmodified"] == 70'
head -c 50000 /dev/urandom >tree/noise
run 0 --json estimate tree --against repo
true_of '50000 <= it["data_added_packed"] < 60000 and it["files_new"] == 1'
run 10 estimate tree --against nowhere
KIN_PASSWORD=word run 0 -r sealed init
for dry_run in "estimate --against sealed" "backup -r sealed -n"; do
  run 130 --password-command 'kill -INT $PPID; echo word' $dry_run tree
  says "interrupted; nothing was written"
done
run 2 estimate tree --against repo --csv
rm tree/noise

# The page does not count itself.
run 0 --json estimate tree --html tree/page.html
true_of 'it["files"] == 70'

# Nor does it replace what is read, nor anything in a repository.
cp -r tree kept
cp -r repo kept_repo
ln -s "$work/tree/1.txt" link
printf 'tree/0.txt\n' >list
for page in tree/0.txt tree/../tree/0.txt link list tree/page.html; do
  run 2 estimate --html $page tree/0.txt tree/1.txt tree/page.html --files-from list
  says "is one of the inputs"
done
for page in tree/0.txt link tree/page.html; do
  run 2 estimate --html $page tree
  says "is a file in tree"
  run 2 groups --html $page tree
  run 2 study detectors --html $page tree
done
run 2 groups --html tree/0.txt tree/0.txt tree/1.txt
ln -s nowhere tree/dangling
run 2 estimate tree --html tree/dangling
[ -L tree/dangling ] || fail "a link that leads nowhere was replaced"
rm tree/dangling
run 2 study detectors --html tree/0.txt tree/0.txt tree/1.txt
for page in repo/config repo/new repo/packs/../new; do
  run 2 -r repo estimate --html $page tree
  says "is in the repository"
  run 2 -r repo report --html $page
  run 2 -r repo export latest -f $page --format tar --force
done
diff -r tree kept && diff -r repo kept_repo || fail "an input or a repository was written to"
echo word >password
run 2 -r repo --password-file password report --html password
[ "$(cat password)" = word ] || fail "the password was overwritten"
rm -r kept kept_repo link list tree/page.html

# Little and nothing; what is not there; no room to work in.
run 0 --json estimate none
true_of 'it["files"] == 0 and it["bytes"] == 0 and all(method["percent"] == 0 for method in it["methods"])'
run 0 --json estimate --sample none
true_of 'it["files"] == 0 and it["sample"]["files"] == 0'
run 0 --json estimate tree/0.txt
true_of 'it["files"] == 1 and of["identical_files"] == 20000'
run 2 estimate
says "no path is given"
run 3 estimate tree missing gone --html page.html
says "2 files or directories could not be read, or not whole"
grep -q "2 files or directories could not be read, or not whole" page.html || fail "not in the page"
run 3 --json estimate tree missing
says "1 file or directory could not be read, or not whole"
says "missing"
true_of 'it["files"] == 70 and it["skipped"] == 1'
[ "$(grep -c 'missing' err)" = 1 ] || fail "told of it more than once"
: >file
run 1 estimate --scratch file/below tree
says "cannot make directory file"
run 1 --cache-dir file/below estimate tree
says "cannot make directory file"
says "(--scratch names another place)"
mkdir -p outer/inner outer/repo
run 0 -r outer/none estimate outer
grep -q "is left out" out && fail "left out a repository that is not there"
run 0 -r outer/repo init --plain
run 0 -r outer/repo estimate outer
says "the repository outer/repo is left out"
run 0 estimate --scratch scratch/new tree
nothing_left

# Stopped, and killed: the next one cleans up.
head -c 60000000 /dev/urandom >tree/large
set -m  # or the shell has background jobs ignore interrupts
# start: an estimate that is at work.
start() {
  "$KIN" estimate tree "$@" >out 2>err &
  for _ in $(seq 1000); do
    [ -z "$(find "$work/cache" -path '*kin-index-*/repository/packs' 2>/dev/null)" ] || return 0
    sleep 0.01
  done
  fail "did not start"
}
# What changes between the passes is told: here a file that grows all the time, and files that go one by one.
: >tree/growing
while :; do printf x >>tree/growing; sleep 0.001; done &
changer=$!
run 3 --json estimate tree --html page.html
kill $changer
wait $changer 2>/dev/null || true
rm tree/growing
says "the data changed while it was read: first 72 files of"
true_of 'it["changed"]'
grep -q "But the data changed while it was read" page.html || fail "not in the page"
mkdir going
for i in $(seq 3000); do echo "$i" >going/$i; done
for i in $(seq 3000); do rm going/$i; sleep 0.001; done &
changer=$!
run 3 estimate going tree/large --sample-percent 50
kill $changer 2>/dev/null || true
wait $changer 2>/dev/null || true
says "files of the sample, then"
rm -rf going  # the rm that was under way when the loop was killed may still run

# A page that cannot be written in the end does not take the rest with it.
mkdir pages
start --html pages/page.html
rmdir pages
code=0
wait $! || code=$?
[ "$code" = 14 ] || fail "exit code $code without a place for the page"
says "kin, with trees, index and all"
says "cannot make pages/page.html"
nothing_left
start
kill -INT $!
code=0
wait $! || code=$?
[ "$code" = 130 ] || fail "exit code $code after an interrupt"
nothing_left
start
kill -KILL $!
wait $! 2>/dev/null || true
[ -n "$(find "$work/cache" -name 'kin-index-*')" ] || fail "nothing was left to clean up"
run 0 estimate tree/0.txt
nothing_left
start
kill -KILL $!
wait $! 2>/dev/null || true
run 0 cache --cleanup
nothing_left
