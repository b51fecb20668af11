#!/usr/bin/env bash
# Snapshots go out as archives that other programs read.
source "$(dirname "$0")/lib.sh"
export KIN_REPOSITORY=$work/repo
as_root() { [ "$(id -u)" = 0 ]; }
mkdir -p tree/deep/er/$(printf 'long%.0s' {1..60}) tree/empty
seq 1 40000 >tree/numbers
head -c 200000 /dev/urandom >tree/deep/noise
ln tree/deep/noise tree/deep/er/linked
ln -s noise tree/deep/symbolic
truncate -s 3M tree/deep/sparse
echo end >>tree/deep/sparse
echo ä >"tree/deep/ä ö"
: >tree/deep/nothing
touch -d 2001-02-03T04:05:06.123456789Z tree/numbers
touch -d 1999-12-31T23:59:59Z tree/deep/noise
chmod 4751 tree/deep/nothing
chmod 1777 tree/empty
plain=tree/deep/plain
mkdir $plain && cp -a tree/numbers "tree/deep/ä ö" $plain/ && touch -d @1000000000 $plain/* $plain
mkfifo tree/pipe
if as_root; then
  chown 1234:4321 tree/numbers
  mknod tree/null c 1 3
fi
setfattr -n user.note -v kept tree/numbers 2>/dev/null && attributes=1 || attributes=
setfacl -m u:1000:rw,g:33:r tree/deep/er/linked 2>/dev/null || true
run 0 init --plain
run 0 backup tree

# tar holds everything, whatever it is compressed with.
for end in tar tar.gz tgz tar.bz2 tar.xz tar.zst tar.Z; do
  run 0 export latest:tree -f "out.$end"
  says "exported 8 files"
  mkdir x
  tar --xattrs --xattrs-include='*' --acls -xpf "out.$end" -C x || fail "tar does not read $end"
  same --ignore-root tree x
  chmod -R u+rwx x && rm -rf x
done
cmp out.tgz out.tar.gz || fail "the same snapshot makes two archives"
for end in lz4 lz lzma; do
  run 0 export latest:tree -f "out.tar.$end"
done
tar -tf out.tar >names
xz -dc --format=lzma out.tar.lzma | tar -tf - | cmp - names || fail "xz gives another tar"
! command -v lz4 >/dev/null || lz4 -qdc out.tar.lz4 | tar -tf - | cmp - names || fail "lz4 gives another tar"

# zip and 7z hold the content, and say what they do not.
for end in zip 7z cpio; do
  code=$([ $end = cpio ] && echo 0 || echo 3)
  run "$code" export latest:tree -f "out.$end"
  says "$end does not hold everything; not kept: "
  [ $end = cpio ] || says "/pipe is a FIFO, and $end has none: left out"
  [ $end = cpio ] || says "hard links, now files of their own (1)"
  says "holes, now zeros (1)"
  says "exact times ("
  [ -z "$attributes" ] || says "extended attributes or ACLs ("
  ! command -v 7z >/dev/null || 7z x -ox "out.$end" >/dev/null || fail "7z does not read $end"
  if [ -d x ]; then
    diff tree/numbers x/numbers || fail "$end has other content"
    cmp tree/deep/noise x/deep/er/linked || fail "$end has other content"  # 7z knows no links in cpio
    cmp tree/deep/sparse x/deep/sparse || fail "$end has other content"
    [ "$(cat "x/deep/ä ö")" = ä ] || fail "$end has another name"
    rm -rf x
  fi
done
if command -v unzip >/dev/null; then
  unzip -q out.zip -d x || fail "unzip does not read zip"
  same tree/deep/plain x/deep/plain --ignore-owner
  [ "$(readlink x/deep/symbolic)" = noise ] || fail "a symlink in zip"
  rm -rf x
fi
if command -v cpio >/dev/null; then
  mkdir x && (cd x && cpio --quiet -idm <../out.cpio) || fail "cpio does not read cpio"
  [ x/deep/noise -ef x/deep/er/linked ] || fail "a hard link in cpio"
  cmp tree/deep/noise x/deep/er/linked || fail "the content of a hard link in cpio"
  chmod -R u+rwx x && rm -rf x
fi

# Names that are not UTF-8 stay what they are, or are told apart; and come back.
mkdir odd odd/$'dir\xff' && odd=(odd/$'\xfe' odd/$'\xff' odd/$'a\xe9\xc3\xa9' odd/$'dir\xff/x' odd/%FF 'odd/%FF_2' 'odd/a%20b')
for name in "${odd[@]}"; do echo "$name" >"$name"; done  # which tells them apart
ln -s $'to\xff' odd/link
run 0 backup odd
for end in tar cpio zip 7z; do
  run 0 export latest -f "odd.$end"
  grep -qF "names that are not UTF-8, now with %NN (5)" err && told=1 || told=0
  [ $told = "$([ $end = tar ] || [ $end = cpio ] && echo 0 || echo 1)" ] || fail "$end: what is said of names"
  run 0 import "odd.$end" --tag "$end" --time 2001-01-01
  run 0 restore latest --tag "$end" --target x
  [ "$(readlink x/odd/link)" = $'to\xff' ] || fail "$end has another link"
  if [ $told = 0 ]; then
    for name in "${odd[@]}"; do cmp "$name" "x/$name" || fail "$end has other names"; done
  else
    now=(%FE %FF_3 a%E9é dir%FF/x %FF %FF_2 a%20b)
    for i in "${!odd[@]}"; do cmp "${odd[i]}" "x/odd/${now[i]}" || fail "$end has no ${now[i]}"; done
  fi
  rm -rf x
done
python3 -c 'import zipfile; assert zipfile.ZipFile("odd.zip").testzip() is None' || fail "Python does not read the zip"

# Before 1970 tar has whole seconds, and that is told.
mkdir early && : >early/x && touch -d @-1.5 early/x
run 0 backup early
run 0 export latest -f early.tar
says "tar does not hold everything; not kept: exact times (1)"
run 0 dump latest -t early-dump.tar
says "tar does not hold everything; not kept: exact times (1)"
touch -d @-3 early/x
run 0 backup early
run 0 export latest -f early.tar --force
[ ! -s err ] || fail "a whole second is lost"
run 0 backup tree

# A part, one file, stdout, JSON.
run 0 export latest:tree/deep/plain -f part.tar
[ "$(tar -tf part.tar | sed -n 1p)" = numbers ] && [ "$(tar -tf part.tar | wc -l)" = 2 ] || fail "a part"
run 0 export latest:tree/numbers -f one.zip
"$KIN" export latest --format tar.gz -f - 2>/dev/null | tar -tzf - >list || fail "stdout is no archive"
grep -q '^tree/numbers$' list || fail "names do not begin at the root"
run 0 --json export latest:tree -f json.tar.zst
[ "$(field files_exported)" = 8 ] && [ "$(field compression)" = zstd ] || fail "the summary"
[ "$(field archive_size)" = "$(stat -c %s json.tar.zst)" ] || fail "the archive's size"

# What is there stays, unless told otherwise; what fails leaves nothing.
echo precious >there.tar
run 2 export latest -f there.tar
says "there.tar is there already (--force replaces it)"
[ "$(cat there.tar)" = precious ] || fail "replaced without --force"
run 0 export latest -f there.tar --force
tar -tf there.tar >/dev/null || fail "--force did not replace it"
run 2 export latest -f out.rar
says "these it does: tar, cpio, zip, 7z; tar, cpio also with gz"
run 2 export latest -f -
says "give --format"
run 2 export latest -f x.tar --format exe
run 14 export latest:nowhere -f no.tar
run 14 export latest -f missing/no.tar
pack=$(find repo/packs -type f -size +100k | sed -n 1p)
mv "$pack" aside
run 13 export latest -f broken.tar.gz
mv aside "$pack"
[ -z "$(ls -d no.tar* broken.tar* missing* 2>/dev/null)" ] || fail "something is left of what failed: $(ls)"
truncate -s 5G big
run 0 backup big
run 2 export latest -f big.cpio
says "in cpio no file has more than 4.000 GiB"
run 0 export latest -f big.tar
[ "$(stat -c %s big.tar)" -lt 100000 ] || fail "a hole takes room in tar"
