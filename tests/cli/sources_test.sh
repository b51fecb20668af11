#!/usr/bin/env bash
# What is backed up is what the paths mean, and never kin's own files.
source "$(dirname "$0")/lib.sh"
run 0 -r repo init --plain
mkdir -p real/inner tree && echo right >real/x && echo wrong >x && echo file >tree/file && ln -s real/inner link
snapshots() { ls repo/snapshots | wc -l; }
paths() { run 0 -r repo --json snapshots --latest 1; python3 -c 'import json; print(*json.load(open("out"))["paths"])'; }

# ".." behind a link leads where the kernel goes.
for given in "$work/link/../x" link/../x; do
  run 0 -r repo backup "$given"
  [ "$(paths)" = "$work/real/x" ] || fail "$given was taken for $(paths)"
  run 0 -r repo dump latest "$work/real/x" && [ "$(cat out)" = right ] || fail "$given: another file was saved"
done
run 0 -r repo backup real/../x
run 0 -r repo dump latest x && [ "$(cat out)" = wrong ] || fail "real/../x is not x"
(cd link && "$KIN" -r ../../repo -q backup ../x) || fail "../x of a directory that is known by a link"
[ "$(paths)" = "$work/real/x" ] || fail "../x was taken for $(paths)"
# Where the kernel finds nothing, nothing is saved in its stead, and the rest is saved all the same.
before=$(snapshots)
for given in nowhere/../x "$work/nowhere/../x" nowhere/.. tree/file/../../x; do
  run 14 -r repo backup "$given"
  says "cannot read $given"
  [ "$(snapshots)" = "$before" ] || fail "$given made a snapshot"
done
for given in nowhere/../x "$work/nowhere/../x" nowhere/../tree nowhere/..; do
  run 3 -r repo backup "$given" tree/file
  says "cannot read $given"
  run 0 -r repo ls latest && grep -qx /tree/file out || fail "beside $given nothing was saved"
  grep -q "x$" out && fail "$given was taken for another file"
done

# --files-from and --as-path.
find tree -print0 >list
before=$(snapshots)
run 2 -r repo backup --files-from list
says "NUL"
for stream in --stdin "--stdin-from-command -- echo"; do
  run 2 -r repo backup --files-from /dev/null $stream </dev/null
  says "--files-from and --as-path go with paths"
  run 2 -r repo backup --as-path /x $stream </dev/null
  says "--files-from and --as-path go with paths"
done
run 2 -r repo backup --as-path / tree/file
says "tree/file is no directory, and needs a name"
[ "$(snapshots)" = "$before" ] || fail "a usage error made a snapshot"
run 0 -r repo backup --as-path / tree
run 0 -r repo ls latest && grep -qx /file out || fail "--as-path / did not make the directory the root"
run 0 -r repo backup --as-path other//./gone/../place/ tree
[ "$(paths)" = /other/place ] || fail "--as-path was noted as $(paths)"
# A path that is missing today does not cut the series.
run 0 -r repo backup tree x
mv x y
run 3 -r repo backup tree x
says "comparing with snapshot"
[ "$(paths)" = "$work/tree $work/x" ] || fail "the paths became $(paths)"
mv y x

# The repository is never backed up into itself: not below a source, not as one, not in part, nor the cache.
before=$(snapshots)
for given in repo repo/snapshots "$work/repo/../repo/packs" cache/kin; do
  run 2 -r repo backup "$given"
  says "is left out: it belongs to"
  says "nothing to back up"
done
(cd repo/snapshots && "$KIN" -r ../../repo backup .) >out 2>err && fail "a repository was backed up from within"
says "nothing to back up"
[ "$(snapshots)" = "$before" ] || fail "kin's own files made a snapshot"
run 0 -r repo backup repo tree
says "repo is left out"
[ "$(paths)" = "$work/tree" ] || fail "what was left out is among the paths: $(paths)"
for given in . "$work"; do
  run 0 -r repo backup "$given"
  says "the repository repo is left out"
  run 0 -r repo ls latest
  grep -q "repo/\|cache/kin/" out && fail "the repository or the cache was backed up into itself"
  grep -q tree/file out || fail "more than the repository was left out"
done
# A link to it is a link like others.
ln -s repo alias
run 0 -r repo backup alias
run 0 -r repo ls latest && grep -qx /alias out || fail "a link to the repository is gone"
# Nor the first time, when neither is there yet.
run 0 --cache-dir new-cache backup .
run 0 ls latest
grep -q "data/kin/default\|new-cache/" out && fail "the new repository or cache was backed up into itself"
# A temporary index that lies in what is backed up.
mkdir tree/tmp
TMPDIR=$work/tree/tmp run 0 --no-cache -r repo backup tree
run 0 -r repo ls latest
grep -q kin-index out && fail "the temporary index was backed up"
grep -qx /tree/tmp out || fail "more than the temporary index was left out"
rmdir tree/tmp

# A link with a slash behind it is the directory that it leads to; a file with one is nothing.
ln -s real dirlink
for given in dirlink/ dirlink// dirlink/. "$work/dirlink/" "$work/dirlink/."; do
  run 0 -v -r repo backup "$given"
  grep -q "/dirlink/\?\./" out && fail "$given is shown with its dot"
  [ "$(paths)" = "$work/dirlink" ] || fail "$given was taken for $(paths)"
  run 0 -r repo ls latest
  grep -q "dirlink/x$" out || fail "$given: the directory was not saved"
done
run 0 -r repo backup dirlink
run 0 -r repo ls latest && grep -qx /dirlink out && ! grep -q dirlink/x out || fail "a link is no longer saved as a link"
run 0 -r repo backup real/
run 0 -r repo ls latest && grep -qx /real/x out || fail "a directory with a slash was not saved"
for given in tree/file/ "$work/tree/file/" tree/file/.; do
  run 14 -r repo backup "$given"
  says "Not a directory"
done

# A cache that cannot be looked at leaves nothing out.
ln -s loop loop
long=$(printf '%0300d' 0)
for cache in loop loop/below "$long" tree/file/x; do
  for option in "" --no-cache; do
    run 0 $option --cache-dir "$cache" -r repo backup tree
    run 0 -r repo ls latest && grep -qx /tree/file out || fail "--cache-dir $cache $option: tree was not saved"
  done
done
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 711 . && mkdir -m 700 closed && mkdir open && cp "$KIN" open/kin && cp -a tree open && chown -R 54321 open
  (cd open && HOME=$work/closed TMPDIR=$PWD && export HOME TMPDIR && unset XDG_CACHE_HOME XDG_DATA_HOME &&
    setpriv --reuid=54321 --regid=54321 --clear-groups bash -c './kin -r repo init --plain && ./kin -r repo backup tree') \
    >out 2>err || fail "another user's home as HOME: nothing was saved"
  says "snapshot"
fi
echo passed
