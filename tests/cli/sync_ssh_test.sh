#!/usr/bin/env bash
# kin sync through a real ssh: a server of our own on this machine, with keys that are thrown away.
source "$(dirname "$0")/lib.sh"
unset XDG_STATE_HOME
sshd=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd) && command -v ssh >/dev/null || { echo "sshd is not installed"; exit 77; }

# Of root the server wants a directory to be alone in.
[ "$(id -u)" != 0 ] || [ -d /run/sshd ] || mkdir /run/sshd
mkdir ssh; chmod 700 ssh
ssh-keygen -q -t ed25519 -N '' -f ssh/host_key; ssh-keygen -q -t ed25519 -N '' -f ssh/key
cp ssh/key.pub ssh/authorized_keys
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >ssh/sshd_config <<END
Port $port
ListenAddress 127.0.0.1
HostKey $work/ssh/host_key
AuthorizedKeysFile $work/ssh/authorized_keys
PidFile $work/ssh/pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
END
cat >ssh/config <<END
Host there
  HostName 127.0.0.1
  Port $port
  User $(id -un)
  IdentityFile $work/ssh/key
  IdentitiesOnly yes
  UserKnownHostsFile $work/ssh/known_hosts
  StrictHostKeyChecking no
  LogLevel ERROR
END
"$sshd" -D -e -f "$work/ssh/sshd_config" 2>ssh/log & server=$!
trap 'kill "$server" 2>/dev/null || true; cleanup' EXIT
for _ in $(seq 50); do
  ssh -F ssh/config there true 2>err </dev/null && break
  kill -0 "$server" 2>/dev/null || { cat ssh/log >&2; fail "sshd has ended"; }
  sleep .1
done
ssh -F ssh/config there true </dev/null 2>err || { cat ssh/log >&2; fail "no connection to sshd"; }

# through CODE ARG...: kin sync, with our ssh and a state of the other end's own.
through() {
  local code=$1
  shift
  run "$code" "$@" --ssh-command "ssh -F $work/ssh/config" --remote-kin "$KIN" --remote-state "$work/there-state"
}
deliver() {
  python3 - "$@" <<'PYTHON'
import os, random, sys
store, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for part in ("cur", "new", "tmp"):
    os.makedirs(f"{store}/{part}", exist_ok=True)
for number in range(first, first + count):
    chance = random.Random(number)  # what does not compress, so that it takes a while
    text = "\n".join(chance.randbytes(30).hex() for _ in range(100))
    with open(f"{store}/cur/{1113400700 + number}.M{number}P18951.mail.example.org:2,S", "w") as out:
        out.write(f"Message-ID: <{number}@example.org>\nSubject: {number}\n\n{text}\n")
PYTHON
}
equal() { diff -r a "there b" >differences || { head -5 differences >&2; fail "the stores differ"; }; }

deliver a 1 50
through 0 sync a "there:$work/there b"; says 'both ends have the same now'; equal
through 0 sync a "there:$work/there b"; says 'nothing to do'
deliver "there b" 101 5; rm a/cur/1113400701.*
through 0 sync "there:$work/there b" a; equal
[ "$(find a/cur -type f | wc -l)" = 54 ] || fail "not the changes"
# A path that is relative, or begins with ~, is of the home there, and HOME is not ours: ssh sets it anew.
through 1 sync a "there:none-such-$$/b"; says 'No such file'
through 1 sync a "there:~/none-such-$$/b"; says 'No such file'

# The connection dies in the midst: what came over is kept, and the next run brings the rest.
deliver a 1001 300
"$KIN" sync a "there:$work/there b" --limit-rate 100k --ssh-command "ssh -F $work/ssh/config" --remote-kin "$KIN" \
  --remote-state "$work/there-state" >out 2>err & pid=$!
for _ in $(seq 100); do
  sleep .1
  [ "$(find "there b/cur" "there b/tmp" -type f | wc -l)" -le 60 ] || break
done
connection=$(pgrep -P "$pid" -a | awk '/ssh -F|sh -c/ {print $1; exit}')
[ -n "$connection" ] || fail "no ssh under way"
for child in $(pgrep -P "$connection") "$connection"; do kill -9 "$child" 2>/dev/null || true; done
code=0; wait "$pid" || code=$?
[ "$code" = 1 ] || fail "exit code $code after the connection died"
arrived=$(find "there b/cur" -type f | wc -l)
[ "$arrived" -lt 354 ] || fail "all had come over before the cut"
for _ in $(seq 50); do  # the end that was left notices, and lets go
  code=0
  "$KIN" --json sync a "there:$work/there b" --ssh-command "ssh -F $work/ssh/config" --remote-kin "$KIN" \
    --remote-state "$work/there-state" >out 2>err || code=$?
  if [ "$code" = 0 ] || ! grep -q 'under way' err; then break; fi
  sleep .2
done
[ "$code" = 0 ] || fail "exit code $code after a cut"
equal
[ "$arrived" -gt 54 ] || fail "nothing of what came over was kept"
[ "$(field content_bytes)" -lt $(((354 - arrived + 1) * 6300)) ] || fail "what had come over was sent once more"
through 0 sync a "there:$work/there b"; says 'nothing to do'
