#!/usr/bin/env bash
# A full disk: one clear sentence, a valid repository, what fitted is kept, and there is room to write what deleting needs.
source "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] && mkdir disk && mount -t tmpfs -o size=60m none disk 2>/dev/null || { echo "skipped: cannot mount a small file system here"; exit 77; }
trap 'umount -l "$work/disk"; cleanup' EXIT
mkdir small large
seq 50000 >small/numbers
head -c 100000000 /dev/urandom >large/random
run 0 -r disk/repo init --plain
run 0 -r disk/repo backup small
run 1 -r disk/repo backup large
says "No space left on device"
[ -z "$(ls disk/repo/tmp)" ] || fail "temporary files take the space that is left"
run 0 -r disk/repo check --read-data
run 0 -r disk/repo restore latest -t back
same small back/small
# To the last byte: snapshots can still be written, thanks to the reserve.
dd if=/dev/zero of=disk/filler bs=64k 2>/dev/null || true
run 0 -r disk/repo tag --add full latest
rm disk/filler
run 0 -r disk/repo check --read-data
run 0 -r disk/repo backup small
# A limit on the size of files is told as well, and is no death.
(ulimit -f 2000 && run 1 -r disk/repo backup large && says "File too large")
[ -z "$(ls disk/repo/tmp)" ] || fail "temporary files are left"
run 0 -r disk/repo check --read-data
# Where even a directory needs room that is not there.
truncate -s 40m image && mkfs.ext4 -q -m 0 image && mkdir ext && mount -o loop image ext 2>/dev/null || { echo "passed, without ext4"; exit 0; }
trap 'umount -l "$work/disk" "$work/ext"; cleanup' EXIT
run 0 -r ext/repo init --plain
run 0 -r ext/repo backup small
for size in 64k 4k 1k; do dd if=/dev/zero of=ext/filler$size bs=$size 2>/dev/null || true; done
mkdir ext/none 2>/dev/null && fail "the disk is not full"
run 0 -r ext/repo tag --add full latest
[ ! -e ext/repo/reserve ] || fail "the reserve was not needed"
rm ext/filler*
run 0 -r ext/repo check --read-data
run 0 -r ext/repo backup small
[ -e ext/repo/reserve ] || fail "the reserve was not made again"
echo passed
