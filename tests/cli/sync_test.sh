#!/usr/bin/env bash
# kin sync: the four kinds of stores, both ways, one way, dry; deletions; cut links, killed ends, mail that comes in
# meanwhile; and what it says of bad input. Names of parts as arguments: only those.
source "$(dirname "$0")/lib.sh"
unset XDG_STATE_HOME
slow_link=$root/tests/support/slow_link.py

# stores.py deliver KIND STORE FOLDER FIRST COUNT: messages, by number; the text follows from it.
# stores.py same KIND A B [COUNT]: the same messages with the same flags, each once in a folder; so many in all. Of
# trees: the same files, directories and links.
# stores.py list KIND STORE: one line each.
cat >stores.py <<'PYTHON'
import collections, os, random, re, sys

def message(number):
    chance = random.Random(number)
    words = [chance.choice("kin mail sync one two three four five six seven list patch".split()) for _ in range(120 + number % 200)]
    text = "\n".join(" ".join(words[i : i + 10]) for i in range(0, len(words), 10))
    return (f"From: u{number % 7}@example.org\nSubject: message {number}\nMessage-ID: <{number}@example.org>\n"
            f"Date: Thu, 14 Apr 2005 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02} +0000\n\n{text}\n").encode()

def name(number, flags="S"):
    return f"{1113400700 + number}.M{140891 + number}P18951.mail.example.org,S={len(message(number))}:2,{flags}"

def directory(kind, store, folder):
    return os.path.join(store, ("." + folder if kind == "maildir" else folder) if folder else "")

def deliver(kind, store, folder, first, count):
    at = directory(kind, store, folder)
    numbers = range(first, first + count)
    if kind == "maildir":
        for part in ("cur", "new", "tmp"):
            os.makedirs(f"{at}/{part}", exist_ok=True)
        for number in numbers:
            with open(f"{at}/tmp/{name(number)}", "wb") as out:
                out.write(message(number))
            os.rename(f"{at}/tmp/{name(number)}", f"{at}/cur/{name(number)}")
    elif kind == "mh":
        os.makedirs(at, exist_ok=True)
        last = max((int(n) for n in os.listdir(at) if n.isdigit()), default=0)
        for i, number in enumerate(numbers, last + 1):
            open(f"{at}/{i}", "wb").write(message(number))
    elif kind == "mbox":
        if folder:
            os.makedirs(store, exist_ok=True)
        with open(at if folder else store, "ab") as out:
            for number in numbers:
                out.write(b"From u@example.org Thu Apr 14 00:00:00 2005\n" + message(number) + b"\n")
    else:
        os.makedirs(at, exist_ok=True)
        for number in numbers:
            open(f"{at}/file {number}.txt", "wb").write(message(number))

def unseen(folder):
    """The numbers of that sequence."""
    numbers = set()
    if os.path.exists(f"{folder}/.mh_sequences"):
        for line in open(f"{folder}/.mh_sequences"):
            if line.startswith("unseen:"):
                for part in line.split(":")[1].split():
                    first, _, last = part.partition("-")
                    numbers |= set(range(int(first), int(last or first) + 1))
    return numbers

def messages(kind, store):
    """(folder, flags, content) of each."""
    found = []
    if kind == "mbox" and os.path.isfile(store):
        data = open(store, "rb").read()
        for part in re.split(rb"(?:\A|\n)From [^\n]*\n", data)[1:]:
            status = "".join(sorted(b"".join(re.findall(rb"^(?:X-)?Status: (\w+)$", part, re.M)).decode()))
            found.append(("", status, re.sub(rb"(?m)^(X-)?(Status|UID|Keywords|IMAPbase|IMAP): [^\n]*\n", b"", part).strip()))
        return found
    for top, directories, names in os.walk(store):
        here = os.path.relpath(top, store)
        for each in names:
            path = os.path.join(top, each)
            if kind == "maildir" and os.path.basename(top) in ("cur", "new"):
                flags = each.split(":2,")[1] if ":2," in each else ""
                found.append((os.path.dirname(here), flags, open(path, "rb").read()))
            elif kind == "mh" and each.isdigit():
                found.append((here, "unseen" if int(each) in unseen(top) else "", open(path, "rb").read()))
        if kind == "tree":
            for each in directories + names:
                path = os.path.join(top, each)
                info = os.lstat(path)
                content = os.readlink(path).encode() if os.path.islink(path) else b"" if os.path.isdir(path) else open(path, "rb").read()
                state = "link" if os.path.islink(path) else f"{info.st_mode:o}" + ("" if os.path.isdir(path) else f" {info.st_mtime_ns}")
                found.append((os.path.join(here, each), state, content))
    return found

def check_same(kind, a, b, count=None):
    a, b = (collections.Counter(messages(kind, store)) for store in (a, b))
    for store in (a, b):
        twice = [(key[0], key[2][:90]) for key, n in store.items() if n > 1]
        assert not twice, f"{len(twice)} are there twice: {twice[:3]}"
        contents = collections.Counter(key[2] for key in store)
        if kind != "tree":
            twice = [key[:90] for key, n in contents.items() if n > 1]
            assert not twice, f"{len(twice)} are there in two states or folders: {twice[:3]}"
    only = [[(key[0], key[1], key[2][:90]) for key in x - y] for x, y in ((a, b), (b, a))]
    assert a == b, f"only in the first: {len(only[0])} {only[0][:3]}; only in the second: {len(only[1])} {only[1][:3]}"
    assert count is None or len(a) == int(count), f"{len(a)} instead of {count}"

if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "deliver":
        deliver(*rest[:3], *map(int, rest[3:]))
    elif what == "same":
        check_same(*rest)
    else:
        for folder, flags, content in sorted(messages(*rest)):
            print(folder, flags, re.findall(rb"Message-ID: (\S+)", content))
PYTHON
stores() { python3 -B stores.py "$@" 2>err || fail "stores $*"; }
# flag DIRECTORY NUMBER FLAGS: of the message whose name begins with 1113400NUMBER.
flag() {
  local path
  path=$(echo "$1/1113400$2".*)
  mv "$path" "${path%:2,*}:2,$3"
}
# has DIRECTORY PATTERN: one file of such a name.
has() { [ "$(find "$1" -name "$2" | wc -l)" = 1 ] || fail "no $2 in $1"; }
# mails DIRECTORY: how many.
mails() { find "$1" -type f \( -path '*/cur/*' -o -path '*/new/*' \) | wc -l; }
# refused ARG...: it fails, by itself and soon.
refused() {
  local code=0
  timeout 20 "$KIN" "$@" >out 2>err || code=$?
  [ "$code" != 0 ] && [ "$code" -lt 124 ] || fail "kin $*: exit code $code"
}
# counts: what the last JSON line says was done, in one line.
counts() { tail -n 1 out | python3 -c 'import json,sys; print(json.dumps(json.load(sys.stdin)["folders"], sort_keys=True))'; }
# fresh NAME: a directory of that name to be in, with nothing known of any store.
fresh() { rm -rf "${work:?}/$1" "$work/.local"; mkdir "$work/$1"; cp "$work/stores.py" "$work/$1"; cd "$work/$1"; }

# Each kind: first, nothing to do, changes both ways, nothing to do.
part_kinds() {
  local kind
  local -A total=([maildir]=21 [mh]=21 [mbox]=17 [tree]=24)  # of a tree: also directories and a link
  for kind in maildir mh mbox tree; do
    fresh "$kind"
    local folder=''
    [ "$kind" = mbox ] || folder=lists
    stores deliver "$kind" a '' 1 10; [ -z "$folder" ] || stores deliver "$kind" a "$folder" 11 5
    run 0 sync --kind "$kind" a b; says 'both ends have the same now'
    stores same "$kind" a b
    [ "$kind" != mbox ] || [ "$(grep '^From ' a)" = "$(grep '^From ' b)" ] || fail "other envelopes"
    run 0 sync --kind "$kind" a b; says 'nothing to do'; ! grep -q 'copied from' err || fail "b was made by it"
    run 0 sync --kind "$kind" b a; says 'nothing to do'
    stores deliver "$kind" a '' 101 3; stores deliver "$kind" b "$folder" 201 4
    case $kind in
      maildir) flag a/cur 701 FS; rm b/cur/1113400702.*; mv a/cur/1113400703.* a/.lists/cur/ ;;
      mh) rm b/2; mv a/3 a/lists/99; printf 'unseen: 4-5\n' >a/.mh_sequences ;;
      mbox) sed -i '0,/^Subject: message 1$/s//Status: RO\n&/' a ;;
      tree) rm 'b/file 2.txt'; mv 'a/file 3.txt' 'a/lists/moved.txt'; echo more >>'b/file 4.txt'; mkdir a/empty; ln -s 'file 1.txt' b/link; chmod 755 'a/file 5.txt' ;;
    esac
    run 0 --json sync --kind "$kind" a b
    [ "$(field is_equal)" = True ] || fail "not equal"
    stores same "$kind" a b "${total[$kind]}"
    case $kind in
      maildir) has b/cur '1113400701.*:2,FS'; has b/.lists/cur '1113400703.*'; [ "$(find a -name '1113400702.*')" = '' ] || fail "not deleted" ;;
      mh) [ "$(python3 -B stores.py list mh b | grep -c unseen)" = 2 ] || fail "no sequence" ;;
      mbox) [ "$(grep -c '^Status: RO' b)" = 1 ] || fail "no flag" ;;
      tree) [ -d b/empty ] && [ -L a/link ] && [ -x 'b/file 5.txt' ] || fail "not the changes" ;;
    esac
    run 0 sync --kind "$kind" a b; says 'nothing to do'
  done
  # What the store is, is found out, also if one end is empty or not there yet.
  local first
  for kind in maildir mh tree; do
    fresh found; stores deliver "$kind" full '' 1 5; [ "$kind" != mh ] || echo 'cur: 1' >full/.mh_sequences
    mkdir empty; cp -r full first
    run 0 sync full new; stores same "$kind" full new 5
    run 0 sync first empty; stores same "$kind" first empty 5
    for first in new2 empty2; do
      [ "$first" = new2 ] || mkdir "$first"
      run 0 sync "$first" full; stores same "$kind" "$first" full 5
    done
  done
  fresh found; stores deliver mbox box '' 1 5
  run 0 sync box new; stores same mbox box new 5
  run 0 sync new2 box; stores same mbox box new2 5
}

# Both have changed a file: both contents are kept, at both ends, and told of.
part_conflict() {
  fresh conflict; stores deliver tree a '' 1 3
  run 0 sync --kind tree a b
  echo here >'a/file 1.txt'; echo there >'b/file 1.txt'
  rm 'a/file 2.txt'; echo kept >>'b/file 2.txt'
  run 0 --json sync --kind tree a b
  grep -q 'conflict' err || fail "no word of the conflict"
  python3 - <<'PYTHON'
import json
line = json.loads(open("out").read().splitlines()[-1])
assert line["message_type"] == "sync" and line["is_equal"] and sum(row["conflicts"] for row in line["folders"]) >= 1, line
PYTHON
  stores same tree a b
  [ "$(cat a/* | grep -cx here)" = 1 ] && [ "$(cat a/* | grep -cx there)" = 1 ] || fail "a content was lost or doubled"
  grep -q kept 'a/file 2.txt' || fail "a change was deleted"
  run 0 sync --kind tree a b; says 'nothing to do'
  # Flags have no conflicts: each is merged on its own.
  stores deliver maildir m '' 1 2; run 0 sync m n
  flag m/cur 701 FS; flag n/cur 701 RS
  run 0 sync m n; stores same maildir m n 2
  has m/cur '1113400701.*:2,FRS'
}

# A directory that one end has made a file or a link, while the other has put something into it, stays a directory, and
# the other thing is beside it: at both ends after one exchange, whoever begins.
part_directory_conflict() {
  local what changed new count
  for what in file large link; do for changed in a b; do
    fresh directories; [ "$changed" = a ] && new=b || new=a
    mkdir -p a/d/deep; echo x >a/d/x; echo z >a/d/deep/z
    run 0 sync --kind tree a b
    rm -r "$changed/d"
    case $what in
      file) echo "now a file" >"$changed/d" ;;
      large) seq 200000 >"$changed/d" ;;
      link) ln -s nowhere "$changed/d" ;;
    esac
    echo y >"$new/d/y"; mkdir -p "$new/d/sub/below"; seq 90000 >"$new/d/sub/below/big"
    run 0 --json sync -n --kind tree a b
    [ "$(tail -n 1 out | python3 -c 'import json,sys; print(sum(f["conflicts"] for f in json.load(sys.stdin)["folders"]))')" = 1 ] ||
      fail "$what in $changed: a rehearsal says nothing of it"
    run 0 --json sync --kind tree a b
    stores same tree a b
    [ "$(tail -n 1 out | python3 -c 'import json,sys; print(sum(f["conflicts"] for f in json.load(sys.stdin)["folders"]))')" = 1 ] ||
      fail "$what in $changed: not told as one conflict"
    [ "$(cat a/d/y)" = y ] && [ "$(wc -l <a/d/sub/below/big)" = 90000 ] || fail "$what in $changed: what was added is gone"
    count=$(find a -maxdepth 1 -name 'd.kin-conflict-*' | wc -l)
    [ "$count" = 1 ] || fail "$what in $changed: kept $count times"
    case $what in
      file) grep -qx "now a file" a/d.kin-conflict-* || fail "$what in $changed: the file is gone" ;;
      large) seq 200000 | cmp - a/d.kin-conflict-* || fail "$what in $changed: the file is gone" ;;
      link) [ "$(readlink a/d.kin-conflict-*)" = nowhere ] || fail "$what in $changed: the link is gone" ;;
    esac
    run 0 sync --kind tree a b; says 'nothing to do'
  done; done
  # Deleted by one, while the other changes something deep in it: it stays, as it was.
  for changed in a b; do
    fresh directories; [ "$changed" = a ] && new=b || new=a
    mkdir -p a/d/deep; echo x >a/d/x; echo z >a/d/deep/z; echo k >a/k; chmod 751 a/d; chmod 710 a/d/deep
    run 0 sync --kind tree a b
    rm -r "$changed/d"; echo more >>"$new/d/deep/z"
    run 0 sync --kind tree a b; stores same tree a b
    [ "$(stat -c %a a/d a/d/deep b/d b/d/deep | tr '\n' ' ')" = '751 710 751 710 ' ] || fail "$changed: modes"
    [ ! -e a/d/x ] && [ "$(wc -l <a/d/deep/z)" = 2 ] || fail "$changed: what was changed is gone"
    run 0 sync --kind tree a b; says 'nothing to do'
  done
  # Only its mode was changed by one, and the other has no such directory any more.
  for changed in a b; do
    fresh directories; [ "$changed" = a ] && new=b || new=a
    mkdir -p a/d; echo x >a/d/x; echo k >a/k; run 0 sync --kind tree a b
    chmod 600 "$new/d/x"; rm -r "$changed/d"; ln -s k "$changed/d"
    run 0 sync --kind tree a b; stores same tree a b
  done
  # Several at once, by sync and by mirror, whoever begins.
  for changed in a b; do for what in '' --mirror; do
    fresh directories; mkdir -p a/d1 a/d2/deep; echo x >a/d1/x; echo y >a/d2/deep/y; echo k >a/k
    run 0 sync --kind tree a b
    rm -r "$changed"/d?; ln -s k "$changed/d1"; seq 200000 >"$changed/d2"
    if [ "$changed" = a ]; then run 0 sync --allow-deletes $what --kind tree a b
    elif [ "$what" = '' ]; then run 0 sync --allow-deletes --kind tree a b
    else echo new >a/d1/new; run 0 sync --allow-deletes --mirror --kind tree b a; fi
    stores same tree a b; [ -L a/d1 ] && [ -f a/d2 ] || fail "$changed $what: not what they were made"
    [ -z "$(find a b -name '*conflict*')" ] || fail "$changed $what: a conflict where there is none"
    run 0 sync --kind tree a b; says 'nothing to do'
  done; done
  # To collect leaves a file where the other has a directory, and says so; from the trash comes what has room.
  fresh directories; mkdir -p a/d b; echo x >a/d/x; echo n >a/n; echo f >b/d
  run 3 sync --collect --kind tree a b; says 'd is not a directory'; [ "$(cat b/d b/n)" = $'f\nn' ] || fail "collect"
  fresh directories; mkdir -p a/d; echo x >a/d/x; echo y >a/y; echo k >a/k; run 0 sync --kind tree a b
  rm -r a/d a/y; run 0 sync --allow-deletes --kind tree a b; echo f >b/d
  run 3 sync --kind tree --restore-trash b; says 'd is not a directory'; [ "$(cat b/y.kin-restored)" = y ] || fail "trash"
  # Where nothing was added, it is what it was made.
  fresh directories; mkdir -p a/d; echo x >a/d/x; run 0 sync --kind tree a b
  rm -r a/d; echo "now a file" >a/d
  run 0 sync --kind tree a b; stores same tree a b 1
}

# Dry runs say what the real ones do, and do nothing.
part_dry() {
  local kind listed dry ends planned
  for kind in maildir tree; do
    fresh dry; stores deliver "$kind" a '' 1 20; stores deliver "$kind" a one 21 10
    run 0 --json sync -n --kind "$kind" a b; dry=$(counts)
    [ ! -e b ] || [ -z "$(ls -A b)" ] || fail "a dry run has made something"
    run 0 --json sync --kind "$kind" a b; [ "$dry" = "$(counts)" ] || fail "dry: $dry, real: $(counts)"
    stores deliver "$kind" a '' 101 3; stores deliver "$kind" b one 201 4
    if [ "$kind" = maildir ]; then
      flag a/cur 701 FS; rm b/cur/1113400702.*; mv b/cur/1113400703.* b/.one/cur/
    else
      rm 'b/file 2.txt'; mv 'b/file 3.txt' b/one/; echo x >>'a/file 1.txt'; echo y >>'b/file 6.txt'; echo z >>'a/file 5.txt'
    fi
    listed=$(find a b -printf '%p %T@ %C@ %s\n' | LC_ALL=C sort)
    run 0 --json sync -n --kind "$kind" a b; dry=$(counts)
    [ "$(field dry_run)" = True ] || fail "is no dry run"
    [ "$listed" = "$(find a b -printf '%p %T@ %C@ %s\n' | LC_ALL=C sort)" ] || fail "a dry run has changed something"
    run 0 --json sync -n --kind "$kind" a b; [ "$dry" = "$(counts)" ] || fail "a second dry run says something else"
    run 0 --json sync --kind "$kind" a b; [ "$dry" = "$(counts)" ] || fail "dry: $dry, real: $(counts)"
    stores same "$kind" a b
    run 0 sync -n --kind "$kind" a b; says 'nothing to do'
    # One way: what is new, what has changed, and what goes.
    stores deliver "$kind" c '' 3 2; stores deliver "$kind" c '' 801 2
    if [ "$kind" = maildir ]; then flag c/cur 704 FS; else echo c >>'c/file 4.txt'; fi
    for ends in 'a c' 'c d'; do
      run 0 --json sync -n --mirror --allow-deletes --kind "$kind" $ends; dry=$(counts)
      planned=$(field planned_bytes_sent)
      run 0 --json sync --mirror --allow-deletes --kind "$kind" $ends
      [ "$dry" = "$(counts)" ] || fail "$ends: dry: $dry, real: $(counts)"
      [ "$planned" -gt 0 ] || fail "$ends: a rehearsal says that nothing would be sent"
    done
  done
  # Flags that both have changed are merged, and no conflict.
  fresh dry; stores deliver maildir a '' 1 3; run 0 sync a b
  flag a/cur 701 FS; flag b/cur 701 RS
  run 0 --json sync -n a b; counts | grep -q '"conflicts": 0' || fail "a merge is told as a conflict: $(counts)"
}

part_one_way() {
  local kind
  for kind in maildir tree; do
    fresh one; stores deliver "$kind" a '' 1 10; stores deliver "$kind" b '' 8 5; stores deliver "$kind" c '' 8 5
    cp -rp a before
    run 0 sync --kind "$kind" --collect a b; stores same "$kind" a before 10
    [ "$(python3 -B stores.py list "$kind" b | wc -l)" = 12 ] || fail "collect has lost or doubled something"
    [ "$kind" = tree ] || rm a/cur/1113400701.*
    [ "$kind" = maildir ] || rm 'a/file 1.txt'
    run 0 sync --kind "$kind" --collect a b
    [ "$(python3 -B stores.py list "$kind" b | wc -l)" = 12 ] || fail "collect has deleted"
    cp -rp a before2
    run 0 sync --kind "$kind" --mirror a c; stores same "$kind" a c 9; stores same "$kind" a before2 9
    stores deliver "$kind" c '' 301 2
    run 0 sync --kind "$kind" --mirror a c; stores same "$kind" a c 9
  done
  # A name that is mistyped is no empty store that another is made like.
  fresh one; stores deliver maildir a '' 1 5
  refused sync --mirror typo a; refused sync --mirror --kind maildir typo2 a
  [ "$(mails a)" = 5 ] || fail "mirrored what is not there"
}

# Much that is deleted at once is asked for twice, and comes back if it was a mistake.
part_deletions() {
  fresh deletions; stores deliver maildir a '' 1 120; stores deliver maildir a small 121 5
  run 0 sync a b
  find a/cur -name '11134007[0-7]*' -delete
  [ "$(mails a/cur)" -lt 60 ] || fail "too few deleted"
  local left; left=$(mails a)
  run 2 sync a b; says allow-deletes
  [ "$(mails a)" = "$left" ] && [ "$(mails b)" = 125 ] || fail "something was changed"
  run 2 sync b a; says allow-deletes
  [ "$(mails a)" = "$left" ] && [ "$(mails b)" = 125 ] || fail "something was changed"
  run 0 sync --allow-deletes a b; stores same maildir a b "$left"
  run 0 sync a b; says 'nothing to do'
  # One message is deleted there, and comes back from the trash there; then here.
  fresh trash; stores deliver maildir a '' 1 5; run 0 sync a b
  cp a/cur/1113400703.* kept
  rm a/cur/1113400703.*
  run 0 sync a b; stores same maildir a b 4
  run 0 sync --restore-trash b; says '1 item'
  [ "$(mails b)" = 5 ] || fail "it did not come back"
  cmp kept b/cur/1113400703.* || fail "not what it was"
  run 0 sync a b; stores same maildir a b 5
  run 0 sync --restore-trash b; says '0 items'
  # A store that has gone as a whole is a disk that is not mounted, and no wish.
  rm -r b; refused sync a b; [ "$(mails a)" = 5 ] || fail "deleted after the other store had gone"
  fresh gone; stores deliver tree a '' 1 5; run 0 sync --kind tree a b
  rm -r b; refused sync --kind tree a b; [ "$(find a -type f | wc -l)" = 5 ] || fail "deleted after the other store had gone"
  rm -rf b; refused sync --kind tree b a; [ "$(find a -type f | wc -l)" = 5 ] || fail "deleted after the other store had gone"
}

# An empty directory is a disk that is not mounted; one with something else in it has nothing to delete.
part_other_directory() {
  fresh other; mkdir a; for i in 1 2 3 4 5 6; do echo $i >a/$i; done; run 0 sync --kind tree a b
  mv a kept; mkdir a
  for round in 1 2 3; do
    run 14 sync --kind tree a b; says 'is its disk mounted?'
    run 0 sync --kind tree --status a
  done
  [ "$(ls b | wc -l)" = 6 ] || fail "an empty directory has deleted"
  echo stray >a/stray; run 0 sync --kind tree a b; says 'of which nothing is known'
  stores same tree a b 7
  # Of a file that was replaced twice, both come back.
  for i in 1 2 3; do echo "version $i" >a/1; run 0 sync --kind tree a b; done
  run 0 sync --kind tree --restore-trash b; [ "$(cat b/1.kin-restored* | sort | tr '\n' ' ')" = '1 version 1 version 2 ' ] || fail "trash"
  run 2 sync --kind tree -- a -oProxyCommand=x:b; says 'no host is named'
}

# A move that cannot be made is made later, and a keyword that has no room is not deleted.
part_left_over() {
  fresh left; stores deliver maildir a '' 1 8; run 0 sync a b
  local name; name=$(basename "$(find a/cur -type f | sort | sed -n 1p)")
  echo 'in the way' >b/.Old
  mkdir -p a/.Old/{cur,new,tmp}; mv "a/cur/$name" "a/.Old/cur/${name%%:*}:2,FS"
  run 3 sync a b; [ "$(mails b)" = 8 ] || fail "a message is gone"
  rm b/.Old; run 0 sync a b; run 0 sync a b; says 'nothing to do'
  [ "$(mails a)" = 8 ] && [ "$(mails b)" = 8 ] && [ "$(mails b/.Old)" = 1 ] || fail "the move was made in part"
  for i in $(seq 0 25); do echo "$i word$i"; done >b/dovecot-keywords
  local message; message=$(find a/cur -type f | sort | sed -n 1p)
  echo '0 Important' >a/dovecot-keywords; mv "$message" "${message%%:*}:2,Sa"
  run 0 sync a b; message=$(basename "$message"); message=${message%%:*}
  local there; there=$(find b/cur b/new -name "$message*"); [ -n "$there" ] || fail "no $message in b"
  mv "$there" "b/cur/$message:2,FS"
  run 0 sync a b; ls a/cur | grep -q "$message:2,FSa" || fail "the keyword is gone: $(ls a/cur | grep "$message")"
}

part_status() {
  fresh status; stores deliver maildir a '' 1 5
  run 0 sync --status a; says 'no exchange yet'
  run 0 sync a b
  run 0 sync --status a; says '5 items'; says '0 changes to send'
  run 0 --json sync --status a b
  python3 - "$PWD" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open("out")]
assert [line["path"] for line in lines] == [sys.argv[1] + "/a", sys.argv[1] + "/b"], lines
assert all(line["kind"] == "maildir" and line["items"] == 5 and len(line["peers"]) == 1 for line in lines), lines
PYTHON
  # To ask is not to make.
  "$KIN" sync --status none >out 2>err || true; [ ! -e none ] || fail "--status has made a store"
  "$KIN" sync --restore-trash none >out 2>err || true; [ ! -e none ] || fail "--restore-trash has made a store"
}

# Indexes of mail programs are of one store only; what they keep in tmp is theirs.
part_foreign() {
  fresh foreign; stores deliver maildir a '' 1 3; stores deliver maildir a lists 4 2
  local file
  for file in dovecot-uidlist dovecot-uidvalidity dovecot-uidvalidity.4f dovecot.index dovecot.index.log dovecot.index.cache \
    dovecot.list.index .uidvalidity .isyncuidmap.db .mbsyncstate maildirsize courierimapuiddb courierimapsubscribed; do
    echo x >"a/$file"; echo x >"a/.lists/$file"
  done
  mkdir -p a/.notmuch/xapian; echo x >a/.notmuch/xapian/db; echo half >a/tmp/unfinished; echo half >a/.lists/tmp/unfinished
  run 0 sync a b; stores same maildir a b 5
  [ -z "$(find b -name '*dovecot*' -o -name '*uidvalidity*' -o -name '.isync*' -o -name '.mbsync*' -o -name maildirsize -o \
    -name '*courier*' -o -name '*notmuch*' -o -name unfinished)" ] || { find b >err; fail "an index was copied"; }
  [ -e a/tmp/unfinished ] && [ -e a/.lists/tmp/unfinished ] || fail "a file of another program was removed"
}

# link ARGS...: kin through the link, which has these arguments.
link() { local options=$1; shift; "$KIN" "$@" --remote-kin "$KIN" --ssh-command "$slow_link $options --as-ssh"; }

wire() { python3 -c 'import json; told = json.load(open("count.json")); print(told["there"] + told["back"])'; }

# The link is cut after so many bytes: what follows makes up for it.
part_cut() {
  fresh cut; stores deliver maildir a '' 1 100; stores deliver maildir b '' 101 60
  local bytes code cuts=0 whole total
  for bytes in 1 20 46 100 300 1000 2500 5000 10000 15000 20000 30000 40000 60000; do
    code=0; link "--cut-after $bytes --count count.json" sync a "there:$PWD/b" >out 2>err || code=$?
    grep -q '"was_cut": true' count.json || break  # all is there
    cuts=$((cuts + 1))
    [ "$code" = 1 ] || fail "exit code $code after a cut at $bytes"
    [ "$(find b/cur b/new -size 0 | wc -l)" = 0 ] || fail "half a message"
  done
  [ "$cuts" -ge 6 ] || fail "only $cuts cuts"
  code=0; link '' sync a "there:$PWD/b" >out 2>err || code=$?
  [ "$code" = 0 ] || fail "exit code $code"
  stores same maildir a b 160
  # What had arrived is not sent once more: 32 KiB are lost at most.
  rm -rf a b "$work/.local"; stores deliver maildir a '' 1 5; stores deliver maildir c '' 1 5; run 0 sync a b; run 0 sync c d
  stores deliver maildir a '' 1001 500; stores deliver maildir c '' 1001 500
  link '--count count.json' sync c "there:$PWD/d" >out 2>err || fail "sync through the link"
  whole=$(wire)
  link '--cut-after 50000 --count count.json' sync a "there:$PWD/b" >out 2>err && fail "not cut"
  total=$(wire)
  link '--count count.json' sync a "there:$PWD/b" >out 2>err || fail "sync after a cut"
  total=$((total + $(wire)))
  stores same maildir a b 505
  [ "$total" -lt $((whole + 34000)) ] || fail "$total bytes for what takes $whole"
  # Changes of every sort, cut anywhere.
  for bytes in 47 100 250 350 600; do
    rm -rf a b .local "$work/.local"; stores deliver maildir a '' 1 60; run 0 sync a b
    for i in 701 702 703 704 705 706; do flag a/cur "$i" FS; done; rm a/cur/111340071*
    mkdir -p b/.new/{cur,new,tmp}; mv b/cur/111340072* b/.new/cur; stores deliver maildir b '' 301 2
    link "--cut-after $bytes" sync a "there:$PWD/b" >out 2>err || true
    code=0; link '' sync a "there:$PWD/b" >out 2>err || code=$?
    [ "$code" = 0 ] || fail "exit code $code after a cut at $bytes"
    stores same maildir a b 52
    [ "$(mails a/.new/cur)" = 10 ] && [ "$(find b/cur -name '*:2,FS' | wc -l)" = 6 ] || fail "not the changes"
  done
}

# Either end is killed at any moment, with changes of every sort on both sides: the next run makes up for it.
part_kill() {
  fresh kill; mkdir a b
  cat >kill.py <<'PYTHON'
import glob, os, random, signal, subprocess, sys, time
from stores import check_same, deliver, messages, name
kin = sys.argv[1]
seed = int(os.environ.get("KIN_TEST_SEED", time.time_ns() % 1_000_000))
print("seed", seed)
chance = random.Random(seed)
deliver("maildir", "a", "", 0, 200)
for store in "ab":
    deliver("maildir", store, "sub", 0, 0)

def sync():
    return subprocess.Popen([kin, "sync", "a", "b"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)

def converge():
    for _ in range(50):
        run = sync()
        said = run.communicate()[1].decode()
        if run.returncode in (0, 2, 3):
            return run.returncode, said
        assert "under way" in said, said  # the end that was left has not noticed yet
        time.sleep(0.1)
    raise AssertionError(said)

began = time.monotonic()
code, said = converge()
assert code == 0, said
seconds = time.monotonic() - began
free = list(range(200))
chance.shuffle(free)
expected = {number: ("", "S") for number in range(200)}  # folder, flags
more = 1000
def find(store, number):
    (path,) = glob.glob(glob.escape(f"{store}/cur/{name(number)}"))
    return path
for turn in range(20):
    for store in "ab":
        for _ in range(3):
            number = free.pop()
            os.rename(find(store, number), f"{store}/cur/{name(number, 'FS')}")
            expected[number] = "", "FS"
        number = free.pop()
        os.rename(find(store, number), f"{store}/.sub/cur/{name(number)}")
        expected[number] = ".sub", "S"
        number = free.pop()
        os.unlink(find(store, number))
        del expected[number]
        deliver("maildir", store, "", more, 4)
        expected.update({number: ("", "S") for number in range(more, more + 4)})
        more += 4
    run = sync()
    time.sleep(chance.uniform(0, 1.1 * seconds))
    victims = [run.pid]
    if turn % 2:
        victims = [int(pid) for pid in subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout.split()]
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    run.communicate()
    for store in "ab":
        for top, _, names in os.walk(store):
            if os.path.basename(top) != "tmp":
                assert all(os.path.getsize(os.path.join(top, each)) > 0 for each in names), "half a message"
code, said = converge()
assert code == 0, (code, said)
check_same("maildir", "a", "b")
from stores import message
wanted = {message(number): state for number, state in expected.items()}
there = {content: (folder, flags) for folder, flags, content in messages("maildir", "a")}
lost = [content[:90] for content in wanted if content not in there]
back = [content[:90] for content in there if content not in wanted]
other = [(content[:90], state, there[content]) for content, state in wanted.items() if content in there and there[content] != state]
assert not lost and not back and not other, f"lost: {len(lost)} {lost[:3]}; came back: {len(back)} {back[:3]}; other: {len(other)} {other[:3]}"
code, said = converge()
left = [os.path.join(top, each) for store in "ab" for top, _, names in os.walk(store) if os.path.basename(top) == "tmp" for each in names]
old = []
for path in left:  # their age is that of their names; younger ones might be written still
    directory, each = os.path.split(path)
    second, _, rest = each.partition(".")
    old.append(f"{directory}/{int(second) - 40 * 3600}.{rest}")
    os.rename(path, old[-1])
for store in "ab":  # they go when something is written
    deliver("maildir", store, "", more, 1)
    more += 1
code, said = converge()
left = [path for path in old if os.path.exists(path)]
assert not left, f"left in tmp: {left}"
PYTHON
  python3 -B kill.py "$KIN" >out 2>err || fail "$(head -1 out)"
}

# Mail comes in, and is marked, on both sides while they are kept the same: none is lost or doubled.
part_meanwhile() {
  fresh meanwhile; stores deliver maildir a '' 0 50; run 0 sync a b
  cat >busy.py <<'PYTHON'
import os, random, sys, time
from stores import message, name
store, first, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(first)
for turn in range(rounds):
    number = first + turn
    with open(f"{store}/tmp/{name(number)}", "wb") as out:
        out.write(message(number))
    os.rename(f"{store}/tmp/{name(number)}", f"{store}/new/{name(number).split(':')[0]}")
    if turn % 10 == 0:
        names = [(part, each) for part in ("new", "cur") for each in os.listdir(f"{store}/{part}")]
    for _ in range(5):  # a mail program: takes new ones over, and changes flags
        part, each = names.pop(chance.randrange(len(names)))
        base, _, flags = each.partition(":2,")
        flag = chance.choice("FRS")
        flags = "".join(sorted(set(flags) ^ {flag}))
        try:
            os.rename(f"{store}/{part}/{each}", f"{store}/cur/{base}:2,{flags}")
            names.append(("cur", f"{base}:2,{flags}"))
        except FileNotFoundError:
            pass  # kin was faster
    time.sleep(chance.uniform(0, 0.01))
PYTHON
  local rounds=300 code turns=0
  [ -z "${KIN_TEST_LONG-}" ] || rounds=10000
  python3 -B busy.py a 100000 "$rounds" & first=$!
  python3 -B busy.py b 200000 "$rounds" & second=$!
  trap 'kill "$first" "$second" 2>/dev/null || true; cleanup' EXIT
  while kill -0 "$first" 2>/dev/null || kill -0 "$second" 2>/dev/null; do
    code=0; "$KIN" sync a b >out 2>err || code=$?
    [ "$code" = 0 ] || [ "$code" = 3 ] || fail "exit code $code in turn $turns"
    turns=$((turns + 1))
  done
  wait "$first"; wait "$second"
  run 0 sync a b; run 0 sync a b; says 'nothing to do'
  stores same maildir a b $((50 + 2 * rounds))
}

# The same message twice in a folder is two, whatever becomes of one of them.
part_equal() {
  fresh equal; mkdir -p a/{cur,new,tmp}
  local text='Subject: the same\n\ntwice\n'
  printf "$text" >a/cur/1000000003.M3P1.a:2,S; printf "$text" >a/cur/1000000005.M5P1.a:2,S
  run 0 sync a b; rm a/cur/*M3P1*; run 0 sync a b; [ "$(mails b)" = 1 ] || fail "one of two was deleted"
  printf "$text" >b/cur/1000000004.M4P1.b:2,S
  run 0 sync a b; [ "$(mails a)" = 2 ] || fail "the second one did not come"
  # Each end removes another one of the two: one is meant to stay.
  rm a/cur/*M5P1.a:2,S; rm b/cur/*M4P1*
  run 0 sync a b; run 0 sync a b; says 'nothing to do'; [ "$(mails a)$(mails b)" = 11 ] || fail "$(mails a) and $(mails b) are left"
  # In MH, new ones that are equal take the numbers of others.
  mkdir c; printf 'Subject: one\n\n1\n' >c/1; printf 'Subject: two\n\n2\n' >c/2; run 0 sync --kind mh c d
  mv c/1 c/3; mv c/2 c/4; printf "$text" >c/1; printf "$text" >c/2
  run 0 sync --kind mh c d; run 0 sync --kind mh d c; says 'nothing to do'
  [ "$(cat d/[0-9]* | grep -c twice)" = 2 ] && [ "$(ls d | wc -l)" = 4 ] || fail "not two of them came: $(ls d)"
  # One that has got another number is the one that it was, though the first of the two is gone.
  rm d/"$(basename "$(grep -l twice d/[0-9]* | sed -n 1p)")"; run 0 sync --kind mh c d
  mv c/"$(basename "$(grep -l twice c/[0-9]*)")" c/9; printf 'unseen: %s\n' "$(basename "$(grep -l twice d/[0-9]*)")" >d/.mh_sequences
  run 0 sync --kind mh c d; run 0 sync --kind mh c d; says 'nothing to do'
  grep -q 'unseen: 9' c/.mh_sequences || fail "its flag is gone: $(cat c/.mh_sequences)"
}

# A folder that was deleted on one end while something came into it on the other is there; and can be deleted then.
part_folder() {
  fresh folder; stores deliver maildir a '' 1 2; stores deliver maildir a old 3 1; run 0 sync a b
  rm -r a/.old; stores deliver maildir b old 10 1; run 0 sync a b; run 0 sync a b
  [ "$(mails a/.old)" = 1 ] || fail "what came is gone"
  rm -r a/.old; run 0 sync a b; run 0 sync a b; says 'nothing to do'; [ ! -e b/.old ] || fail "the folder is still there"
}

# Three in a ring: the last two have never met, but know of each other's changes.
part_ring() {
  fresh ring; mkdir a; ln -s old a/link; echo 1 >a/file; echo gone >a/gone; echo same >a/same
  run 0 sync --kind tree a b; run 0 sync --kind tree c a
  ln -sfn new a/link; echo 'number 2' >a/file; rm a/gone; run 0 sync --kind tree a b
  echo b >b/b; echo c >c/c; run 0 sync --kind tree b c
  [ "$(readlink c/link)" = new ] && [ "$(cat c/file)" = 'number 2' ] && [ ! -e c/gone ] || fail "an older state came back"
  run 0 sync --kind tree c a; run 0 sync --kind tree a b; run 0 sync --kind tree b c; says 'nothing to do'
  stores same tree a b; stores same tree b c; [ "$(ls a | wc -l)" = 5 ] || fail "conflicts: $(ls a)"
  # And where all three change the same, it comes to an end.
  local each round
  for each in a b c; do ln -sfn "by $each" $each/link; echo "by $each" >$each/file; touch -d 2026-01-01 $each/file; done
  for round in 1 2 3; do run 0 sync --kind tree a b; run 0 sync --kind tree b c; run 0 sync --kind tree c a; done
  run 0 sync --kind tree a b; says 'nothing to do'; stores same tree a b; stores same tree b c
}

# Files that are no mailboxes of messages, and that both have changed, are kept twice.
part_opaque() {
  fresh opaque; mkdir a; stores deliver mbox a in 1 2; printf 'From someone, as a letter begins\n' >a/letter
  run 0 sync --kind mbox a b; echo a >>a/letter; sleep 0.01; echo b >>b/letter
  run 0 sync --kind mbox a b; run 0 sync --kind mbox a b; says 'nothing to do'
  [ "$(ls a | grep -c 'letter')" = 2 ] && [ "$(cat a/letter* | sort)" = "$(cat b/letter* | sort)" ] || fail "$(ls a b)"
}

# The lock of a kin that was killed is no lock; that of another program is waited for, and told of.
part_locked() {
  fresh locked; stores deliver mbox a '' 1 2; run 0 sync a b; stores deliver mbox a '' 3 1
  local dead; sleep 0 & dead=$!; wait "$dead"
  printf '%s\nkin %s %s\n' "$dead" "$(cat /proc/sys/kernel/random/boot_id)" "$(readlink /proc/self/ns/pid)" >b.lock
  SECONDS=0; run 0 sync a b; [ "$SECONDS" -lt 5 ] || fail "it waited $SECONDS s"; [ ! -e b.lock ] || fail "the lock is still there"
  [ -n "${KIN_TEST_LONG-}" ] || return 0
  stores deliver mbox a '' 4 1; echo "$$" >b.lock; run 3 sync a b; says 'is locked by another program'
  rm b.lock; run 0 sync a b; stores same mbox a b 4
}

wait_for() { for i in $(seq 200); do [ "$(mails "$1")" = "$2" ] && return; sleep 0.1; done; fail "$(mails "$1") in $1 instead of $2"; }
wait_to_say() { for i in $(seq 200); do ! grep -qF -- "$1" out err || return 0; sleep 0.1; done; fail "it does not say: $1; but: $(cat out err)"; }
# watch ARG...: in the background.
watch() { timeout 120 "$KIN" sync --watch --interval 3600 "$@" >out 2>err & pid=$!; trap 'kill "${pid-}" 2>/dev/null || true; cleanup' EXIT; }
stop_watch() { kill -TERM "$pid"; i=0; wait "$pid" || i=$?; [ "$i" = 130 ] || fail "exit code $i"; }

# What changes on either end while it goes on is found, though nothing changes here and it is not the time to look.
part_watch() {
  fresh watch; stores deliver maildir a '' 1 3; mkdir b
  watch a b; wait_for b 3; stores deliver maildir a '' 4 2; wait_for b 5
  stores deliver maildir b lists 6 1; wait_for a 6; stop_watch
  # By ssh, where nobody here can see the other store. The other end's id is in a file.
  cat >serve <<'SH'
#!/bin/sh
echo $$ >serve.pid; exec "$KIN" "$@"
SH
  chmod +x serve; export KIN
  watch --remote-kin "$PWD/serve" --ssh-command "$slow_link --as-ssh" a "host:$PWD/b"
  wait_to_say 'nothing to do'; stores deliver maildir b lists 7 1; SECONDS=0; wait_for a 7; [ "$SECONDS" -lt 10 ] || fail "after $SECONDS s"
  stores deliver maildir a '' 8 1; wait_for b 8; stores deliver maildir b '' 9 2; wait_for a 10; stores same maildir a b 10
  # One that is killed is told of, and there is another one soon.
  local killed; killed=$(cat serve.pid); kill -KILL "$killed"; wait_to_say 'the next attempt is in 5 s'
  stores deliver maildir b '' 11 1; wait_for a 11; [ "$(cat serve.pid)" != "$killed" ] || fail "by whom?"
  stores deliver maildir b '' 12 1; wait_for a 12; stop_watch
  # One that does not keep connections: what changes here goes there by another one.
  cat >serve <<'PYTHON'
#!/usr/bin/env python3
"""kin, but a hello with the flag 128 is refused, as by one that does not know it."""
import os, subprocess, sys
hello = os.read(0, 65536)
with open("served", "a") as out:
    out.write(f"{hello[7]:02x}\n")
if hello[7] & 128:
    reason = b"the greeting is cut short or malformed"
    os.write(1, b"\x0b" + bytes([len(reason)]) + reason)
    sys.exit(1)
kin = subprocess.Popen([os.environ["KIN"], *sys.argv[1:]], stdin=subprocess.PIPE)
kin.stdin.write(hello); kin.stdin.flush()
while data := os.read(0, 65536):
    kin.stdin.write(data); kin.stdin.flush()
    if kin.poll() is not None: break
sys.exit(0)
PYTHON
  watch --remote-kin "$PWD/serve" --ssh-command "$slow_link --as-ssh" a "host:$PWD/b"
  wait_to_say 'nothing to do'; stores deliver maildir a '' 13 1; wait_for b 13; stop_watch
  [ "$(tr '\n' ' ' <served)" = '80 00 00 ' ] || [ "$(tr '\n' ' ' <served)" = '80 00 00 00 ' ] || fail "greetings: $(cat served)"
  says 'is of an older kin'
}

# Another exchange that has one of the stores for a moment is waited for, and the connection stays.
part_watch_busy() {
  fresh busy; stores deliver maildir a '' 1 3; mkdir b
  cat >serve <<'SH'
#!/bin/sh
echo connected >>served; exec "$KIN" "$@"
SH
  chmod +x serve; export KIN
  watch --remote-kin "$PWD/serve" --ssh-command "$slow_link --as-ssh" a "host:$PWD/b"
  wait_to_say 'nothing to do'
  # hold STORE: as an exchange of it does, until release. When the next one begins is not for us to say.
  mkfifo silence; exec 9<>silence
  hold() {
    "$KIN" serve --stdio --kind maildir "$1" <silence >/dev/null & holder=$!
    until ls -l "/proc/$holder/fd" 2>/dev/null | grep -q 'kin/sync.*LOCK'; do sleep 0.05; done
  }
  release() { kill "$holder"; wait "$holder" || true; }
  hold b; stores deliver maildir a '' 4 1; sleep 5; release; wait_for b 4
  hold a; stores deliver maildir b '' 5 1; wait_to_say 'the next attempt is in 5 s'; release; wait_for a 5
  stores deliver maildir b '' 6 1; wait_for a 6; stop_watch
  [ "$(wc -l <served)" = 1 ] || fail "$(wc -l <served) connections"
}

# What has no room is told of, and comes when there is.
part_full() {
  fresh full
  mkdir disk; mount -t tmpfs -o size=3m tmpfs disk 2>/dev/null || return 0  # root may
  trap 'umount "$work/full/disk" 2>/dev/null || true; cleanup' EXIT
  local kind; for kind in maildir mh mbox tree; do
    rm -rf a "$work/.local"; find disk -mindepth 1 -delete; stores deliver $kind a box 1 3
    [ $kind != tree ] || mkdir disk/b
    run 0 sync --kind $kind a disk/b; cp -a disk/b before
    head -c 2800000 /dev/zero >disk/filler; stores deliver $kind a box 4 400
    run 3 sync --kind $kind a disk/b; says 'No space left'
    local below=; [ $kind != mbox ] || below=/box
    stores list $kind before$below | sort >was; stores list $kind disk/b$below | sort >is
    [ "$(comm -23 was is | wc -l)" = 0 ] || fail "$kind: $(comm -23 was is | wc -l) are gone from a full disk"
    rm disk/filler; run 0 sync --kind $kind a disk/b; run 0 sync --kind $kind a disk/b; says 'nothing to do'
    stores same $kind a$below disk/b$below 40$([ $kind = tree ] && echo 4 || echo 3); rm -r before
  done
  umount disk
}

# Random changes on both ends, and ends that are killed: tests/cli/sync_random.py.
part_random() {
  fresh random; local kind first=1 seeds=4
  [ -z "${KIN_TEST_LONG-}" ] || { seeds=150; first=$((RANDOM * 1000)); }
  for kind in maildir mh; do
    TMPDIR=$PWD python3 -B "$root/tests/cli/sync_random.py" "$KIN" $kind $first $seeds || fail "$kind"
    TMPDIR=$PWD python3 -B "$root/tests/cli/sync_random.py" "$KIN" $kind $((first + 500)) $seeds 0.3 || fail "$kind, killed"
  done
}

part_bad_input() {
  fresh bad; stores deliver maildir a '' 1 3; cp -r a before
  run 14 sync none/store a; says 'No such file'
  run 2 sync host:a other:b; says 'must be on this machine'
  run 2 sync --kind pop a b; says 'no kind of store named pop'
  run 2 sync a; run 2 sync; run 2 sync a b c; run 2 sync --mirror --collect a b; run 2 sync --limit-rate x a b
  run 2 serve a; says stdio
  [ ! -e b ] || fail "bad input has made a store"
  # The other end is no kin, is not there, or says nothing.
  refused sync a host:b --ssh-command 'sh -c "echo Welcome" #'; says Welcome
  run 1 sync a host:b --ssh-command 'false #'; says 'no answer'
  run 1 sync a host:b --ssh-command 'true #'; says 'closed the connection'
  run 1 sync a "host:$PWD/b" --ssh-command "$slow_link --as-ssh" --remote-kin none-such; says 'kin was not found there'
  run 1 sync a host:b --ssh-command 'none-such-ssh'; says 'not found'
  refused sync a host:b --ssh-command 'cat #'
  refused sync a host:b --ssh-command 'head -c 100000 /dev/urandom #'
  head -c 5000 /dev/urandom >noise; refused serve --stdio a <noise
  # The same twice, by whatever name, and one within the other.
  ln -s a alias; ln -s missing dangling
  for twice in a ./a a/ alias alias/ "$PWD/a"; do
    run 2 sync a "$twice"; says "a and $twice are the same store"
    run 2 sync "$twice" a; says "$twice and a are the same store"
  done
  run 2 sync missing dangling; says 'missing and dangling are the same store'
  run 2 sync dangling missing; says 'dangling and missing are the same store'
  [ ! -e missing ] || fail "a store was made"
  stores deliver mbox box '' 1 3; ln box hard; cp -p box box2
  run 2 sync box hard; says 'box and hard are the same store'; cmp box box2
  mkdir -p tree/inner; echo 1 >tree/one; echo 2 >tree/inner/two; cp -rp tree tree2; ln -s tree/inner short
  for inner in tree/inner tree/none short; do
    run 2 sync --kind tree tree "$inner"; says "$inner lies in tree, so the two cannot be kept the same"; same tree tree2
    run 2 sync --kind tree "$inner" tree; says "$inner lies in tree, so the two cannot be kept the same"; same tree tree2
  done
  run 0 sync --kind tree tree tree-2; stores same tree tree tree-2
  if mkdir mounted && mount --bind a mounted 2>/dev/null; then  # root may
    run 2 sync a mounted; says 'a and mounted are the same store'; umount mounted
  fi
  stores same maildir a before 3
  # What cannot be read is not taken for what was deleted.
  local as_nobody=()
  [ "$(id -u)" != 0 ] || as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  stores deliver maildir x '' 1 4; stores deliver maildir x lists 5 4; cp "$KIN" "$work/kin"
  chmod 755 "$work" .; mkdir state; [ "$(id -u)" != 0 ] || chown -R 65534:65534 x state; mkdir -m 777 there
  as_nobody+=(env "HOME=$PWD/state" "$work/kin")
  "${as_nobody[@]}" sync x there/y >out 2>err || fail "as nobody"
  stores same maildir x there/y 8
  chmod 000 x/.lists/cur
  code=0; "${as_nobody[@]}" sync x there/y >out 2>err || code=$?
  [ "$code" != 0 ] || fail "exit code 0 for a folder that cannot be read"; says 'Permission denied'
  [ "$(mails there/y)" = 8 ] || fail "what could not be read was deleted"
  chmod 700 x/.lists/cur; chmod 000 x
  code=0; "${as_nobody[@]}" sync x there/y >out 2>err || code=$?
  [ "$code" != 0 ] || fail "exit code 0 for a store that cannot be read"; says 'Permission denied'
  chmod 700 x
  [ "$(mails there/y)" = 8 ] || fail "what could not be read was deleted"
  chmod 000 "$(echo x/cur/1113400701.*)"
  code=0; "${as_nobody[@]}" sync x there/y >out 2>err || code=$?
  [ "$code" = 0 ] || [ "$code" = 3 ] || fail "exit code $code for a known message that cannot be read"
  [ "$(mails there/y)" = 8 ] || fail "what could not be read was deleted"
  stores deliver maildir x '' 301 1; [ "$(id -u)" != 0 ] || chown -R 65534:65534 x; chmod 000 "$(echo x/cur/1113401001.*)"
  code=0; "${as_nobody[@]}" sync x there/y >out 2>err || code=$?
  [ "$code" = 3 ] || fail "exit code $code for a message that cannot be read"; says 'Permission denied'
  chmod 600 x/cur/*; "${as_nobody[@]}" sync x there/y >out 2>err || fail "as nobody"
  stores same maildir x there/y 9
}

# A directory that cannot be read is told of, all else is kept the same, and nothing of it counts as deleted: not even
# where the other end has changed something there.
part_unreadable() {
  shut() {  # for nobody, who has all else of x
    if [ "$(id -u)" = 0 ]; then chown -R 65534:65534 x; chown root:root "$1"; chmod 700 "$1"; else chmod 000 "$1"; fi
  }
  local kind closed closed_file code store as_nobody
  for kind in maildir mh mbox tree; do
    fresh unreadable; mkdir -m 777 there state; cp "$KIN" "$work/kin"; chmod 755 "$work" .
    as_nobody=(env "HOME=$PWD/state" "$work/kin" sync --kind "$kind")
    [ "$(id -u)" != 0 ] || as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups "${as_nobody[@]}")
    if [ "$kind" = mbox ]; then
      mkdir -p x/lists; stores deliver mbox x lists/one 1 60; stores deliver mbox x two 101 5; closed=lists
    else
      stores deliver "$kind" x lists 1 60; stores deliver "$kind" x '' 101 5; closed=lists
      [ "$kind" != maildir ] || closed=.lists
    fi
    mkdir x/lost+found
    shut x/lost+found
    # It never could be read.
    code=0; "${as_nobody[@]}" --mirror x there/mirror >out 2>err || code=$?
    [ "$code" = 1 ] || fail "$kind: exit code $code for a mirror of what cannot be seen"
    says "$PWD/x/lost+found cannot be read, so a mirror would delete what is there at the other end"
    code=0; "${as_nobody[@]}" x there/y >out 2>err || code=$?
    [ "$code" = 3 ] || fail "$kind: exit code $code"
    [ "$(grep -c "lost+found: Permission denied" err)" = 1 ] || fail "$kind: not told, or more than once"
    chmod 700 x/lost+found; rmdir x/lost+found; rm -rf there/mirror
    # A file that never could be read does not go from a mirror either.
    if [ "$kind" != mbox ]; then
      closed_file=$(find x -type f ! -name '.*' | LC_ALL=C sort | sed -n 1p)
      cp -rp x open; shut "$closed_file"
      code=0; "${as_nobody[@]}" --state "$PWD/state/other" --mirror --allow-deletes x open >out 2>err || code=$?
      [ "$code" = 1 ] || fail "$kind: exit code $code for a mirror of a file that cannot be read"
      says "$PWD/$closed_file cannot be read, so a mirror would delete what is there at the other end"
      [ -e "open/${closed_file#x/}" ] || fail "$kind: it was deleted"
      [ "$(id -u)" != 0 ] || chown 65534:65534 "$closed_file"
      chmod 600 "$closed_file"; rm -rf open
    fi
    code=0; "${as_nobody[@]}" x there/y >out 2>err || code=$?
    # By chmod 000 of a directory in a tree the other end's may not be read either.
    [ "$code" = 0 ] || { [ "$kind" = tree ] && [ "$(id -u)" != 0 ]; } || fail "$kind: exit code $code"
    [ ! -e there/y/lost+found ] || fail "$kind: still there"
    stores same "$kind" x there/y
    # It could be read before.
    if [ "$kind" = mbox ]; then stores deliver mbox x two 201 1; else stores deliver "$kind" x '' 201 1; fi
    shut "x/$closed"
    for _ in 1 2; do
      code=0; "${as_nobody[@]}" x there/y >out 2>err || code=$?
      [ "$code" = 3 ] || fail "$kind: exit code $code"
      [ "$(grep -c "$PWD/x/$closed: Permission denied" err)" = 1 ] || fail "$kind: not told, or more than once"
    done
    code=0; "${as_nobody[@]}" --mirror --allow-deletes x there/y >out 2>err || code=$?
    [ "$code" = 3 ] || fail "$kind: exit code $code for a mirror"
    [ "$(id -u)" != 0 ] || chown 65534:65534 "x/$closed"
    chmod 700 "x/$closed" "there/y/$closed"
    "${as_nobody[@]}" x there/y >out 2>err || fail "$kind: exit code $?"
    stores same "$kind" x there/y
    for store in x there/y; do
      [ "$(grep -rh '^Message-ID:' "$store" | sort -u | wc -l)" = 66 ] || fail "$kind: something was lost or has not come"
    done
  done
}

# One line for programs, and what a user sees.
part_output() {
  fresh output; stores deliver maildir a '' 1 5; stores deliver maildir b lists 6 2
  run 0 --json sync a b
  python3 - <<'PYTHON'
import json
lines = [json.loads(line) for line in open("out")]
line = lines[-1]
assert line["message_type"] == "sync" and line["items"] >= 7 and line["skipped"] == 0, line
assert line["is_equal"] and not line["was_equal"] and not line["dry_run"] and not line["one_way"], line
assert line["bytes_sent"] > 0 and line["bytes_received"] > 0 and line["content_bytes"] > 2000, line
rows = {row["folder"]: row for row in line["folders"]}
assert rows[""]["there"]["new"] == 5 and rows[""]["here"]["new"] == 0, rows
assert sum(row["here"]["new"] for row in rows.values()) == 2, rows
PYTHON
  flag a/cur 701 FS
  run 0 sync a b; says 'made there'; says 'flagged'; says 'both ends have the same now'
  run 0 -q sync a b; [ ! -s out ] && [ ! -s err ] || fail "not quiet"
  mkdir 'sp ace'; run 0 sync a 'sp ace/it'\''s $HOME'; stores same maildir a 'sp ace/it'\''s $HOME' 7
  code=0; link '' sync a "host:$PWD/sp ace/it's \$HOME" >out 2>err || code=$?
  [ "$code" = 0 ] || fail "exit code $code"; says 'nothing to do'
}

parts=(kinds output conflict directory_conflict dry one_way deletions other_directory left_over equal folder ring opaque status
  locked watch watch_busy full foreign cut kill meanwhile random bad_input unreadable)
[ "$#" = 0 ] || parts=("$@")
for part in "${parts[@]}"; do "part_$part"; done
