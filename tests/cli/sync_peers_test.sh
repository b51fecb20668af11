#!/usr/bin/env bash
# kin sync beside other programs that work on the same stores: nmh, isync and Dovecot, as Debian has them. Names of parts as
# arguments: only those.
source "$(dirname "$0")/lib.sh"
unset XDG_STATE_HOME MH MHCONTEXT
PATH=$PATH:/usr/bin/mh:/usr/sbin
for program in inc mark folder sortm refile rmm pick mbsync doveadm; do
  command -v "$program" >/dev/null || fail "$program is not installed (scripts/setup --tests)"
done

# spool FILE FIRST COUNT: an mbox with messages; their subjects are in another order than their numbers.
spool() {
  python3 - "$@" <<'PYTHON'
import sys
path, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path, "w") as out:
    for number in range(first, first + count):
        out.write(f"From u@example.org Thu Apr 14 00:00:00 2005\nFrom: u@example.org\nSubject: {number * 7919 % 1000:03}\n"
                  f"Message-ID: <{number}@example.org>\nDate: Thu, 14 Apr 2005 00:{number // 60 % 60:02}:{number % 60:02} +0000\n\n"
                  + f"text of {number}\n" * 20 + "\n")
PYTHON
}
# contents DIRECTORY: of all messages below it, by their ids.
contents() { find "$1" -type f -not -name '.*' -exec grep -h -m 1 '^Message-ID' {} + | sort; }
# moved: how much content went through the last sync, either way.
moved() { python3 -c 'import json; print(sum(json.loads(line).get("content_bytes", 0) for line in open("out")))'; }
# nothing_moves: a sync that finds the two ends the same.
nothing_moves() { run 0 --json sync "$@"; [ "$(field was_equal)" = True ] || fail "they differ"; }

# mh END PROGRAM ARG...: one of nmh's, with that end's profile.
mh() { local end=$1; shift; MH=$work/$end/profile "$@" >mh_out 2>&1; }
# numbers END FOLDER SEQUENCE: of the messages in it. (pick says 0 for none.)
numbers() { MH=$work/$1/profile pick "+$2" "$3" 2>/dev/null | grep -v '^0$' || true; }
# ids END FOLDER SEQUENCE: the same, by their ids.
ids() {
  local number
  for number in $(numbers "$@"); do grep -h -m 1 '^Message-ID' "$work/$1/mail/$2/$number"; done | sort
}

new_mh_ends() {
  rm -rf a b .local; mkdir -p a/mail b/mail
  printf 'Path: %s/a/mail\nUnseen-Sequence: unseen\n' "$work" >a/profile
  printf 'Path: %s/b/mail\nUnseen-Sequence: fresh\nDatalocking: %s\n' "$work" "${1-fcntl}" >b/profile
  mkdir a/mail/inbox b/mail/inbox
}
# Each end of kin goes by the profile of its own user.
mh_sync() { run 0 --json sync --kind mh "$@"; }

part_mh() {
  local locking
  for locking in fcntl dot; do
    new_mh_ends "$locking"
    cat >kin_there <<END
#!/bin/sh
MH=$work/b/profile exec "$KIN" "\$@"
END
    cat >ssh_there <<'END'
#!/bin/sh
exec sh -c "$2"
END
    chmod +x kin_there ssh_there
    export MH=$work/a/profile
    local there=(a/mail "there:$work/b/mail" --remote-kin "$work/kin_there" --ssh-command "$work/ssh_there" --remote-state "$work/there")
    rm -rf there
    spool new 1 20; mh a inc -file new +inbox || fail inc
    mh_sync "${there[@]}"
    [ "$(contents a/mail)" = "$(contents b/mail)" ] && [ "$(mails_in b/mail/inbox)" = 20 ] || fail "not the same"
    [ "$(ids b inbox fresh | wc -l)" = 20 ] || fail "not unseen there"
    # Sequences follow their messages when those get other numbers, and no message is sent again.
    mh a mark +inbox -sequence flagged 3 7 20; mh a mark +inbox -sequence todo 4 8; mh a mark +inbox -sequence unseen -delete 1-10
    mh a rmm +inbox 1 5 11
    mh_sync "${there[@]}"; [ "$(moved)" = 0 ] || fail "content was sent for flags"
    local flagged todo unseen
    flagged=$(ids a inbox flagged); todo=$(ids a inbox todo); unseen=$(ids a inbox unseen)
    mh a folder +inbox -pack || fail pack
    nothing_moves --kind mh "${there[@]}"
    mh b folder +inbox -pack; mh b sortm +inbox -textfield subject || fail sortm
    nothing_moves --kind mh "${there[@]}"
    mh a sortm +inbox -textfield subject -limit 0; mh a refile -retainsequences +lists -src inbox 2 6; mh b folder +inbox -pack
    mh_sync "${there[@]}"; [ "$(moved)" = 0 ] || fail "content was sent for numbers"
    [ "$(contents a/mail/lists)" = "$(contents b/mail/lists)" ] && [ "$(mails_in b/mail/lists)" = 2 ] || fail "not moved"
    for sequence in flagged todo; do
      [ "$( (ids a inbox $sequence; ids a lists $sequence) | sort)" = "${!sequence}" ] || fail "$sequence here"
      [ "$( (ids b inbox $sequence; ids b lists $sequence) | sort)" = "${!sequence}" ] || fail "$sequence there"
    done
    [ "$( (ids b inbox fresh; ids b lists fresh) | sort)" = "$unseen" ] || fail "unseen there"
    nothing_moves --kind mh "${there[@]}"
  done
  # Mail comes in at both ends at the same time, and is marked, while they are kept the same. By rcvstore: inc writes over
  # what comes while it works, also what another inc brings.
  new_mh_ends; rm -rf there
  spool new 1 40; mh a inc -file new +inbox; mh_sync "${there[@]}"
  local end helpers=() i
  for end in a b; do
    (
      cd "$work/$end"; export MH=$work/$end/profile
      at=$([ "$end" = a ] && echo 1000 || echo 2000)
      for i in $(seq 15); do
        for number in $(seq $((at + i * 3)) $((at + i * 3 + 2))); do
          until printf 'From: u@example.org\nMessage-ID: <%s@example.org>\n\ntext of %s\n' "$number" "$number" |
            /usr/lib/mh/rcvstore +inbox 2>>errors; do :; done
        done
        # By what it says, since numbers change.
        number=$(pick +inbox --message-id "<$((i + (at == 1000 ? 0 : 20)))@example.org>" 2>>errors)
        mark +inbox -sequence "$([ "$end" = a ] && echo flagged || echo replied)" -add "$number" >/dev/null 2>>errors
      done
    ) & helpers+=($!)
  done
  while kill -0 "${helpers[@]}" 2>/dev/null; do "$KIN" sync --kind mh "${there[@]}" >out 2>err || [ $? = 3 ] || fail "exit code"; done
  wait "${helpers[@]}"
  mh_sync "${there[@]}"; mh_sync "${there[@]}"
  for end in a b; do
    [ "$(mails_in $end/mail/inbox)" = 130 ] || fail "$(mails_in $end/mail/inbox) instead of 130 messages in $end"
    [ "$(contents $end/mail | uniq -d)" = '' ] || fail "one is there twice"
    [ "$(ids $end inbox flagged | wc -l)" = 15 ] && [ "$(ids $end inbox replied | wc -l)" = 15 ] || fail "a mark was lost in $end"
  done
  unset MH
}
mails_in() { find "$1" -maxdepth 1 -name '[1-9]*' | wc -l; }


# put MAILDIR FIRST COUNT: messages that somebody has read.
put() {
  local number
  mkdir -p "$1"/{cur,new,tmp}
  for number in $(seq "$2" $(($2 + $3 - 1))); do
    printf 'From: u@example.org\nSubject: %s\nMessage-ID: <%s@example.org>\n\ntext\n' "$number" "$number" >"$1/cur/$number.host:2,S"
  done
}
# flags MAILDIR NUMBER: of the message that has it in its id.
flags() { local path; path=$(grep -l "^Message-ID: <$2@" -r "$1/cur"); echo "${path##*2,}"; }
set_flags() { local path; path=$(grep -l "^Message-ID: <$2@" -r "$1/cur"); mv "$path" "${path%2,*}2,$3"; }

# mbsync keeps one Maildir like another, and kin one of these like a third.
part_isync() {
  local store folder
  cat >mbsyncrc <<END
MaildirStore far
Path $work/far/
Inbox $work/far/INBOX
SubFolders Verbatim

MaildirStore near
Path $work/near/
Inbox $work/near/INBOX
SubFolders Verbatim

Channel both
Far :far:
Near :near:
Patterns *
Create Both
Expunge Both
CopyArrivalDate yes
SyncState *
END
  beside() { mbsync -c mbsyncrc -a >mbsync_out 2>&1 || { cat mbsync_out >&2; fail "mbsync"; }; }
  mkdir far near third; put far/INBOX 1 10; put near/INBOX 11 2; put far/lists 101 3
  beside; run 0 --json sync near third
  for store in near third; do
    [ "$(contents $store/INBOX)" = "$(contents far/INBOX)" ] && [ "$(contents $store/lists)" = "$(contents far/lists)" ] || fail "not the same in $store"
  done
  [ -z "$(find third -name '*,U=*' -o -name '.uidvalidity' -o -name '.mbsyncstate*')" ] || fail "what is of one store was copied"
  # What mbsync brings, takes or only numbers: nothing that it renames is sent again.
  set_flags third/INBOX 3 FS; put third/INBOX 13 2; rm "$(grep -l '<4@' -r third/INBOX/cur)"
  run 0 --json sync near third; beside; nothing_moves near third; beside; nothing_moves near third
  [ "$(flags far/INBOX 3)" = FS ] && [ "$(contents far/INBOX | wc -l)" = 13 ] || fail "not as in the third"
  set_flags far/INBOX 5 RS; set_flags far/lists 101 FS; beside
  run 0 --json sync near third; [ "$(moved)" = 0 ] || fail "content was sent for flags"
  [ "$(flags third/INBOX 5)" = RS ] && [ "$(flags third/lists 101)" = FS ] || fail "not as in the first"
  # A message that moves leaves its number behind, so that mbsync does not take it for another.
  mv "$(grep -l '<6@' -r third/INBOX/cur)" third/lists/cur/
  run 0 --json sync near third; [ "$(moved)" = 0 ] || fail "content was sent for a move"
  [ -z "$(find near/lists -name '6.host*,U=*')" ] || fail "a number of another folder"
  beside; ! grep -qi 'duplicate' mbsync_out || fail "mbsync has found duplicates"
  nothing_moves near third
  for store in near third; do
    for folder in INBOX lists; do
      [ "$(contents $store/$folder)" = "$(contents far/$folder)" ] || fail "not the same in $store/$folder"
    done
  done
  [ "$(contents far | wc -l)" = 16 ] && [ "$(contents far | uniq -d)" = '' ] || fail "lost or doubled"
}

# Dovecot has its own names, numbers and letters. It does not work for root, so it and kin are another user then.
part_dovecot() {
  mkdir dovecot other mine
  local as=() user; user=$(id -un)
  if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups); user=nobody
    chmod 711 "$work"; chown 65534:65534 dovecot other mine
  fi
  cp "$KIN" kin_copy
  printf '#!/bin/sh\nexec %s env HOME=%s/mine XDG_CACHE_HOME=%s/mine "%s/kin_copy" "$@"\n' "${as[*]}" "$work" "$work" "$work" >kin_as_user
  chmod +x kin_as_user
  local KIN=$work/kin_as_user
  printf 'log_path = /dev/stderr\nssl = no\nmail_location = maildir:%s/dovecot/mail\nbase_dir = %s/mine/run\n' "$work" "$work" >dovecot.conf
  doveadm_here() { "${as[@]}" env HOME="$work/mine" USER="$user" doveadm -c "$work/dovecot.conf" "$@" 2>>doveadm_err; }
  local number
  doveadm_here mailbox create lists || fail "doveadm mailbox"
  for number in 1 2 3 4; do printf 'From: u@example.org\nMessage-ID: <%s@example.org>\n\ntext\n' "$number" | doveadm_here save -m INBOX || fail "doveadm save"; done
  doveadm_here flags add '\Seen Todo' mailbox INBOX uid 2 || fail "doveadm flags"
  run 0 --json sync dovecot/mail other
  [ "$(contents other | wc -l)" = 4 ] && [ "$(flags other 2)" = Sa ] && [ "$(cat other/dovecot-keywords)" = '0 Todo' ] || fail "not as Dovecot has it"
  nothing_moves dovecot/mail other
  # Other letters for the same words, and marks at both ends.
  "${as[@]}" sh -c "echo '0 Other' >other/dovecot-keywords; echo '1 Todo' >>other/dovecot-keywords"
  set_flags other 2 Sb; nothing_moves dovecot/mail other
  doveadm_here flags add '\Flagged' mailbox INBOX uid 2; set_flags other 2 RSab; "${as[@]}" mv other/new/* other/cur/
  for number in 1 3 4; do "${as[@]}" mv "$(grep -l "<$number@" -r other/cur)" "other/cur/$number.host:2,"; done
  run 0 --json sync dovecot/mail other; [ "$(moved)" = 0 ] || fail "content was sent for flags"
  # Recent is what no reader has seen yet.
  [ "$(doveadm_here fetch flags mailbox INBOX uid 2 | tr ' ' '\n' | sed 's/^flags://' | grep -v Recent | grep . | LC_ALL=C sort | tr '\n' ' ')" = 'Other Todo \Answered \Flagged \Seen ' ] ||
    { doveadm_here fetch flags mailbox INBOX uid 2 >out; fail "not as the other has it"; }
  doveadm_here move lists mailbox INBOX uid 3 || fail "doveadm move"
  run 0 --json sync dovecot/mail other; [ "$(moved)" = 0 ] || fail "content was sent for a move"
  [ "$(contents other/.lists)" = 'Message-ID: <3@example.org>' ] || fail "not moved"
  "${as[@]}" mv other/.lists/*/3.host* other/cur/ 2>/dev/null || "${as[@]}" mv "$(grep -l '<3@' -r other/.lists)" other/cur/
  run 0 --json sync dovecot/mail other; [ "$(moved)" = 0 ] || fail "content was sent for a move back"
  doveadm_here expunge mailbox INBOX uid 1
  run 0 --json sync dovecot/mail other; nothing_moves dovecot/mail other
  [ "$(doveadm_here fetch uid mailbox INBOX all | grep -c uid:)" = 3 ] && [ "$(contents other | wc -l)" = 3 ] || fail "lost or doubled"
  [ ! -s doveadm_err ] || { cat doveadm_err >&2; fail "Dovecot complains"; }
}

[ $# -gt 0 ] || set -- mh isync dovecot
for part in "$@"; do "part_$part"; done
