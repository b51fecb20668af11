#!/usr/bin/env bash
# kin delta and kin patch, alone and with the xdelta3 program.
source "$(dirname "$0")/lib.sh"

# Files as people have them, each beside another version of it.
mkdir old new
cp "$root/docs/format.md" old/text
sed -e '20,30d' -e '50i\a new line' -e 's/block/BLOCK/3' old/text >new/text
head -c 3000000 "$KIN" >old/program && { head -c 100000 old/program; echo changed; tail -c +110000 old/program; } >new/program
# 20 MiB in thirds that change places: several windows, copies from far away.
head -c 20000000 /dev/urandom >old/large
{ tail -c +13000001 old/large; head -c 6000000 old/large; echo inserted; head -c 13000000 old/large | tail -c 7000000; } >new/large
: >old/nothing && echo something >new/nothing
echo something >old/gone && : >new/gone
: >old/empty && : >new/empty
cp old/text old/same && cp old/text new/same

for name in text program large nothing gone empty same; do
  for level in 1 3 9; do
    run 0 delta --level $level old/$name new/$name -o delta
    run 0 patch old/$name delta -o result
    cmp new/$name result || fail "$name, level $level"
  done
  [ "$(stat -c %s delta)" -lt $(($(stat -c %s new/$name) / 10 + 100)) ] || fail "the delta of $name is large"
  run 0 delta old/$name new/$name -o - && mv out piped
  run 0 patch old/$name - -o - <piped
  cmp new/$name out || fail "$name, by pipes"
done
run 0 delta old/large - -o delta <new/large
run 0 patch old/large delta -o result
cmp new/large result || fail "the target from stdin"

run 0 --json delta old/text new/text -o delta
[ "$(field target_bytes)" = "$(stat -c %s new/text)" ] && [ "$(field delta_bytes)" = "$(stat -c %s delta)" ] || fail "the summary of delta"
run 0 --json patch old/text delta -o result
[ "$(field target_bytes)" = "$(stat -c %s new/text)" ] && [ "$(field checked)" = True ] || fail "the summary of patch"

# Nothing is left of what failed, and what was there stays.
echo precious >result
no_result() {
  [ "$(cat result)" = precious ] || fail "a patch that failed wrote its result"
  [ -z "$(find . -maxdepth 1 -name '*.kin-*')" ] || fail "a patch that failed left a file behind"
  [ "$(wc -l <err)" = 1 ] || fail "not one sentence"
}
run 0 delta old/program new/program -o delta
run 16 patch new/text delta -o result && says "the base" && no_result  # too short
cp old/program other && echo another | dd of=other bs=1 seek=2000000 conv=notrunc status=none
run 16 patch other delta -o result && says "wrong checksum" && no_result  # as long
run 16 patch old/empty delta -o result && no_result
run 15 patch old/program old/text -o result && says "it is no VCDIFF delta" && no_result
run 15 patch old/program old/empty -o result && says "it is no VCDIFF delta" && no_result
run 14 patch old/program none -o result && no_result
run 14 patch none delta -o result && no_result
run 0 delta old/text new/text -o delta
size=$(stat -c %s delta)
for length in 3 5 6 20 $((size / 2)) $((size - 1)); do
  head -c $length delta >cut
  run 13 patch old/text cut -o result && no_result
done
for at in $(seq 4 7 $((size - 1))); do
  python3 -c 'import sys; b = bytearray(open("delta", "rb").read()); b[int(sys.argv[1])] ^= 0x10; open("flipped", "wb").write(b)' $at
  code=0; "$KIN" patch old/text flipped -o result 2>err >out || code=$?
  case $code in 13 | 15 | 16) ;; *) fail "byte $at flipped: exit code $code" ;; esac
  no_result
done

# Inputs are not overwritten, by whatever name; nor is what is not a file.
ln old/text link && ln -s old/text symlink
for output in old/text link symlink ./new/../old/text new/text; do
  run 2 delta old/text new/text -o $output && says "not overwritten"
done
run 2 patch old/text delta -o delta && says "not overwritten"
run 2 patch old/text delta -o new && says "is not a file"
mkfifo pipe
run 2 delta pipe new/text -o delta2 && says "regular file"
run 14 patch old/text delta -o none/result
run 2 delta old/text new/text -o delta2 --level 10
run 2 delta old/text new/text
# A link to an output stays a link.
echo old >kept && ln -s kept through
run 0 patch old/text delta -o through
[ -L through ] && cmp kept new/text || fail "the output replaced a link"
(umask 027 && run 0 patch old/text delta -o masked) && [ "$(stat -c %a masked)" = 640 ] || fail "the mode of the output"
code=0; "$KIN" patch old/text delta -o - >/dev/full 2>err || code=$?
[ $code = 1 ] || fail "a full disk gives exit code $code"

if ! command -v xdelta3 >/dev/null; then
  echo "passed, but without the xdelta3 program"
  exit 0
fi
for name in text program large nothing gone empty same; do
  run 0 delta old/$name new/$name -o delta
  xdelta3 -d -f -s old/$name delta result || fail "the xdelta3 program does not read the delta of $name"
  cmp new/$name result || fail "the xdelta3 program reads the delta of $name otherwise"
  # By default with LZMA and an application header; with sources that it cannot seek in; with other windows.
  for options in "" "-S none" "-9" "-1 -S lzma" "-A= -S none" "-W 16384" "-W 16777216" "-B 4194304"; do
    [[ $name != large || $options != -[19A]* ]] || continue  # they take long
    xdelta3 -e -f $options -s old/$name new/$name delta
    run 0 patch old/$name delta -o result
    [ ! -s err ] || fail "kin patch of what xdelta3 $options made of $name complains"
    cmp new/$name result || fail "kin patch of what xdelta3 $options made of $name"
  done
  xdelta3 -e -f new/$name delta  # without a base
  run 0 patch old/empty delta -o result
  cmp new/$name result || fail "kin patch of what xdelta3 made of $name alone"
done
xdelta3 -e -f -n -s old/text new/text delta
run 0 patch old/text delta -o result && says "has no checksums"
cmp new/text result
run 0 --json patch old/text delta -o result
[ "$(field checked)" = False ] || fail "the summary of an unchecked patch"
xdelta3 -e -f -S djw -s old/text new/text delta
echo precious >result
run 15 patch old/text delta -o result && says "recode" && no_result
xdelta3 recode -f -S lzma delta recoded
run 0 patch old/text recoded -o result
cmp new/text result || fail "what the message recommends does not help"
xdelta3 -e -f -s old/program new/program delta
echo precious >result
run 16 patch other delta -o result && no_result
head -c 80 delta >cut
run 13 patch old/program cut -o result && no_result
echo passed
