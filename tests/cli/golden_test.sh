#!/usr/bin/env bash
# Repositories of every format version ever written are read, whole and right.
source "$(dirname "$0")/lib.sh"
found=0
for golden in "$root"/tests/golden/format-*; do
  for kind in plain encrypted; do
    if [ "$kind" = encrypted ]; then export KIN_PASSWORD=golden; else unset KIN_PASSWORD; fi
    name=$(basename "$golden")-$kind
    cp -r "$golden/$kind" "$name"
    run 0 -r "$name" --json snapshots
    [ "$(wc -l <out)" = 2 ] || fail "$name: there should be two snapshots"
    run 0 -r "$name" check --read-data
    run 0 -r "$name" restore latest --tag first -t "$name-first"
    (cd "$name-first/tree" && sha256sum --quiet -c "$golden/first.sha256") || fail "$name: content differs"
    [ "$(cd "$name-first/tree" && find . -type f | wc -l)" = "$(wc -l <"$golden/first.sha256")" ] || fail "$name: files are missing"
    [ "$(stat --printf '%.9Y %a' "$name-first/tree/sub/sum")" = "1714979289.123456789 640" ] || fail "$name: metadata differs"
    [ "$name-first/tree/numbers" -ef "$name-first/tree/sub/hardlink" ] || fail "$name: the hard link is gone"
    [ "$(readlink "$name-first/tree/link")" = numbers ] && [ -p "$name-first/tree/fifo" ] || fail "$name: link or FIFO is gone"
    run 0 -r "$name" restore latest -t "$name-last"
    [ "$(cat "$name-last/tree/numbers.new")" = changed ] || fail "$name: the second snapshot is not the second"
    # And written to.
    run 0 -r "$name" backup "$name-last/tree"
    run 0 -r "$name" check --read-data
    run 0 -r "$name" repair index
    found=$((found + 1))
  done
done
[ "$found" -ge 2 ] || fail "no golden repository was found"
echo passed
