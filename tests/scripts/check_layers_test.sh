#!/usr/bin/env bash
# scripts/check_layers lets a clean tree pass, and catches each kind of breach where it is.
set -euo pipefail

check_layers=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../scripts/check_layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# write FILE LINE...: a file of the tree that holds these lines.
write() {
  local file=$tree/$1
  shift
  mkdir -p "$(dirname "$file")"
  printf '%s\n' "$@" >"$file"
}

# allowed FILE INCLUDE: nobody minds.
allowed() {
  local output
  write "$1" '// A comment.' "#include $2"
  output=$("$check_layers" "$tree") || fail "$1 may include $2, but: $output"
  rm "$tree/$1"
}

# refused FILE INCLUDE: exactly one breach, and it is named by file and line.
refused() {
  local output status=0
  write "$1" '// A comment.' "#include $2"
  output=$("$check_layers" "$tree") || status=$?
  [[ $status -eq 1 ]] || fail "$1 may not include $2, but the exit status is $status"
  [[ $output == "$1:2: "* && $output != *$'\n'* ]] || fail "$1 with $2 is reported as: $output"
  rm "$tree/$1"
}

[[ -z $("$check_layers" "$tree") ]] || fail "an empty tree is refused"

# Layers.
allowed cmd/backup.cpp '"store/repository.h"'
allowed cmd/backup.cpp '"formats/registry.h"'
allowed cmd/backup.cpp '"lib/engine/backup.h"'
allowed store/pack.h '"lib/similarity/feature_store.h"'
allowed formats/deflate/tokens.cpp '"formats/deflate/tokens.h"'
refused store/pack.cpp '"formats/registry.h"'
refused formats/tar.cpp '"store/pack.h"'
refused formats/deflate/tokens.h '"store/pack.h"'
refused lib/base/hash.h '"store/crypto.h"'
refused lib/engine/backup.cpp '"cmd/context.h"'
refused store/pack.cpp '"cmd/context.h"'
refused store/pack.cpp '"tests/support/temp_dir.h"'

# Inside lib.
allowed lib/object/tree.h '"lib/base/result.h"'
allowed lib/delta/block.cpp '"lib/object/object.h"'
allowed lib/engine/backup.h '"lib/similarity/sketch.h"'
allowed lib/engine/backup.h '"lib/container/recipe.h"'
refused lib/base/hash.h '"lib/object/object_id.h"'
refused lib/object/tree.cpp '"lib/delta/codec.h"'
refused lib/delta/block.cpp '"lib/similarity/sketch.h"'
refused lib/similarity/sketch.h '"lib/container/recipe.h"'
refused lib/container/recipe.cpp '"lib/engine/backup.h"'

# Libraries stay at home.
allowed store/rocks_feature_store.cpp '<rocksdb/db.h>'
allowed formats/tar.cpp '<archive_entry.h>'
allowed lib/delta/zstd_codec.cpp '<zstd.h>'
allowed lib/base/hash.cpp '<sodium.h>'
allowed lib/base/thread_pool.h '<thread>'
allowed cmd/main.cpp '<fuse3/fuse.h>'
allowed lib/engine/backup.cpp '<fmt/format.h>'
allowed lib/engine/backup.cpp '<vector>'
refused formats/tar.cpp '<rocksdb/db.h>'
refused store/pack.cpp '<archive.h>'
refused store/pack.cpp '<zstd.h>'
refused lib/engine/backup.cpp '<xdelta3.h>'
refused lib/delta/block.cpp '<sodium.h>'
refused store/pack.cpp '<nlohmann/json.hpp>'
refused lib/base/log.cpp '<CLI/CLI.hpp>'
refused lib/delta/block.cpp '<zlib.h>'
refused store/pack.cpp '<lzma.h>'
refused cmd/sync.cpp '<curl/curl.h>'
refused store/pack.cpp '<fuse.h>'
refused lib/engine/backup.cpp '<thread>'

# ... and out of headers.
allowed lib/object/object.h '<fmt/format.h>'
allowed cmd/options.h '<CLI/CLI.hpp>'
allowed lib/base/hash.h '<sodium.h>'
refused store/rocks_feature_store.h '<rocksdb/db.h>'
refused store/crypto.h '<sodium.h>'
refused lib/delta/zstd_codec.h '<zstd.h>'
refused cmd/mount.h '<fuse.h>'

# Paths start at the project root, however they are written.
refused lib/base/hash.cpp '"hash.h"'
refused lib/base/hash.cpp '"base/hash.h"'
refused store/pack.cpp '"lib/../formats/tar.h"'
refused formats/tar.cpp '<store/pack.h>'

# tests/ is free; a folder nobody decided about is not.
allowed tests/store/pack_test.cpp '<rocksdb/db.h>'
write lib/util/misc.h '#pragma once'
if output=$("$check_layers" "$tree"); then fail "lib/util is not in the table, yet accepted"; fi
[[ $output == "lib/util/misc.h:1: "* ]] || fail "lib/util/misc.h is reported as: $output"

((failures == 0)) && echo "check_layers: all cases pass"
