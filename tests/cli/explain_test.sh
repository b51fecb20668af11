#!/usr/bin/env bash
# How files are stored is told right: bases with where they came from, groups, holes, damage; and the sums of explain and stats agree.
source "$(dirname "$0")/lib.sh"
export KIN_REPOSITORY=$work/repo
mkdir -p tree/sub
python3 - <<'END'
import random
pick = random.Random(1)
words = ["".join(pick.choice("abcdefghijklmnop") for _ in range(pick.randint(3, 9))) for _ in range(3000)]
def text(size, seed):
    pick = random.Random(seed)
    return " ".join(pick.choice(words) for _ in range(size // 4))[:size].encode()
def write(name, content):
    with open("tree/" + name, "wb") as file:
        file.write(content)
prose = text(60000, 5)
write("a.txt", prose)
write("b.txt", prose[:20000] + b"CHANGED" + prose[20000:])
for i in range(5):
    write(f"sub/s{i}.c", text(800 + i, 10 + i))
write("whole.bin", pick.randbytes(700000))
huge = pick.randbytes(20000000)
write("huge.bin", huge)
write("twice.bin", huge + huge)
write("empty", b"")
with open("tree/sparse", "wb") as file:
    file.write(text(10000, 77))
    file.seek(4 << 20)
    file.write(b"x" * 5000)
    file.truncate(8 << 20)
END
ln -s a.txt tree/link
run 0 init --plain
run 0 backup tree
python3 - <<'END'
content = open("tree/b.txt", "rb").read()
open("tree/b.txt", "wb").write(content + b" and more")
content = open("tree/huge.bin", "rb").read()
open("tree/huge.bin", "wb").write(content[:5000000] + b"inserted" + content[5000000:])
END
run 0 backup tree
first=$("$KIN" --json snapshots | sed -n 1p | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')

# The last line of out, as `it`, must be so.
true_of() { python3 -c 'import json,sys; it = json.loads(open("out").readlines()[-1]); sys.exit(not ('"$1"'))' || fail "not so: $1"; }
# Whatever the file: the parts are the whole.
sums_agree() {
  run 0 --json explain "$@"
  [ "$(wc -l <out)" = 1 ] || fail "not one document"
  true_of 'all([it["message_type"] == "explanation",
    len(it["objects"]) == it["total"]["objects"],
    sum(o["size"] for o in it["objects"]) == it["total"]["content_size"],
    sum(h["size"] for h in it["holes"]) == it["total"]["hole_size"],
    it["total"]["content_size"] + it["total"]["hole_size"] == it["size"],
    sum(o["stored_size"] for o in it["objects"]) == it["total"]["stored_size"],
    all(len(o["bases"]) == o["chain"]["depth"] for o in it["objects"]),
    all(o["chain"]["bytes"] == sum(x["block"]["content_size"] for x in [o] + o["bases"]) for o in it["objects"]),
    all((x["form"] == "delta") == (x is not ([o] + o["bases"])[-1]) for o in it["objects"] for x in [o] + o["bases"]),
    all(o["stored_size"] == o["block"]["stored_size"] for o in it["objects"] if o["block"]["objects"] == 1 and "repeated" not in o)])'
}
for file in a.txt b.txt sub/s1.c whole.bin huge.bin twice.bin empty sparse; do
  sums_agree "tree/$file"
  run 0 explain "tree/$file"
  awk 'length > 100 { exit 1 }' out || fail "lines of more than 100 columns for $file"
done

sums_agree "$first:tree/huge.bin"

# Similar files of one backup: the second is a delta against the first, which is in a group.
run 0 --json explain "$first:/tree/b.txt"
true_of '[o["form"] for o in it["objects"]] == ["delta"] and it["total"]["depth"] == 1'
true_of 'it["objects"][0]["bases"][0]["path"] == "/tree/a.txt" and it["objects"][0]["bases"][0]["snapshot"] == it["snapshot"]'
true_of 'it["objects"][0]["bases"][0]["form"] == "group" and it["objects"][0]["bases"][0]["matching_features"] >= 14'
run 0 explain "$first:/tree/b.txt"
says "from /tree/a.txt in the same snapshot"
says " of 16  group of "
# Over two snapshots: against the version before.
run 0 --json explain tree/b.txt
true_of 'it["total"]["depth"] == 2 and it["snapshot"] != "'"$first"'" and it["total"]["stored_size"] < 1000'
true_of '[(b["path"], b["snapshot"]) for b in it["objects"][0]["bases"]] == [("/tree/b.txt", "'"$first"'"), ("/tree/a.txt", it["snapshot"])]'
run 0 explain tree/b.txt
says "from /tree/b.txt in snapshot ${first:0:8}"
says "2 deltas in a row"
# A member of a group, and a large file that resembles nothing.
run 0 explain tree/sub/s1.c
grep -qE "group of [0-9]+, zstd +about [0-9]+ B" out || fail "not a group"
run 0 --json explain tree/sub/s1.c
true_of 'it["objects"][0]["block"]["objects"] > 5 and it["objects"][0]["bases"] == []'
run 0 explain tree/whole.bin
says "whole, plain"
# A file of several objects, of at most 4 MiB wherever the key cuts it; some of it changed.
run 0 --json explain tree/huge.bin
true_of 'it["total"]["objects"] >= 5 and sum(o["form"] == "delta" for o in it["objects"]) >= 1'
true_of 'all(b["path"] == "/tree/huge.bin" for o in it["objects"] for b in o["bases"] if b["snapshot"] == "'"$first"'")'
# What a file has twice takes room once.
run 0 --json explain tree/twice.bin
true_of 'any("repeated" in o for o in it["objects"]) and it["total"]["stored_size"] < 30000000'
run 0 -v explain tree/twice.bin  # all of it: how many lines come before depends on the random key
says "nothing more"
run 0 explain tree/empty
says "0 B: an empty file"
run 0 explain tree/sparse
says "hole "
run 0 --json explain tree/sparse
true_of 'len(it["holes"]) == 2 and it["total"]["hole_size"] > 7000000'
# Ways to name it; -q leaves what was asked for.
for place in "latest tree/a.txt" "latest:tree a.txt" "latest:/tree/a.txt" /tree/a.txt "-H $(hostname) tree/a.txt" "-q tree/a.txt"; do
  run 0 explain $place
  says "File:      /tree/a.txt"
done
# What cannot be explained.
run 2 explain tree/sub
says "/tree/sub is a directory, and explain is about files"
run 2 explain latest:
says "a directory"
run 2 explain tree/link
says "symlink"
run 14 explain tree/nope
says "there is no tree/nope"
run 14 explain ffff:tree/a.txt
run 14 explain -H nobody tree/a.txt
run 2 explain

# Stats: the blocks are all that the packs hold besides their prefixes of 24 bytes, and every object is in one row of each table.
run 0 --json stats --details
true_of 'all([sum(e["stored_size"] for e in it["encodings"]) + 24 * it["packs_count"] == it["stored_size"],
  sum(e["objects"] for e in it["encodings"]) == it["total_object_count"],
  sum(e["size"] for e in it["encodings"]) == it["total_object_size"],
  sum(t["objects"] for t in it["types"]) == sum(c["objects"] for c in it["chains"]) == it["total_object_count"],
  sum(t["size"] for t in it["types"]) == sum(c["size"] for c in it["chains"]) == it["total_object_size"],
  sum(t["stored_size"] for t in it["types"]) == sum(c["stored_size"] for c in it["chains"]),
  0 <= it["stored_size"] - sum(t["stored_size"] for t in it["types"]) < 24 * it["packs_count"] + it["total_object_count"]])'
true_of 'sum(e["objects"] for e in it["encodings"] if e["form"] == "delta") == sum(c["objects"] for c in it["chains"] if c["depth"] > 0) > 1'
true_of 'max(c["depth"] for c in it["chains"]) >= 2 and it["kept_as_bases"]["objects"] == 0 == it["missing_objects"]'
true_of '[t["objects"] for t in it["types"] if t["type"] == ".c"] == [5] and it["types"][0]["type"] == ".bin"'
run 0 --json stats
true_of '"encodings" in it and "types" not in it and "chains" not in it'
run 0 stats
[ "$(wc -l <out)" = 11 ] || fail "the overview is not short"
grep -qE "^As deltas: +[0-9]+ objects?, " out || fail "deltas are not told"
run 0 stats --details
says "Kept as bases:    nothing"
grep -qE "^group, zstd +[0-9]" out || fail "no table of encodings"
run 2 stats --details --mode raw-data
# What the latest snapshot leans on and does not have.
run 0 --json stats --details latest
true_of 'it["kept_as_bases"]["objects"] >= 1 and it["kept_as_bases"]["size"] >= 60000'
run 0 stats --details latest
grep -qE "^Kept as bases: +[0-9,]+ objects? that none of these snapshots has" out || fail "bases are not told"
# More types than there are rows.
mkdir types && for i in {10..29}; do echo "$i" >"types/file.T$i"; done
KIN_REPOSITORY=$work/types-repo run 0 init --plain
KIN_REPOSITORY=$work/types-repo run 0 backup types
KIN_REPOSITORY=$work/types-repo run 0 --json stats --details
true_of 'len(it["types"]) == 11 and it["types"][-1]["type"] == "(others)" and sum(t["objects"] for t in it["types"]) == 22'
true_of '".t10" in [t["type"] for t in it["types"]]'

# Many objects: the first 20 in text, unless all are asked for.
head -c 60000000 /dev/urandom >tree/many.bin
run 0 backup tree
sums_agree tree/many.bin
true_of 'it["total"]["objects"] > 20 and it["total"]["lists"] > 0'
run 0 explain tree/many.bin
grep -q "^and [0-9]* more (-v lists all)$" out || fail "does not say that there are more"
[ "$(grep -c ' whole, plain ' out)" = 20 ] || fail "not 20 lines"
run 0 -v explain tree/many.bin
[ "$(grep -c ' whole, plain ' out)" -gt 20 ] || fail "not all lines"

# A container of many members: told of one after the other, in little memory, and in a time that goes by their number.
python3 - <<'PYTHON'
import io, tarfile
with tarfile.open("tree/members.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
    for i in range(40000):
        content = b"%d is the content of a member, and long enough to be an object of its own\n" % i
        member = tarfile.TarInfo("d%d/f%d" % (i // 1000, i))
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
PYTHON
run 0 backup tree
python3 - "$KIN" <<'PYTHON' || fail "many members take too much"
import json, os, resource, subprocess, sys
with open("out", "wb") as out:
    # Three seconds; of what goes by the square of their number, minutes.
    subprocess.run([sys.argv[1], "--json", "explain", "tree/members.tar"], stdout=out, check=True,
                   timeout=None if "KIN_SANITIZED" in os.environ else 100)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
assert peak < 128 << 10 or "KIN_SANITIZED" in os.environ, f"took {peak} KiB of memory"
with open("out") as out:
    lines = out.readlines()
assert len(lines) == 1
it = json.loads(lines[0])
container = it["containers"][0]
assert container["type"] == "tar" and container["members_count"] == len(container["members"]) >= 40000
assert container["members"][7]["name"] == "d0/f7" and container["members"][7]["coding"] == "none"
assert len(it["objects"]) == it["total"]["objects"] > 40000
assert it["message_type"] == "explanation" and it["holes"] == []
PYTHON
run 0 explain tree/members.tar
grep -q "^and [0-9,]* more (-v lists all)$" out || fail "does not say that there are more members"

# A base that no snapshot has any more, and one that cannot be read.
rm "repo/snapshots/$first"
run 0 explain tree/b.txt
says "from a file that no snapshot has"
says "from /tree/a.txt in the same snapshot"
base=$("$KIN" --json explain tree/b.txt | python3 -c 'import json,sys; b = json.load(sys.stdin)["objects"][0]["bases"][0]; print(b["id"], b["block"]["pack"])')
pack=${base#* }
rm "repo/packs/${pack:0:2}/$pack"
run 13 explain tree/b.txt
says "base ${base:0:8}: pack ${pack:0:8} is missing"
grep -q "^  base ${base:0:8} .*cannot be read" out || fail "the damaged base is not named"
run 13 --json explain tree/b.txt
true_of '"is missing" in it["objects"][0]["damage"] and it["objects"][0]["bases"][-1]["id"].startswith("'"${base:0:8}"'")'
run 13 explain tree/a.txt
says "cannot be read"
# An index that does not know it either.
run 0 repair index
run 13 stats --details
grep -qE "^kin: [0-9]+ objects are missing" err || fail "stats does not tell what is missing"
echo passed
