#!/usr/bin/env bash
# kin report tells what each snapshot brought and would free, and where the bytes are.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# true_of EXPRESSION: of `it`, the last JSON line; `rows` are its snapshots.
true_of() {
  python3 - "$1" <<'PYTHON' || fail "not so: $1"
import json, sys
it = json.loads(open("out").read().splitlines()[-1])
rows, content = it["snapshots"], it.get("content", {})
def near(a, b, part=0.03):
    return abs(a - b) <= part * max(a, b) + 600
sys.exit(0 if eval(sys.argv[1]) else 1)
PYTHON
}
packs() { find repo/packs -type f -printf '%s\n' | awk '{sum += $1} END {print sum}'; }

run 0 init --plain -r repo
run 0 --json -r repo report
true_of 'rows == [] and it["bases_only"]["objects"] == 0 and content == {}'
run 0 -r repo report
says "0 snapshots take 0 B"

# One snapshot: all goes with it.
mkdir -p tree/a/deep tree/b
head -c 300000 /dev/urandom >tree/a/deep/one.bin
head -c 400000 /dev/urandom >tree/b/two.bin
cp tree/b/two.bin tree/b/copy.bin
seq 20000 >tree/b/numbers.txt
run 0 -r repo backup tree
run 0 --json -r repo report
true_of "len(rows) == 1 and near(rows[0]['added']['stored_size'], $(packs)) and rows[0]['would_free'] == rows[0]['added']"
true_of 'rows[0]["shared_size"] == 400000 and rows[0]["total_stored_size"] == rows[0]["added"]["stored_size"]'
true_of 'content["files"] == 4 and content["size"] == 1208894 and near(content["stored_size"], rows[0]["added"]["stored_size"], 0.01)'
true_of '[row["path"] for row in content["top_files"]["by_stored_size"]][:2] == ["/tree/b/copy.bin", "/tree/a/deep/one.bin"]'
true_of 'content["top_files"]["by_saved_size"][0]["path"] == "/tree/b/two.bin" and content["top_files"]["by_saved_size"][0]["stored_size"] == 0'
# Of a, a/deep has it all.
true_of '{row["path"] for row in content["top_directories"]["by_stored_size"]} == {"/tree", "/tree/a/deep", "/tree/b"}'
true_of 'content["top_types"]["by_stored_size"][0]["type"] == ".bin" and content["top_types"]["by_stored_size"][0]["size"] == 1100000'

# The second has a file less, a file more, and a changed one: a delta against what the first has.
rm tree/b/two.bin tree/b/copy.bin
head -c 100000 /dev/urandom >tree/b/three.bin
(cat tree/a/deep/one.bin; echo more) >tree/a/deep/new.bin
rm tree/a/deep/one.bin
run 0 -r repo backup tree
run 0 --json -r repo report
true_of 'near(rows[1]["added"]["stored_size"], 100000) and rows[1]["deltas"]["objects"] == 1 and rows[1]["deltas"]["stored_size"] < 1000'
true_of 'near(rows[0]["would_free"]["stored_size"], 400000) and near(rows[1]["would_free"]["stored_size"], 100000)'
true_of "near(rows[1]['total_stored_size'], $(packs)) and rows[1]['shared_size'] == 108894"
run 0 --json -r repo report "$(python3 -c 'import json; print(json.loads(open("out").readlines()[-1])["snapshots"][0]["id"])')"
true_of 'content["size"] == 1208894'

# A third that is as the second: nothing is only one's, and so nothing would be freed but by the first.
run 0 -r repo backup tree
run 0 --json -r repo report
true_of 'rows[2]["added"]["objects"] == 0 and rows[1]["would_free"]["objects"] == 0 and rows[2]["would_free"]["objects"] == 0'
true_of 'near(rows[0]["would_free"]["stored_size"], 400000) and rows[2]["shared_size"] == 508899'

# Text, a table for spreadsheets, filters, and what is not there.
run 0 -r repo report
says "3 snapshots take"
says "/tree/a/deep/new.bin"
[ "$(wc -L <out)" -le 120 ] || fail "lines too long"
run 0 -r repo report --top 1
[ "$(grep -c '\.bin$' out)" = 4 ] || fail "not one of each"
run 0 -r repo report --csv
[ "$(wc -l <out)" = 4 ] || fail "not a line for each snapshot"
python3 - <<'PYTHON' || fail "the table is not what it should be"
import csv
rows = list(csv.DictReader(open("out")))
assert [int(row["bytes"]) for row in rows] == [1208894, 508899, 508899]
assert int(rows[2]["total_stored"]) == sum(int(row["added_stored"]) for row in rows)
PYTHON
run 0 --json -r repo report --host nobody
true_of 'rows == []'
run 14 -r repo report 00000000
run 14 -r repo report --host nobody 00000000
run 2 --json -r repo report --csv
# What another host has too would not be freed, also where it is not told of; and a container is as large as it is.
cp -r repo other
seq 100000 | gzip -n >tree/b/numbers.gz
run 0 -r other backup --host elsewhere tree
run 0 --json -r other report --host elsewhere
true_of "len(rows) == 1 and rows[0]['shared_size'] == 508899 and rows[0]['added']['size'] > 500000"
true_of "content['size'] == 508899 + $(stat -c %s tree/b/numbers.gz)"
run 0 --json -r other report --host "$(hostname)"
true_of 'len(rows) == 3 and near(rows[0]["would_free"]["stored_size"], 400000) and rows[2]["would_free"]["objects"] == 0'
rm -r other tree/b/numbers.gz
run 2 -r repo report --top 0

# A page that cannot be written in the end does not take the rest with it.
export KIN_PASSWORD=word
run 0 -r sealed init
unset KIN_PASSWORD
mkdir pages
run 14 -r sealed --password-command 'rmdir pages; echo word' report --html pages/page.html
says "0 snapshots take 0 B"
says "cannot make pages/page.html"
run 10 -r nowhere report

# A snapshot that is gone leaves what others lean on: only a base now.
first=$("$KIN" -r repo --json snapshots | sed -n 1p | python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["id"])')
rm "repo/snapshots/$first"
run 0 --json -r repo report
true_of 'it["bases_only"]["objects"] == 1 and near(it["bases_only"]["stored_size"], 300000)'

# Damage in one snapshot: it is named and left out, and the others are told of.
mkdir two && seq 100 >two/numbers && seq 200 >two/more
run 0 init --plain -r hurt
run 0 -r hurt backup tree
find hurt/packs -type f >whole
run 0 -r hurt backup two
find hurt/packs -type f | grep -vxFf whole | xargs rm
for form in "" --csv "--html -"; do
  run 13 -r hurt report $form --no-cache
done
run 13 --json -r hurt report --no-cache --html page.html
says "others may free less than is told"
grep -q "others may free less than is told" page.html || fail "not in the page"
true_of 'len(rows) == 1 and len(it["left_out"]) == 1 and rows[0]["id"] not in it["left_out"] and content == {}'
true_of 'rows[0]["would_free"] == rows[0]["added"] and rows[0]["added"]["stored_size"] > 300000'
whole_one=$(python3 -c 'import json; print(json.loads(open("out").readlines()[-1])["snapshots"][0]["id"])')
run 13 -r hurt report "$whole_one" --no-cache
says "directories that take most"
says "2 snapshots take at least"
# Of many that share a directory that is damaged, each.
mkdir two/same && seq 300 >two/same/file
run 0 init --plain -r shared
find shared/packs -type f >whole
for i in 1 2 3 4 5; do
  echo "$i" >two/changing
  run 0 -r shared backup two
  [ "$i" != 1 ] || find shared/packs -type f | grep -vxFf whole >first
done
xargs rm <first
run 13 --json -r shared report --no-cache
true_of 'rows == [] and len(it["left_out"]) == 5'

# Damage: told, and not counted over.
rm "$(find repo/packs -type f -printf '%s %p\n' | sort -n | tail -1 | cut -d' ' -f2)"
run 13 -r repo report
