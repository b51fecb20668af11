#!/usr/bin/env bash
# kin simhash does what Debian's simhash does, byte for byte, and says clearly what it cannot do.
source "$(dirname "$0")/lib.sh"

# What is known of Debian's program, for machines without it.
printf abcdefghij >ten
run 0 simhash ten
[ "$(od -An -tx1 out | tr -d ' \n')" = cb010008f3990149aeef2a50459ad68f ] || fail "another hash"
run 0 simhash <ten
[ "$(od -An -tx1 out | tr -d ' \n')" = cb010008f3990149aeef2a50459ad68f ] || fail "stdin is hashed otherwise"
run 0 simhash -s 4 -f 2 ten
[ "$(od -An -tx1 out | tr -d ' \n')" = cb0100043b6d8e5908337bb5 ] || fail "-s and -f do not fit"

# Too short, empty, not there, and no files at all; the others go on.
printf abc >short; : >empty; mkfifo fifo; seq 100 >a; seq 2 101 >b; mkdir directory
run 0 simhash -w a b short empty
says 'short: warning: not hashed'; says 'empty: warning: not hashed'
[ -e a.sim ] && [ -e b.sim ] && [ ! -e short.sim ] || fail "-w wrote the wrong files"
rm a.sim
run 3 simhash -w none fifo directory /dev/null a
says 'none: No such file'; says 'fifo is a FIFO'; says 'directory is a directory'; says '/dev/null is a device'
[ -e a.sim ] || fail "-w stopped at a file that is not there"
run 2 simhash short; says 'short: not hashable, as it is shorter than a shingle of 8 bytes'
run 2 simhash <empty; says 'stdin: not hashable'
run 14 simhash none
run 2 simhash a b
run 3 simhash -m a none b
[ "$(tail -1 out)" = 'b      3 .96  ? ' ] || fail "a matrix with a file that is not there"

# Hash files that are none.
run 0 simhash -c a.sim b.sim; [ "$(cat out)" = .96 ] || fail "another score"
run 0 simhash -c a.sim a.sim; [ "$(cat out)" = 1.0 ] || fail "a file is not like itself"
for size in 0 1 3 4 7 9; do head -c $size a.sim >cut.sim; run 13 simhash -c cut.sim a.sim; says cut.sim; done
run 13 simhash -c a a.sim; says 'a: not a hash file of simhash'
run 2 simhash -c fifo a.sim
run 13 simhash -c /proc/self/exe a.sim; says 'not a hash file of simhash'
run 2 simhash -c a.sim
run 0 simhash -s 5 -w b; run 2 simhash -c a.sim b.sim; says 'shingle size mismatch'
for wrong in '-s 3' '-s 65536' '-s x' '-f 0' '-f 32769' '-f -1' '--hash md5' '-w -m' '-c -w'; do
  # shellcheck disable=SC2086
  run 2 simhash $wrong a
done

# Rabin fingerprints: files of their own, alike as alike content is.
run 0 simhash --hash rabin -w a b
[ "$(head -c 2 a.sim | od -An -tx1 | tr -d ' ')" = cb81 ] || fail "Rabin's files look like others"
run 0 simhash -c a.sim b.sim
case $(cat out) in .[89]*) ;; *) fail "Rabin's score" ;; esac
run 0 simhash -w b; run 2 simhash -c a.sim b.sim; says 'by CRC-32'

# A large sparse file takes no memory.
truncate -s 600M sparse
python3 - "$KIN" <<'PYTHON' || fail "a sparse file takes memory"
import resource, subprocess, sys
subprocess.run([sys.argv[1], "simhash", "sparse"], check=True, stdout=open("out", "wb"))
assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 512 << 10, "KiB"
PYTHON
[ "$(wc -c <out)" = 8 ] || fail "a sparse file has more than one hash"

command -v simhash >/dev/null || { echo "no simhash here to compare with"; exit 0; }
mkdir files
find "$root"/lib "$root"/docs "$root"/tests/fuzz/corpus -type f | sort | sed -n 1,100p | while read -r file; do
  cp "$file" "files/$(echo "${file#"$root"/}" | tr / _)"
done
cp "$KIN" short empty ten sparse files; truncate -s 3M files/sparse; head -c 1000000 "$KIN" >files/part; rm files/kin
cd files
for options in '' '-s 4' '-s 31 -f 1' '-f 700'; do
  rm -f -- *.sim
  # shellcheck disable=SC2086
  simhash $options -w * 2>/dev/null
  mkdir ../theirs; mv -- *.sim ../theirs
  # shellcheck disable=SC2086
  "$KIN" simhash $options -w * 2>/dev/null
  mkdir ../ours; mv -- *.sim ../ours
  diff -r ../ours ../theirs || fail "hash files differ with '$options'"
  # shellcheck disable=SC2086
  diff <(simhash $options -m *) <("$KIN" simhash $options -m *) >/dev/null || fail "the matrix differs with '$options'"
  for file in ../ours/lib_*_c*; do
    [ "$(simhash -c "$file" ../ours/lib_base_file.cpp.sim)" = "$("$KIN" simhash -c "$file" ../ours/lib_base_file.cpp.sim)" ] ||
      fail "scores of $file differ"
    [ -z "$options" ] || break
  done
  rm -r ../ours ../theirs
done
for file in part ten lib_base_file.cpp; do cmp <(simhash "$file") <("$KIN" simhash "$file") || fail "$file"; done
