#!/usr/bin/env bash
# Proves that scripts/compare_trees can be trusted: equal trees are equal, and each kind of single change
# is reported, as exactly the differences it makes. A few changes need root and are left out otherwise.
set -euo pipefail

scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/compare_trees_test.XXXXXX")
trap 'chmod -R u+rwx "$work" 2>/dev/null || true; rm -rf "$work"' EXIT
a=$work/a
b=$work/b
failures=0
as_root=false
[ "$(id -u)" -ne 0 ] || as_root=true

# A fifo that is opened by mistake would block for ever, hence the timeout.
compare() { timeout 30 "$scripts/compare_trees" "$@" >"$work/output" 2>&1; }

verdict() {  # verdict WHAT STATUS-EXPECTED STATUS TEXT-EXPECTED...
  local what=$1 wanted=$2 status=$3 ok=true text
  shift 3
  [ "$status" -eq "$wanted" ] || ok=false
  for text in "$@"; do
    grep -qF -- "$text" "$work/output" || ok=false
  done
  if $ok; then
    echo "ok: $what"
  else
    echo "FAILED: $what (exit status $status, expected $wanted, and: $*)"
    sed 's/^/    /' "$work/output"
    failures=$((failures + 1))
  fi
}

expect() {  # expect WHAT STATUS TEXT COMPARE-ARGUMENT...
  local what=$1 wanted=$2 text=$3 status=0
  shift 3
  compare "$@" || status=$?
  verdict "$what" "$wanted" "$status" "$text"
}

# Copies A to B, runs COMMANDS in B, and expects just COUNT differences, one of them LINE.
change() {  # change WHAT COUNT LINE COMMANDS
  local status=0
  fresh_copy
  (cd "$b" && eval "$4")
  compare "$a" "$b" || status=$?
  verdict "$1" 1 "$status" "$3" "compared, $2 differences"
}

root_change() {
  if $as_root; then change "$@"; else echo "left out, needs root: $1"; fi
}

fresh_copy() {
  chmod -R u+rwx "$b" 2>/dev/null || true
  rm -rf "$b"
  cp -a "$a" "$b"
}

# Undoes what a change did to mtimes besides its purpose.
same_mtime() {
  local path
  for path in "$@"; do touch -h -r "$a/$path" "$b/$path"; done
}

echo "-- equal trees"
"$scripts/make_torture_tree" --small "$a"
"$scripts/make_torture_tree" --small "$b" 2>/dev/null
if ! $as_root; then chmod -R u+rwX "$a" "$b"; fi
expect "two torture trees are equal, paths over 4,096 bytes included" 0 ", 0 differences" "$a" "$b"

find "$b/long_path" -name bottom -execdir sh -c 'printf "Made it\n" >bottom; touch -d @1 bottom' \;
expect "a change at the end of a path over 4,096 bytes" 1 "/bottom: content at byte 0: A 109, B 77" "$a" "$b"

rm -rf "$a/long_path"  # cp cannot copy it
cp -a "$a/sizes/random-1" "$a/sizes/twin"
fresh_copy
expect "cp -a of the torture tree is equal" 0 ", 0 differences" "$a" "$b"

rm -rf "$a/deep" "$a/directories/many"  # nothing below needs them, and each check copies A

echo "-- names and types"
change "a missing file" 1 "sizes/random-1: existence: A file, B absent" 'rm sizes/random-1; same_mtime sizes'
change "an added directory" 1 "sizes/new: existence: A absent, B directory" 'mkdir sizes/new; same_mtime sizes'
change "a name in other bytes" 2 'names/latin-1-\xe9\xff: existence: A file, B absent' \
  'mv names/latin-1-$'"'\\xe9\\xff'"' names/latin-1; same_mtime names'
change "an escape sequence in a name is not printed raw" 1 'names/\x1b[31mred\x1b[0m\x1b]0;title\x07: existence' \
  'rm names/*red*; same_mtime names'
change "a file become a directory" 1 "sizes/random-1: type: A file, B directory" \
  'rm sizes/random-1; mkdir sizes/random-1; same_mtime sizes'

echo "-- content"
change "one byte, size kept" 1 "sizes/random-65536: content at byte 65535" \
  'printf "\0" | dd of=sizes/random-65536 bs=1 seek=65535 conv=notrunc status=none; same_mtime sizes/random-65536'
change "one byte more" 1 "sizes/random-1: size: A 1, B 2" 'printf x >>sizes/random-1; same_mtime sizes/random-1'
change "a byte within a hole" 1 "sparse/all-hole: content at byte 300000: A 0, B 120" \
  'printf x | dd of=sparse/all-hole bs=1 seek=300000 conv=notrunc status=none; same_mtime sparse/all-hole'
change "a hole filled with zeros" 1 "sparse/hole-in-middle: allocated bytes" \
  'cp --sparse=never sparse/hole-in-middle x; cat x >sparse/hole-in-middle; rm x; same_mtime . sparse/hole-in-middle'

echo "-- mode and owner"
change "a permission bit" 1 "modes/file-0644: mode: A 0644, B 0640" 'chmod 640 modes/file-0644'
change "setuid lost" 1 "modes/file-4755: mode: A 4755, B 0755" 'chmod u-s modes/file-4755'
change "sticky lost on a directory" 1 "modes/directory-1777: mode: A 1777, B 0777" 'chmod -t modes/directory-1777'
change "the mode of the top directory" 1 ".: mode: A 0755, B 0700" 'chmod 700 .'
root_change "uid" 1 "owners/file-1-2: uid: A 1, B 3" 'chown 3 owners/file-1-2'
root_change "gid of a symlink" 1 "owners/symlink-1-2: gid: A 2, B 4" 'chgrp -h 4 owners/symlink-1-2'

echo "-- mtime"
change "1 ns on a file" 1 "mtimes/file-nanoseconds: mtime: A 1234567890.123456789, B 1234567890.123456788" \
  'touch -d @1234567890.123456788 mtimes/file-nanoseconds'
change "a file before 1970" 1 "mtimes/file-just-before-1970: mtime: A -0.000000001, B 0.000000000" \
  'touch -d @0 mtimes/file-just-before-1970'
change "a directory" 1 "directories/empty: mtime:" 'touch -d @5 directories/empty'
change "a symlink" 1 "symlinks/dangling: mtime:" 'touch -h -d @5 symlinks/dangling'

echo "-- symlinks and devices"
change "a symlink's target" 1 'symlinks/not-utf-8: target: A "caf\xe9-\xff\xfe", B "caf"' \
  'ln -sfn caf symlinks/not-utf-8; same_mtime symlinks symlinks/not-utf-8'
root_change "a device's number" 1 "specials/null: device: A 1:3, B 1:5" \
  'rm specials/null; mknod -m 600 specials/null c 1 5; same_mtime specials specials/null'

echo "-- xattrs and ACLs"
xattr() {  # xattr FUNCTION-OF-PYTHON PATH NAME [VALUE]; setfattr would need one more package
  python3 -c 'if True:
    import os, sys
    call, path, name, *value = sys.argv[1:]
    getattr(os, call)(path, name, *map(str.encode, value), follow_symlinks=False)' "$@"
}
change "a value" 1 'xattrs/file: xattr user.text: A "plain", B "other"' 'xattr setxattr xattrs/file user.text other'
change "an empty value removed" 1 'xattrs/directory: xattr user.empty: A "", B absent' \
  'xattr removexattr xattrs/directory user.empty'
root_change "trusted.* of a symlink" 1 'xattrs/symlink: xattr trusted.kin: A "on a symlink", B "x"' \
  'xattr setxattr xattrs/symlink trusted.kin x'
root_change "trusted.* of a fifo" 1 'xattrs/fifo: xattr trusted.kin' 'xattr removexattr xattrs/fifo trusted.kin'
change "an access ACL" 1 "acls/file: xattr system.posix_acl_access" 'setfacl -n -m u:12345:r acls/file'
change "a default ACL" 1 "acls/directory: xattr system.posix_acl_default" 'setfacl -k acls/directory'

echo "-- hard links"
relink() { ln -f "$1" "$2" && same_mtime "$(dirname "$2")"; }
change "a link broken into a copy" 1 \
  'hard_links/same-directory: hard link: A to "hard_link_outside", B to itself only' \
  'cp -a hard_links/same-directory x; mv x hard_links/same-directory; same_mtime . hard_links'
change "a link to the wrong twin" 2 'hard_links/other/twin: hard link: A to itself only, B to "hard_link_outside"' \
  'relink hard_links/file hard_links/other/twin'
change "a symlink's link broken" 1 "hard_links/symlink: hard link" \
  'cp -a hard_links/symlink x; mv -T x hard_links/symlink; same_mtime . hard_links'
change "two equal files linked that were not" 1 'sizes/twin: hard link: A to itself only, B to "sizes/random-1"' \
  'relink sizes/random-1 sizes/twin'

echo "-- options"
fresh_copy
chmod 700 "$b"
expect "--ignore-root" 0 ", 0 differences" --ignore-root "$a" "$b"
fresh_copy
touch -h -d @5 "$b/symlinks/dangling"
expect "--ignore-mtime-of-symlinks" 0 ", 0 differences" --ignore-mtime-of-symlinks "$a" "$b"
if $as_root; then
  fresh_copy
  chown -h 3:4 "$b/owners/file-1-2"
  expect "--ignore-owner" 0 ", 0 differences" --ignore-owner "$a" "$b"
fi
status=0
compare --quiet "$a" "$work" || status=$?
[ ! -s "$work/output" ] || status=99
verdict "--quiet prints nothing and still exits 1" 1 "$status"
expect "a missing tree is a usage error" 2 "no-such-tree" "$a" "$work/no-such-tree"
expect "a missing argument is a usage error" 2 "usage:" "$a"

[ "$failures" -eq 0 ] || { echo "$failures checks failed"; exit 1; }
echo "all checks passed"
