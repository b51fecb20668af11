#!/usr/bin/env bash
# Whatever stands in the place of a repository's file is found, named and told as damage; nothing waits for it, and nothing else is hindered.
source "$(dirname "$0")/lib.sh"
KIN_PROGRAM=$KIN
bounded() { timeout -s KILL 60 "$KIN_PROGRAM" "$@"; }
KIN=bounded
mkdir tree && seq 20000 >tree/numbers
export KIN_PASSWORD=first
run 0 -r repo init
run 0 -r repo backup tree
run 0 -r repo backup tree
KIN_NEW_PASSWORD=second run 0 -r repo key add

damaged() { rm -rf hurt cache && cp -a repo hurt; }
replace() {
  rm "$1"
  case $2 in
    directory) mkdir "$1" ;;
    fifo) mkfifo "$1" ;;
    loop) ln -s "$1" "$1" ;;
    dangling) ln -s nowhere "$1" ;;
  esac
}
for folder in keys packs index snapshots; do
  for what in directory fifo loop dangling; do
    damaged
    # Of the packs the smallest, which has the trees.
    file=$(find "$work/hurt/$folder" -type f -printf '%s %p\n' | sort -n | sed -n 1p | cut -d' ' -f2)
    id=$(basename "$file")
    replace "$file" $what
    for password in first second; do
      KIN_PASSWORD=$password
      # Of two keys one is gone, so one of the passwords opens nothing.
      [ $folder = keys ] && ! bounded -r hurt snapshots >/dev/null 2>&1 && continue
      run 13 -r hurt check
      says "${id:0:8}"
      case $folder in
        keys)
          run 0 -r hurt restore latest -t "back-$what"
          run 13 -r hurt key list
          says "${id:0:8}"
          [ "$(grep -c "^[* ] [0-9a-f]" out)" = 1 ] || fail "the sound key is not listed"
          run 0 -r hurt key remove "${id:0:8}"
          run 0 -r hurt check ;;
        packs)
          run 13 -r hurt ls latest
          says "${id:0:8}" ;;
        index)
          run 13 -r hurt ls latest
          run 0 -r hurt repair index
          run 0 -r hurt check ;;
        snapshots)
          run 13 -r hurt snapshots
          says "${id:0:8}"
          grep -q "^1 snapshot" out || fail "the sound snapshot is not listed" ;;
      esac
      break
    done
    KIN_PASSWORD=first
  done
done
# A pack of content, not of trees.
for what in directory loop; do
  damaged
  for file in $(find "$work/hurt/packs" -type f -size +2k); do replace "$file" $what; done
  run 13 -r hurt restore latest -t "content-$what"
done
# With a directory that is not empty in its place, a segment is named, and the new index is whole.
damaged
file=$(find "$work/hurt/index" -type f | sed -n 1p)
replace "$file" directory && touch "$file/something"
run 1 -r hurt repair index
says "the new index is complete, but"
says "$(basename "$file")"
rm "$file/something"
run 0 -r hurt repair index
run 0 -r hurt check

# A damaged snapshot may be the latest, so that there is none; the message says what works, and that does.
damaged
seq 5 >>tree/numbers
run 0 -r hurt backup tree
newest=$(bounded -r hurt --json snapshots --latest 1 | python3 -c 'import json; print(json.loads(input())["id"])')
old=$(ls hurt/snapshots | grep -v "$newest" | sed -n 1p)
flip "hurt/snapshots/$old" 30
for command in "ls latest" "restore latest -t latest" "dump latest tree/numbers" "diff $newest latest" "tag --add x latest"; do
  run 13 -r hurt $command
  says "${old:0:8}"
  says "give one by its id, from kin snapshots"
done
run 13 -r hurt snapshots
grep -q "^${newest:0:8}" out || fail "the sound snapshot is not listed"
run 0 -r hurt restore "${newest:0:8}" -t by-id
cmp -s tree/numbers by-id/tree/numbers || fail "another snapshot was restored"
# All that can be tagged are.
run 13 -r hurt tag --add everything
says "${old:0:8}"
says "changed the tags of 2 snapshots"

# What snapshots share is named for each of them.
damaged
rm -rf extra && mkdir extra && echo extra >extra/file
run 0 -r hurt backup extra
extra=$(bounded -r hurt --json snapshots --latest 1 | python3 -c 'import json; print(json.loads(input())["short_id"])')
for file in $(cd repo && find packs -type f); do rm "hurt/$file"; done
run 13 -r hurt check
for id in $(ls repo/snapshots); do grep -q "snapshot ${id:0:8}: " err || fail "snapshot ${id:0:8} is not named"; done
grep -q "snapshot $extra" err && fail "a sound snapshot is named"
grep -q "::" err && fail "a doubled colon"

# A key of another repository, with the same password, hinders nobody.
run 0 -r foreign init
foreign=$(ls foreign/keys)
for _ in 1 2 3 4; do  # whichever comes first
  damaged
  cp foreign/keys/* hurt/keys/
  run 0 -r hurt ls latest
  run 0 -r hurt key list
  grep -q "^\* ${foreign:0:8}" out && fail "the foreign key is in use"
  run 0 -r hurt key remove "${foreign:0:8}"
  run 0 -r hurt check
  [ ! -s err ] || fail "the foreign key is still there"
  rm -rf foreign && run 0 -r foreign init && foreign=$(ls foreign/keys)
done
damaged
rm hurt/keys/* && cp foreign/keys/* hurt/keys/
run 13 -r hurt ls latest
says "${foreign:0:8}"

# A key that a newer kin made is none.
damaged
printf 'KINKEY01\002and whatever it needs' >newer
name=$(python3 -c 'import hashlib; print(hashlib.blake2b(open("newer", "rb").read(), digest_size=32).hexdigest())')
cp newer "hurt/keys/$name"
run 0 -r hurt check
run 0 -r hurt key list
says "${name:0:8}  made by a newer kin"
run 0 -r hurt --json key list
grep -q "\"id\":\"$name\",.*\"newer\":true" out || fail "not in JSON"
# A damaged key, by its content.
damaged
for file in hurt/keys/*; do
  rm -rf bad && cp -a hurt bad
  flip "bad/keys/$(basename "$file")" 12
  opened=0
  for password in first second; do
    KIN_PASSWORD=$password
    if bounded -r bad key list >out 2>err; then fail "a damaged key is not told"; fi
    grep -q "^\*" out && opened=$((opened + 1))
  done
  [ $opened = 1 ] || fail "a damaged key hinders the other"
  KIN_PASSWORD=first
done

# A pack with a base in it is lost, or damaged: of many files, the one that leans on it is named and not restored.
mkdir old new
python3 - <<'END'
import random
pick = random.Random(7)
for i in range(20):
    open(f"new/good{i}", "wb").write(pick.randbytes(20000 * i))
open("old/bad", "wb").write(pick.randbytes(400000))
END
printf 'changed' | cat old/bad - >new/bad
for harm in lost damaged; do
  rm -rf leaning cache back
  run 0 -r leaning init
  run 0 -r leaning backup old
  pack=$(find leaning/packs -type f -size +300k)
  [ "$(wc -l <<<"$pack")" = 1 ] || fail "the base is not in a pack of its own"
  named="bad: .*base.*pack $(basename "$pack" | cut -c 1-8)"
  run 0 -r leaning backup new
  case $harm in
    lost) rm "$pack" ;;
    damaged) flip "$pack" 200000 ;;
  esac
  run 13 -r leaning restore latest -t back
  grep -q "new/$named" err || fail "the file is not named with its base"
  says "1 could not be restored"
  [ ! -e back/new/bad ] || fail "a file without its base was restored"
  for file in new/good*; do cmp -s "$file" "back/$file" || fail "$file was not restored"; done
  case $harm in
    lost)
      run 13 -r leaning check
      grep -q "/new/$named is missing" err || fail "check does not name the file" ;;
    damaged) run 0 -r leaning check ;;  # which reads no content
  esac
  run 13 -r leaning check --read-data
  grep -q "/new/bad: " err || fail "check --read-data does not name the file"
  grep -q good err && fail "a sound file is named"
done

# What check --read-data finds, the next backups know, whatever becomes of the cache; once they have stored
# again all that they need, they mention it and are content.
for between in nothing rebuild; do
  rm -rf known cache back
  run 0 -r known init
  run 0 -r known backup old new
  for pack in $(find known/packs -type f); do
    [ "$(stat -c %s "$pack")" -lt 300000 ] || flip "$pack" 200000
  done
  run 13 -r known check --read-data
  [ $between = nothing ] || run 0 -r known repair index
  run 3 -r known backup --dry-run old new
  says "would be stored again"
  run 3 -r known backup old new
  says "was stored again"
  for again in 1 2; do
    run 0 -r known backup old new
    says "missing or damaged"
    says "no file of this backup needs"
  done
  run 0 -r known restore latest -t back --verify
  diff -r old back/old && diff -r new back/new || fail "the last snapshot is not whole"
done

# A missing pack is named by whoever counts on it. One that comes back after the index was made without it is found
# by another.
rm -rf away cache && run 0 -r away init
run 0 -r away backup old new
pack=$(find away/packs -type f -size +200k | sed -n 1p)
name=$(basename "$pack")
run 0 -r away stats
mv "$pack" kept
run 13 -r away stats
says "pack ${name:0:8} is missing or damaged: what was in there is counted"
run 3 -r away backup --dry-run old new
says "pack ${name:0:8} is missing or damaged: older snapshots may have lost files"
run 0 -r away repair index
mv kept "$pack"
run 13 -r away check
says "kin repair index may find what is missing there"
run 0 -r away repair index
run 0 -r away check --read-data
run 0 -r away stats

# Damage in a block's header is known too, whoever meets it: the pack is read from its start to there.
mkdir three
for name in a b c; do head -c 300000 /dev/urandom >three/$name; done
cp three/b three/b2 && ln three/b three/b3
flip_second_header() {
  local header payload
  header=$(od -An -tu4 -j 24 -N 4 "$1") payload=$(od -An -tu4 -j 28 -N 4 "$1")
  flip "$1" $((24 + 8 + header + payload + 12))
}
saved=$KIN_PASSWORD
unset KIN_PASSWORD
for meets in rebuild explain backup check; do
  rm -rf header cache back
  run 0 -r header init --plain
  run 0 -r header backup three
  flip_second_header "$(find header/packs -type f -size +800k)"
  case $meets in
    rebuild) run 13 -r header repair index; says "what can be found in it is indexed" ;;
    explain) for name in a b c; do "$KIN" -r header explain "latest:three/$name" >out 2>err || true; done ;;
    backup) rm -rf cache ;;  # it reads all headers to know what resembles what
    check) run 13 -r header check --read-data ;;
  esac
  run 3 -r header backup --force three
  says "was stored again"
  run 0 -r header restore latest -t back --verify
  diff -r three back/three || fail "the last snapshot is not whole"
  run 0 -r header backup three
done

# Every file of a snapshot that damage hits is named, also those that have the same content.
rm -rf header cache back
run 0 -r header init --plain
run 0 -r header backup three
for pack in $(find header/packs -type f -size +800k); do rm "$pack"; done
run 13 -r header check
for name in a b b2 b3 c; do grep -q "/three/$name: " err || fail "$name is not named"; done

# An empty directory in a pack's place is replaced.
for pack in $(find header/packs -type f); do rm "$pack" && mkdir "$pack"; done
run 3 -r header backup three
run 0 -r header restore latest -t back --verify
diff -r three back/three || fail "the snapshot is not whole"
export KIN_PASSWORD=$saved

# A base that was stored again serves what leans on it, whichever place the index knows.
for turn in 1 2 3 4; do
  rm -rf healed cache back
  run 0 -r healed init
  run 0 -r healed backup old
  pack=$(find healed/packs -type f -size +300k)
  run 0 -r healed backup new
  flip "$pack" 200000
  run 13 -r healed check --read-data
  run 3 -r healed backup --force old
  rm -rf cache
  run 13 -r healed check --read-data
  grep -q "/new/bad" err && fail "a file that can be restored is named"
  run 0 -r healed restore latest:new -t back --path "$PWD/new"
  cmp new/bad back/bad || fail "a file whose base was stored again was not restored"
done
echo passed
