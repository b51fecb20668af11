#!/usr/bin/env bash
# The options of backup and restore do what they say.
source "$(dirname "$0")/lib.sh"
mkdir -p tree/{sub,cache,marked} && cd tree
echo one >one.txt; echo two >sub/two.o; echo three >sub/THREE.TXT; echo k >cache/k; echo m >marked/m; echo >marked/.nobackup
printf 'Signature: 8a477f597d28d172789f06886806bc55\n' >cache/CACHEDIR.TAG
head -c 300000 /dev/zero >zeros
cd ..
run 0 -r repo init --plain
listed() { run 0 -r repo ls latest; grep -qx "$1" out; }

run 0 -r repo backup --exclude '*.o' --iexclude '*.txt' --exclude-caches --exclude-if-present .nobackup --exclude-larger-than 100k tree
for gone in /tree/one.txt /tree/sub/two.o /tree/sub/THREE.TXT /tree/cache/k /tree/marked/m /tree/zeros; do listed "$gone" && fail "$gone was not left out"; done
listed /tree/cache/CACHEDIR.TAG || fail "CACHEDIR.TAG is gone"
listed /tree/marked || fail "the marked directory itself is gone"
printf '# comment\n\nsub\n' >patterns
run 0 -r repo backup --exclude-file patterns tree
listed /tree/sub && fail "--exclude-file did nothing"
printf 'tree/one.txt\ntree/sub\n' >list
run 0 -r repo backup --files-from list --tag a,b --tag c --host elsewhere --time '2020-02-02 20:20:20'
run 0 -r repo ls latest --host elsewhere
grep -qx /tree/zeros out && fail "--files-from took too much"
grep -qx /tree/one.txt out || fail "--files-from took too little"
run 0 -r repo --json snapshots --tag a,c --host elsewhere
python3 - <<'PYTHON'
import json
lines = [json.loads(line) for line in open("out")]
assert len(lines) == 1 and lines[0]["tags"] == ["a", "b", "c"] and lines[0]["hostname"] == "elsewhere", lines
PYTHON
run 0 -r repo backup --as-path /other/place tree
listed /other/place/one.txt || fail "--as-path did nothing"

# stdin and commands.
echo piped | run 0 -r repo backup --stdin --stdin-filename note
run 0 -r repo dump latest note && [ "$(cat out)" = piped ] || fail "--stdin lost its content"
run 0 -r repo backup --stdin-from-command --stdin-filename seq -- seq 10
run 0 -r repo dump latest seq && [ "$(cat out)" = "$(seq 10)" ] || fail "--stdin-from-command lost its content"
before=$(ls repo/snapshots | wc -l)
run 1 -r repo backup --stdin-from-command -- sh -c 'echo half; exit 7'
says "exit code 7"
[ "$(ls repo/snapshots | wc -l)" = "$before" ] || fail "a failed command made a snapshot"
run 14 -r repo backup --stdin-from-command -- no-such-command

# Dry runs write nothing.
cp -a repo before
run 0 -r repo backup -n tree
says "nothing was written"
diff -r repo before >/dev/null || fail "backup -n wrote something"
run 0 -r repo backup tree
run 0 -r repo restore latest -t dry -n
[ ! -e dry ] || fail "restore -n wrote something"

# restore: what is replaced, what is kept, what is deleted.
run 0 -r repo restore latest -t t
echo changed >t/tree/one.txt; echo extra >t/tree/extra; mkdir t/tree/sub/more; echo x >t/tree/sub/more/x
run 0 -r repo restore latest -t t --overwrite never
[ "$(cat t/tree/one.txt)" = changed ] || fail "--overwrite never replaced"
touch -d '2001-01-01' t/tree/one.txt
run 0 -r repo restore latest -t t --overwrite if-newer
[ "$(cat t/tree/one.txt)" = one ] || fail "--overwrite if-newer kept an older file"
echo changed >t/tree/one.txt
run 0 -r repo restore latest -t t --overwrite if-newer
[ "$(cat t/tree/one.txt)" = changed ] || fail "--overwrite if-newer replaced a newer file"
run 0 -r repo restore latest -t t --overwrite if-changed
[ "$(cat t/tree/one.txt)" = one ] || fail "--overwrite if-changed kept a changed file"
run 0 -r repo restore latest -t t --delete -n
[ -e t/tree/extra ] || fail "--delete -n deleted"
run 0 -r repo restore latest -t t --delete
[ ! -e t/tree/extra ] && [ ! -e t/tree/sub/more ] || fail "--delete did nothing"
same tree t/tree
mkdir t/tree/new && echo precious >t/tree/new/kept.c && echo x >t/tree/new/gone
run 0 -r repo restore latest -t t --delete --exclude '*.c'
[ -e t/tree/new/kept.c ] && [ ! -e t/tree/new/gone ] || fail "--delete took what --exclude protects"
run 0 -r repo restore latest -t inc --include '*.o'
[ "$(cd inc && find . -type f)" = ./tree/sub/two.o ] || fail "--include took too much or too little"
run 0 -r repo restore latest -t exc --exclude sub
[ ! -e exc/tree/sub ] && [ -e exc/tree/one.txt ] || fail "--exclude did not fit"
run 0 -r repo restore latest -t sparse --sparse
[ "$(stat -c %b sparse/tree/zeros)" -lt 100 ] || fail "--sparse made no hole"
run 0 -r repo restore latest:tree/one.txt -t single
[ "$(cat single/one.txt)" = one ] && [ "$(ls single)" = one.txt ] || fail "one file alone was not restored"

# Unreadable and vanishing things: named, and exit code 3; the rest is there. (Root reads everything.)
if [ "$(id -u)" != 0 ]; then
  chmod 000 tree/one.txt
  run 3 -r repo backup tree
  says one.txt
  chmod 644 tree/one.txt
fi

# What is in the way goes only when its successor exists; hard links never join a file that was kept.
mkdir linked && echo one >linked/a && ln linked/a linked/b
run 0 -r repo backup linked
mkdir -p kept/linked && echo mine >kept/linked/a
run 0 -r repo restore latest -t kept --overwrite never
[ "$(cat kept/linked/a)" = mine ] && [ "$(cat kept/linked/b)" = one ] || fail "a kept file got a name of the snapshot"
head -c 100000000 /dev/urandom >linked/large
run 0 -r repo backup linked
run 0 -r repo restore latest -t kept
run 0 -r repo restore latest -t kept --delete
same linked kept/linked
run 0 -r repo backup tree

# Links in the target are never followed.
mkdir outside evil && ln -s "$work/outside" evil/tree
run 0 -r repo restore latest -t evil
[ -z "$(ls outside)" ] || fail "restore wrote through a link"
same tree evil/tree

# The default repository of a first backup.
run 0 backup tree
says "not encrypted"
says "kin restore latest --target DIR brings it back"
[ -f "$work/data/kin/default/config" ] || fail "the default repository is not where it should be"
run 0 restore latest -t first
same tree first/tree

# tags, keys, cache.
run 0 -r repo tag --add new --remove a latest
run 0 -r repo --json snapshots --tag new
[ "$(wc -l <out)" = 1 ] || fail "tag --add did not mark one snapshot"
export KIN_PASSWORD=one
run 0 -r sealed init
KIN_NEW_PASSWORD=two run 0 -r sealed key add
KIN_PASSWORD=two run 0 -r sealed snapshots
run 0 -r sealed --json key list
[ "$(wc -l <out)" = 2 ] || fail "there should be two keys"
KIN_NEW_PASSWORD=three run 0 -r sealed key passwd
run 12 -r sealed snapshots
other=$(KIN_PASSWORD=three "$KIN" -r sealed --json key list | python3 -c 'import json,sys; print([k["id"] for k in map(json.loads, sys.stdin) if not k["current"]][0])')
KIN_PASSWORD=three run 0 -r sealed key remove "${other:0:10}"
KIN_PASSWORD=two run 12 -r sealed snapshots
current=$(KIN_PASSWORD=three "$KIN" -r sealed --json key list | python3 -c 'import json,sys; print(json.loads(sys.stdin.readline())["id"])')
KIN_PASSWORD=three run 2 -r sealed key remove "$current"
unset KIN_PASSWORD
echo three >pw
run 0 -r sealed --password-file pw snapshots
KIN_PASSWORD_COMMAND='cat pw' run 0 -r sealed snapshots
KIN_PASSWORD_FILE=pw run 0 snapshots -r sealed
run 0 --version
[ "$(cat out)" = "kin 0.1.0" ] || fail "--version said $(cat out)"
for order in "--json --version" "--version --json"; do
  run 0 $order
  [ "$(field message_type) $(field version)" = "version 0.1.0" ] || fail "kin $order is not JSON"
done
run 0 cache
run 0 -r repo --no-cache ls latest
echo passed
