#!/usr/bin/env bash
# Everything that a file is comes back: a torture tree, encrypted and plain, with one thread and with eight.
source "$(dirname "$0")/lib.sh"

"$root/scripts/make_torture_tree" --small tree 2>skipped
export KIN_PASSWORD=secret
run 0 -r sealed init
run 0 -r sealed backup tree
run 0 -r sealed restore latest -t back --verify
same tree back/tree
run 0 -r sealed check --read-data
grep -rqa 'torture' sealed && fail "names can be read in an encrypted repository"
unset KIN_PASSWORD

run 0 -r plain init --plain
run 0 -r plain backup "$work/tree"
run 0 -r plain restore latest -t absolute
same tree "absolute$work/tree"
run 0 -r plain restore "latest:$work/tree" -t sub
same --ignore-root tree sub

# The same objects, whatever the number of threads; in a plain repository even the same packs.
cp -a plain fresh-1 && rm -rf fresh-1/{packs,index,snapshots}/* && cp -a fresh-1 fresh-8
run 0 -r fresh-1 --no-cache -j1 backup tree
run 0 -r fresh-8 --no-cache -j8 backup tree
(cd fresh-1/packs && find . -type f | sort) >one
(cd fresh-8/packs && find . -type f | sort) >eight
[ -s one ] && cmp one eight || fail "-j1 and -j8 wrote different packs"

# A second backup reads nothing and stores nothing; --force reads all and stores nothing.
run 0 -r fresh-1 --json backup tree
[ "$(field bytes_read)" = 0 ] && [ "$(field data_added)" = 0 ] || fail "the second backup was not free"
run 0 -r fresh-1 --json backup --force tree
[ "$(field bytes_read)" -gt 0 ] && [ "$(field data_added)" = 0 ] || fail "--force did not read again"
run 0 -r fresh-1 --json backup --skip-if-unchanged tree
grep -q snapshot_id out && fail "--skip-if-unchanged made a snapshot"

# A change of the metadata of one file alone is seen.
find tree -maxdepth 2 -type f -print0 | sort -z | head -z -n 1 | xargs -0 touch -d '2001-01-01'
run 0 -r fresh-1 --json backup tree
[ "$(field files_changed)" -ge 1 ] || fail "a changed time went unnoticed"

# Names of one file that lie on different file systems there are files of their own.
if [ "$(id -u)" = 0 ] && mkdir -p apart/names/m && mount -t tmpfs none apart/names/m 2>/dev/null; then
  trap 'umount -l "$work/apart/names/m"; cleanup' EXIT
  mkdir -p names/m && echo one >names/a && ln names/a names/m/b && ln names/a names/m/c && ln names/a names/z
  run 0 -r plain backup names
  run 0 -r plain restore latest -t apart
  for name in a m/b m/c z; do [ "$(cat apart/names/$name)" = one ] || fail "$name was not restored"; done
  [ apart/names/m/b -ef apart/names/m/c ] || fail "names on the same file system are no links"
  echo two >apart/names/z && [ "$(cat apart/names/m/b)" = one ] || fail "links between file systems"
fi
echo passed
