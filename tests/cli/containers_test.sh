#!/usr/bin/env bash
# Archives are opened: they come back bit for bit by restore and dump, take little beside what they hold, and explain, stats and check know them.
source "$(dirname "$0")/lib.sh"
export KIN_REPOSITORY=$work/repo
mkdir -p tree/loose v1
# Words in no order: of numbers in order, what is closed takes a half more or less, as the repository's key has it.
python3 - <<'PYTHON'
import random
words = random.Random(1)
known = ["".join(words.choices("abcdefghiklmnoprstu", k=words.randint(2, 9))) for _ in range(2000)]
for i in range(1, 10):
    with open(f"v1/head{i}", "w") as head:
        head.write(" ".join(words.choices(known, k=4)) + "\n")
    with open(f"v1/file{i}", "w") as file:
        file.write("\n".join(" ".join(words.choices(known, k=12)) for _ in range(500)) + "\n")
PYTHON
cp -a v1 tree/loose/
tar -czf tree/v1.tgz v1
tar --format=posix -cf tree/v1.tar v1
(cd v1 && zip -qr ../tree/v1.zip .)
zip -q0 tree/nested.zip tree/v1.tgz
echo changed >>v1/file5
tar -czf tree/v2.tgz v1
head -c 3000 tree/v1.tgz >tree/cut.tgz
(gzip -c v1/file1; gzip -9c v1/file2; echo behind) >tree/several.gz

run 0 init --plain
run 0 --json backup tree
opened=$(field data_added_packed)
python3 - <<'PYTHON' || fail "the counts of containers"
import json
counts = json.loads(open("out").readlines()[-1])["containers"]
# nested.zip has a gzip that has a tar; in v1.tgz and v2.tgz are tars; several.gz ends in what is none.
assert counts["opened"] == {"gzip": 4, "tar": 4, "zip": 2}, counts
assert counts["closed"] == [{"type": "gzip", "reason": "the deflate stream cannot be opened", "count": 1}], counts
PYTHON
run 0 restore latest --verify --target back
same tree back/tree
run 0 check --read-data
for file in v1.tgz v1.tar v1.zip nested.zip cut.tgz several.gz; do
  "$KIN" dump latest "tree/$file" >dumped || fail "dump $file"
  cmp dumped "tree/$file" || fail "dumped $file differs"
done
mkdir untar
"$KIN" dump latest tree | tar -xf - -C untar
same tree untar/tree
run 0 stats --details
says "(recipes of containers)"
grep -qE "^gzip +3 " out && grep -qE "^tar +3 " out || fail "stats does not count gzip and tar files"
grep -qE "^zip +2 " out || fail "stats does not count zip files"
run 0 explain tree/nested.zip
says "tree/v1.tgz:"
says "v1/file5"
says "deflate"
says "as it is"
run 0 --json explain tree/v1.zip
python3 - <<'PYTHON' || fail "the tree of explain"
import json
it = json.loads(open("out").readlines()[-1])
(container,) = it["containers"]
names = {member["name"]: member for member in container["members"]}
assert names["file5"]["coding"] == "deflate" and names["file5"]["size"] > 20000, names
assert 0 < names["file5"]["corrections_size"] < 500, names
assert container["size"] == it["size"] and container["members_count"] == len(container["members"])
assert sum(o["stored_size"] for o in it["objects"]) == it["total"]["stored_size"]
PYTHON

# What has not changed is not read again; what has takes little.
run 0 --json backup tree
[ "$(field bytes_read)" = 0 ] || fail "unchanged containers were read"
run 0 --json backup --force tree
[ "$(field data_objects)" = 0 ] || fail "the same containers were stored again"

# Without, and with some.
run 0 -r plain init --plain
run 0 -r plain --json backup --no-unpack tree
grep -q '"containers":{"closed":\[\],"opened":{}}' out || fail "--no-unpack counts containers"
closed=$(field data_added_packed)
[ "$closed" -gt $((opened * 2)) ] || fail "opened takes $opened, closed $closed"
run 0 -r plain restore latest --target closed
same tree closed/tree
run 0 -r plain explain tree/v1.zip
grep -q member out && fail "opened in spite of --no-unpack"
run 0 -r some init --plain
run 0 -r some backup --unpack-only tar,gzip tree
run 0 -r some explain tree/v1.tgz
says "v1/file5"
run 0 -r some explain tree/v1.zip
grep -q member out && fail "opened a zip with --unpack-only tar,gzip"
run 2 backup --unpack-only rar tree
says "it knows gzip, bzip2, xz, zip, tar, ar, cpio, iso9660, png, pdf, mbox, mime"
run 2 backup --unpack-only zip --no-unpack tree
run 0 --json backup -n tree
