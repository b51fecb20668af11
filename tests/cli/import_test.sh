#!/usr/bin/env bash
# Archives become snapshots, as if the tree had been backed up; bad ones become none.
source "$(dirname "$0")/lib.sh"
export KIN_REPOSITORY=$work/repo
mkdir -p tree/deep/er tree/empty tree/a
seq 1 300000 >tree/numbers
head -c 200000 /dev/urandom >tree/deep/noise
ln tree/deep/noise tree/deep/er/linked
ln -s noise tree/deep/symbolic
truncate -s 3M tree/deep/sparse
echo end >>tree/deep/sparse
echo ä >"tree/deep/ä ö"
echo first >tree/a.b
echo second >tree/a/b
: >tree/deep/nothing
tar -czf tree/deep/inner.tgz tree/a tree/numbers
touch -d 2001-02-03T04:05:06.123456789Z tree/numbers
chmod 4751 tree/deep/nothing
chmod 1777 tree/empty
mkfifo tree/pipe
[ "$(id -u)" != 0 ] || { chown 1234:4321 tree/numbers; mknod tree/null c 1 3; }
setfattr -n user.note -v kept tree/numbers 2>/dev/null || true
setfacl -m u:1000:rw,g:33:r,m:rwx tree/deep/er/linked 2>/dev/null || true
setfacl -d -m u:1000:rw tree/a 2>/dev/null || true
run 0 init --plain

# Everything that tar holds, and what kin exports.
tar --format=posix --xattrs --xattrs-include='*' --acls -Scf all.tar tree
touch -d 2020-05-06T07:08:09Z all.tar
run 0 import all.tar
says "read as POSIX pax"
run 0 restore latest --verify --target back
same tree back/tree
rm -rf back
run 0 --json snapshots
[ "$(field time)" = 2020-05-06T07:08:09.000000000Z ] || fail "the snapshot's time is not the archive's"
grep -qF "$work/all.tar" out || fail "the snapshot does not name the archive"
run 0 backup tree
run 0 diff --metadata "$(sed -n 's/.*"short_id":"\([0-9a-f]*\)".*/\1/p' <("$KIN" --json snapshots) | sed -n 1p)" latest
grep -qE '^[-+MTU] ' out && fail "a backup of the same tree differs"
for end in tar.zst tar.xz cpio.gz; do
  run 0 export latest -f "round.$end"
  run 0 import "round.$end" --tag "$end" --time now
  run 0 restore latest --tag "$end" --target back
  [ $end = cpio.gz ] || same tree back/tree
  cmp tree/deep/noise back/tree/deep/er/linked || fail "$end gives other content"
  [ back/tree/deep/noise -ef back/tree/deep/er/linked ] || fail "$end loses a hard link"
  chmod -R u+rwx back && rm -rf back
done

# What is in it is opened, and shared with what is stored.
run 0 explain latest "tree/deep/inner.tgz"
says "tree/numbers"
run 0 --json import all.tar
[ "$(field data_added)" -lt 20000 ] || fail "what is stored was stored again"

# Other programs' archives, and other ways in.
(cd tree && zip -qry ../a.zip a a.b numbers deep/symbolic)
7z a b.7z tree/a tree/a.b >/dev/null
tar --format=v7 -cf - tree/a tree/numbers | gzip >c.tar.gz
cat all.tar all.tar >d.tar
for archive in a.zip c.tar.gz d.tar; do
  run 0 import "$archive" --host elsewhere --time 2021-01-01 --tag "$archive" --path "/from/$archive"
  run 0 restore "latest:from/$archive" --host elsewhere --tag "$archive" --target "back/$archive"
done
cmp tree/numbers back/a.zip/numbers || fail "zip gives other content"
[ "$(readlink back/a.zip/deep/symbolic)" = noise ] || fail "a symlink in zip"
cmp tree/numbers back/c.tar.gz/tree/numbers || fail "an old tar gives other content"
same tree back/d.tar/tree  # all after the end of the first is not looked at, as by tar
rm -rf back
run 0 import b.7z
run 0 dump latest tree/a.b >/dev/null
"$KIN" import - <c.tar.gz >out 2>err || fail "stdin from a file"
cat c.tar.gz | "$KIN" import - --tag piped >out 2>err || fail "stdin from a pipe"
run 0 ls latest --tag piped
says /tree/a/b
cat a.zip | "$KIN" import - >out 2>err && fail "a zip from a pipe" || [ $? = 15 ] || fail "exit code of a zip from a pipe"
says "from a pipe, that is tar and cpio"
if command -v cpio >/dev/null; then
  (cd tree && find . | cpio --quiet -o -H newc >../e.cpio 2>/dev/null)
  run 0 import e.cpio --tag cpio
  run 0 restore latest --tag cpio --target back
  [ back/deep/noise -ef back/deep/er/linked ] || fail "a hard link of cpio"
  cmp tree/deep/noise back/deep/er/linked || fail "the content of a hard link of cpio"
  rm -rf back
fi

# Names that look the same and are not stay two, in whichever archive.
mkdir forms && echo one >forms/$'e\xcc\x81' && echo two >forms/$'\xc3\xa9' && ln -s $'e\xcc\x81' forms/link
touch -h -d @1000000000 forms/* forms
tar --format=posix -cf forms.tar forms
7z a -snl forms.7z forms >/dev/null
7z a -snl forms.zip forms >/dev/null
for archive in forms.tar forms.7z forms.zip; do
  run 0 import $archive --time now
  run 0 restore latest --target back
  same forms back/forms --ignore-owner
  rm -rf back
done

# Names: the last of the same counts, absolute ones lose their slash, and none leads out.
mkdir twice && echo old >twice/x && tar -cf twice.tar twice && echo new >twice/x && tar -rf twice.tar twice/x
run 0 import twice.tar --time now
says "1 entry was replaced by a later one of the same name, as twice/x was"
[ "$("$KIN" dump latest twice/x)" = new ] || fail "not the last of the same name"
tar -P -cf absolute.tar "$work/twice/x"
run 0 import absolute.tar --time now
says "1 name begins with '/'"
[ "$("$KIN" dump latest "$work/twice/x")" = new ] || fail "an absolute name"
snapshots() { "$KIN" --json snapshots | wc -l; }
before=$(snapshots)
tar -P --transform 's,^,../,' -cf outside.tar twice/x
run 15 import outside.tar
says "would lie outside of it"

# Bad ones: an error, and no snapshot.
head -c 100000 all.tar >cut.tar
run 13 import cut.tar
gzip -c all.tar | head -c -4 >cut.tgz
run 13 import cut.tgz
gzip -c all.tar >flipped.tgz
flip flipped.tgz $(($(stat -c %s flipped.tgz) - 7))
run 13 import flipped.tgz
says "incorrect data check"
cp a.zip flipped.zip && flip flipped.zip $(($(stat -c %s a.zip) / 2))
run 13 import flipped.zip
head -c -30 a.zip >cut.zip
run 13 import cut.zip
says "no directory at its end"
tar -cjf whole.tbz tree/deep/noise
for at in 100 5000 90000; do  # the last gives garbage, and then a wrong checksum
  cp whole.tbz flipped.tbz && flip flipped.tbz $at
  run 13 import flipped.tbz
done
head -c 60 whole.tbz >cut.tbz
run 13 import cut.tbz
bzip2 -c tree/numbers >numbers.bz2
run 15 import numbers.bz2
says "is no archive that kin can read"
python3 - <<'END'
import tarfile
entry = tarfile.TarInfo("d/" * 5000 + "x")
with tarfile.open("deep.tar", "w", format=tarfile.PAX_FORMAT) as archive:
    archive.addfile(entry)
END
run 15 import deep.tar
says "directories deep"
[ "$(wc -c <err)" -lt 1000 ] || fail "an endless path in a message"
(cd tree && zip -qr -P secret ../secret.zip a)
run 15 import secret.zip
says "is encrypted"
run 15 import tree/numbers
says "is no archive that kin can read"
: >nothing
run 15 import nothing
gzip -k nothing
run 15 import nothing.gz
tar -cf empty.tar -T /dev/null
run 14 import empty.tar
says "no entries"
run 14 import missing.tar
run 2 import tree
run 2 import all.tar --path a/../b
[ "$(snapshots)" = "$before" ] || fail "something bad became a snapshot"
run 0 check --read-data
