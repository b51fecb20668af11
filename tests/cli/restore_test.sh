#!/usr/bin/env bash
# Restore into targets that hold something already, among it kin's own files.
source "$(dirname "$0")/lib.sh"

# kin's own files are never deleted. The default repository and the cache lie in the home that is restored.
(
  export HOME=$work/home
  unset XDG_DATA_HOME XDG_CACHE_HOME
  mkdir -p home/docs && echo precious >home/docs/a
  run 0 backup home
  echo changed >home/docs/a; mkdir -p home/.local/share/other && echo x >home/.local/share/other/x
  run 0 restore latest:home -t home --delete -n
  says "deleted    .local/share/other/x"
  cp out told
  run 0 restore latest:home -t home --delete -v
  diff <(grep ^deleted told | sort) <(grep ^deleted out | sort) || fail "the dry run told something else"
  [ "$(cat home/docs/a)" = precious ] && [ ! -e home/.local/share/other ] || fail "restore --delete did not restore or delete"
  says ".local/share/kin/default is left as it is"
  says ".cache/kin is left as it is"
  [ "$(grep -c "left as it is" out)" = 2 ] || fail "it should be said once"
  run 0 check --read-data
)
mkdir s && echo one >s/file && echo mine >s/config
run 0 -r s/repo init --plain
run 0 -r s/repo backup s
cp -a s/repo before
run 0 -r s/repo restore latest:s -t s --delete
for target in s/repo s/repo/new/deep s/./repo/../repo/packs new/../s/repo/x cache/kin/x; do
  for option in --delete --dry-run --sparse; do
    run 2 -r s/repo restore latest:s -t "$target" $option
    says "belongs to the repository or to kin's cache"
  done
done
ln -s s/repo link
run 2 -r s/repo restore latest:s -t link
diff -r before s/repo || fail "restore changed its repository"
# Also where the snapshot has something of that name.
mkdir -p t2/s t3 && cp -a s/repo t2/s/file && cp -a s/repo t3/s
run 3 -r t2/s/file restore latest -t t2 --delete
says "cannot restore s/file: the repository or kin's cache is in its place"
run 3 -r t3/s restore latest -t t3
says "cannot restore s: the repository or kin's cache is in its place"
[ "$(grep -c "in its place" err)" = 1 ] || fail "it should be said once"
run 0 -r t3/s restore latest -t t3 --include file --delete
says "s is left as it is"
for copy in t2/s/file t3/s; do diff -r before $copy || fail "restore changed its repository"; done

# A temporary index is kin's own too.
mkdir -p tmp/tree/tmp && echo x >tmp/tree/x
TMPDIR=$work/tmp/tree/tmp run 0 --no-cache -r tmp/repo init --plain
TMPDIR=$work/tmp/tree/tmp run 0 --no-cache -r tmp/repo backup tmp/tree
TMPDIR=$work/tmp/tree/tmp run 0 --no-cache -r tmp/repo restore latest:tmp/tree -t tmp/tree --delete
says "kin-index-"

# An empty pattern chooses nothing, not everything.
mkdir kept && echo x >kept/x
for option in -i --iinclude -e --iexclude; do
  for pattern in '' / '!' .; do run 2 -r s/repo restore latest -t kept --delete $option "$pattern"; done
done
[ "$(ls kept)" = x ] || fail "an empty pattern did something"

# Dry runs tell what a restore then does.
mkdir -p d && echo a >d/a && ln d/a d/b && echo c >d/c
run 0 -r repo init --plain
run 0 -r repo backup d
run 0 -r repo restore latest:d -t t
for options in "" "--overwrite if-changed" "--delete" "--overwrite never" "-v" "-vv --overwrite if-changed"; do
  rm -rf t/c && mkdir t/c && touch t/c/x t/c/y
  code=0
  "$KIN" -r repo --json restore latest:d -t t -n $options >out 2>err || code=$?
  for field in files_restored bytes_restored files_skipped files_deleted failed; do field $field; done >told
  cp err told_err
  run "$code" -r repo --json restore latest:d -t t $options
  for field in files_restored bytes_restored files_skipped files_deleted failed; do field $field; done | diff told - || fail "restore -n $options told something else"
  diff told_err err || fail "restore -n $options told of other failures"
done
rm -rf t/c && mkdir t/c && touch t/c/x t/c/y
run 3 -r repo restore latest:d -t t
says "cannot restore c: a directory that is not empty is in its place; --delete deletes it"
run 0 -r repo restore latest:d -t t -n --delete
says "deleted    c/x"
says "would delete 2"
run 0 -r repo restore latest:d -t t --delete
run 0 -r repo restore latest:d -t t -n -v --overwrite if-changed
grep -q ^unchanged out && fail "-v shows what is unchanged"
run 0 -r repo restore latest:d -t t -n -vv --overwrite if-changed
says "unchanged  a"
touch plain
run 2 -r repo restore latest:d -t plain -n
echo passed
