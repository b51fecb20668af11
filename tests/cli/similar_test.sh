#!/usr/bin/env bash
# kin similar, groups, compare and study: what they find, in text, JSON and HTML, and what they say of bad input.
source "$(dirname "$0")/lib.sh"

mkdir -p tree/sub other
seq 1 9000 >tree/numbers
(seq 1 4000; echo changed; seq 4001 9000) >tree/sub/changed.txt
cp tree/numbers tree/sub/copy
head -c 60000 /dev/urandom >tree/noise
printf tiny >tree/tiny; printf tiny >tree/tiny2; : >tree/empty
truncate -s 20M tree/sparse

# Every method finds the copy; what reads content finds the changed file.
for method in features sif simhash simihash pas epas tsa simihash-uniform; do
  run 0 groups tree --method "$method" --json
  python3 - "$method" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open("out")]
equal = [{file["path"] for file in line["files"]} for line in lines if line["message_type"] == "equal_group"]
assert {"tree/numbers", "tree/sub/copy"} in equal and {"tree/tiny", "tree/tiny2"} in equal and len(equal) == 2, equal
similar = [{file["path"] for file in line["files"]} | {line["first"]["path"]} for line in lines if line["message_type"] == "similar_group"]
if sys.argv[1] in ("features", "sif", "simhash", "epas"):
    assert similar == [{"tree/numbers", "tree/sub/changed.txt"}], similar
summary = lines[-1]
assert summary["files"] == 7 and summary["equal_groups"] == 2 and summary["skipped"] == 0, summary
PYTHON
done
run 0 groups tree --method sif
says 'R100 tree/numbers 43893' && grep -Eq '^ +[0-9]+ tree/sub/changed.txt 43901$' out || fail "no R lines"
run 0 groups tree --suffix .txt; says '0 groups of similar'
run 0 groups tree --same-suffix; says '0 groups of similar'
run 0 groups tree --min-size 40k --max-size 50k; says 'of 3 files; 1 group of equal'
run 0 groups tree --method sif --overlapping --interesting --min-similarity 50; says 'values in common'
run 0 groups tree --html page.html; grep -q '<figure id="groups-plot">' page.html || fail "no graph"
run 0 groups tree --html -; head -1 out | grep -qx '<!DOCTYPE html>' || fail "no page on stdout"

mkdir links; cp tree/noise links/a; ln links/a links/b
run 0 groups links; says 'whose copies take 0 B'
# One against all.
run 0 similar tree/sub/changed.txt tree
sed -n 2p out | grep -Eq '^ +[0-9]+ % .* tree/(numbers|sub/copy)$' || fail "the nearest is not first"
run 0 --json similar tree/numbers tree
python3 - <<'PYTHON'
import json
lines = [json.loads(line) for line in open("out")]
first = lines[0]
assert first["path"] == "tree/sub/copy" and first["equal"] and first["delta"] < 100, first
assert lines[1]["path"] == "tree/sub/changed.txt" and lines[1]["delta"] < 1000, lines[1]
assert all(line.get("path") != "tree/numbers" for line in lines), "itself"
PYTHON
run 0 similar tree/noise tree; says 'none of'
# Of thousands of copies each is found, by each command.
mkdir many many2
seq 1 2000 >many/0
python3 -c 'import shutil; [shutil.copy("many/0", f"many/{i}") for i in range(1, 4200)]'
run 0 similar many/7 many --no-delta -n 5; [ "$(grep -c ' equal ' out)" = 5 ] || fail "copies are not like each other"
(seq 1 1000; echo x; seq 1001 2000) >many2/0
run 0 similar many2/0 many --no-delta -n 5; [ "$(grep -c ' many/' out)" = 5 ] || fail "nothing is like a file of many copies"
run 0 groups many many2; says '1 group of similar'
run 0 compare many2 many; grep -Eq '^M +[1-9][0-9]* % 0$' out || fail "a changed file has nothing in common"
rm -r many many2
run 0 -r repo init --plain; run 0 -r repo backup tree
run 0 -r repo similar tree/sub/changed.txt; says equal; says /tree/sub/changed.txt; says /tree/numbers
(seq 1 4000; echo more; seq 4001 9000) >other/more
run 0 -r repo --json similar other/more --no-delta --names
python3 -c 'import json; line = json.loads(open("out").readline()); assert line["path"] in ("/tree/numbers", "/tree/sub/changed.txt") and line["similarity"] > .5 and not line["stored"], line'
rm -rf cache  # the features are read from the packs again
run 0 -r repo similar other/more; says /tree/
run 2 -r repo similar other/more --method sif; run 2 -r repo similar other/more --suffix .c; says 'go with paths'
run 2 -r repo similar other/more tree; says 'not in both'; KIN_REPOSITORY=repo run 0 similar other/more tree
run 0 -r repo similar other/more --min-similarity 101; says 'nothing in the repository'
run 10 -r none similar other/more

# Two files, two directories.
run 0 compare tree/numbers tree/sub/copy; says equal
run 0 compare tree/numbers tree/sub/changed.txt; says 'as a delta the second takes'
cp -r tree moved; mv moved/numbers moved/renamed; echo x >>moved/sub/changed.txt; mv moved/sub/copy moved/sub/likeness; echo y >>moved/sub/likeness
rm moved/noise; seq 5 >moved/new
run 0 compare tree moved
for line in 'R numbers -> renamed' '- noise' '+ new'; do grep -qxF -- "$line" out || fail "no line: $line"; done
grep -Eq '^M +[0-9]+ % sub/changed.txt$' out && grep -Eq '^S +[0-9]+ % sub/copy -> sub/likeness$' out || fail "no percentage"
says '4 equal, 1 changed, 1 renamed, 1 similar, 1 only in the first, 1 only in the second'
run 2 compare tree tree/noise; run 14 compare tree none

run 0 compare /proc/version /proc/cmdline; if grep -qx equal out; then fail "files without a size are equal"; fi
cat /proc/version >version; run 0 compare /proc/version version; grep -qx equal out || fail "a file without a size differs from its copy"
# Nothing for the method to go by: equal files are found nevertheless.
run 0 similar tree/tiny tree; says 'tree/tiny is too short or too uniform for features'; grep -Eq '^ +equal .* tree/tiny2$' out || fail "no equal file"
truncate -s 1M hole; run 0 similar hole tree; says 'hole is too short or too uniform for features'
# A signal is heard while one file is read.
truncate -s 1T huge
for command in 'groups huge' 'similar huge tree' 'similar tree/noise huge' 'compare huge huge' 'simhash -m huge huge'; do
  # shellcheck disable=SC2086
  "$KIN" $command >out 2>err & pid=$!
  sleep .5; kill -TERM "$pid"; code=0; wait "$pid" || code=$?
  [ "$code" = 130 ] || fail "kin $command: exit code $code after SIGTERM"
done
rm huge

# The study.
run 0 --json study detectors tree --html study.html --sample 8 --all
python3 - <<'PYTHON'
import json
study = json.loads(open("out").readline())
rows = {row["detector"]: row for row in study["detectors"]}
assert len(rows) == 11 and study["files"] == 6 and study["left_out"] == 1, study
assert rows["features"]["stored_bytes"] < study["alone_bytes"] * .8, rows["features"]
assert rows["features"]["recalled"] == study["with_kin"] > 0, study
PYTHON
grep -q 'id="stored-plot"' study.html || fail "no plot"
run 0 study detectors tree --method sif,tsa --sample 0; says tsa
run 2 study something tree; run 2 study detectors tree --method md5

# Bad input: one sentence each, and the others go on.
mkfifo fifo; ln -s tree/numbers link; mkdir locked; cp tree/numbers locked/file
run 3 groups fifo /dev/null link none tree
says 'fifo is a FIFO'; says '/dev/null is a device'; says 'link is a symbolic link'; says 'none: No such file'; says '1 group of similar'
[ "$(wc -l <err)" = 4 ] || fail "more than one sentence each"
run 14 groups none; says 'none of the paths can be read'
run 2 similar fifo tree; says 'fifo is a FIFO, and only files are compared'
run 2 similar /dev/zero tree; run 2 compare fifo tree/noise
run 14 similar none tree

# What cannot be read is told of, and not taken for what is not there.
as_nobody=()
[ "$(id -u)" != 0 ] || as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
mkdir -p left/d right/d; seq 100 >left/file; seq 100 >right/file; seq 99 >left/d/x; seq 99 >right/d/x; seq 98 >right/d/y
cp "$KIN" kin; chmod 000 locked/file left/file right/d; chmod 755 .
code=0; "${as_nobody[@]}" ./kin groups locked tree >out 2>err || code=$?
[ "$code" = 3 ] || fail "exit code $code"; says 'locked/file: Permission denied'
code=0; "${as_nobody[@]}" ./kin compare left right >out 2>err || code=$?
[ "$code" = 3 ] || fail "exit code $code"
grep -qx '? file' out || fail "a file that could not be read is taken for none"
grep -qx '? d/x' out || fail "a directory that could not be read is taken for an empty one"
says '0 only in the first, 0 only in the second, 2 that cannot be told'
for wrong in '--method md5' '--min-similarity -1' '--min-similarity x' '--size-ratio 0' '--size-ratio nan' '--min-similarity nan' '--min-size x' '--interesting --method simihash' '--interesting --same-suffix' '--interesting --size-ratio 2'; do
  # shellcheck disable=SC2086
  run 2 groups $wrong tree
done
run 2 groups
run 2 groups tree --interesting --method simihash; says '--interesting needs values that files share'
run 0 groups tree --min-similarity 33.5
run 2 study detectors tree --sample 1001
TMPDIR=$work/nonexistent run 1 --no-cache groups tree --method simihash; says TMPDIR
