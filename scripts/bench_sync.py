"""scripts/bench sync: what it takes to keep two stores of mail the same, beside rsync, unison and muchsync.

Every tool speaks through tests/support/slow_link.py in place of ssh, which counts bytes and turns; what ssh itself adds
is the same for all. The seconds of a modem are computed from them: 56 kbit/s each way, and 300 ms for a round trip.
The tools of --slow really go through such a line, and what that takes is beside it. It is a little more than computed,
by their own work, or less, where both directions are full at once.

Each tool has two stores of its own, and all make the same changes in the first. A store is linked from files that are
kept under build/bench-data: messages do not change, and their names are those of Maildir.
"""

import email.utils
import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

from bench_data import BUILD, BenchError, made_once, progress, spamassassin
from bench_measure import measure, print_table
from bench_programs import build_program
from bench_similar import mails
from bench_targets import Target, judge, print_targets

LINK = BUILD.parent / "tests/support/slow_link.py"
BYTES_PER_SECOND, ROUND_TRIP_SECONDS = 7000, 0.3
SLOW = f"--rate {BYTES_PER_SECOND} --delay {1000 * ROUND_TRIP_SECONDS / 2:g}"
FIRST_SECOND = 1_113_400_700
PEAK_TARGET_MIB = 384
OTHER_FOLDER = ".archive"


# -- stores


def mail_name(number, size, flags="S"):
    return f"{FIRST_SECOND + number * 61}.M{140_891 + number}P18951.mail.example.org,S={size}:2,{flags}"


def make_maildir(directory):
    for part in ("cur", "new", "tmp"):
        (directory / part).mkdir(parents=True, exist_ok=True)


def link_or_copy(file, path):
    try:
        os.link(file, path)
    except OSError:
        shutil.copy2(file, path)


def deliver(files, store, first=0):
    """Into a Maildir, under the names that their numbers give."""
    make_maildir(store)
    for number, file in enumerate(files, first):
        link_or_copy(file, store / "cur" / mail_name(number, file.stat().st_size))


def spread(values, count):
    """So many of them, evenly over all."""
    return [values[i * len(values) // count] for i in range(count)]


def small_maildir(count):
    """Folders of 50,000 messages of some hundred bytes."""
    return made_once(f"maildir-{count}-v1", f"{count:,} small messages", lambda tree: make_small_maildir(tree, count))


def make_small_maildir(tree, count):
    chance = random.Random("kin bench small maildir")
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randrange(3, 9))) for _ in range(2000)]
    make_maildir(tree)
    for number in range(count):
        if number % 50_000 == 0:
            progress(f"{count:,} small messages: {number:,}")
            folder = tree / f".f{number // 50_000:02}"
            make_maildir(folder)
            (folder / "maildirfolder").touch()
        text = " ".join(chance.choices(words, k=30))
        content = f"From: u{number % 997}@example.org\nMessage-ID: <{number}@example.org>\nSubject: {number}\n\n{text}\n"
        (folder / "cur" / mail_name(number, len(content))).write_text(content)
    progress("")


def copy_maildir(store, copy):
    """By links: a message does not change."""
    for top, _, names in os.walk(store):
        there = copy / os.path.relpath(top, store)
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            os.link(os.path.join(top, name), there / name)


def change_flags(store, count):
    for path in spread(sorted((store / "cur").iterdir()), count):
        base, flags = path.name.split(":2,")
        path.rename(path.with_name(f"{base}:2,{''.join(sorted({*flags} ^ {'F'}))}"))


def move_to_other_folder(store, count):
    for path in spread(sorted((store / "cur").iterdir()), count):
        path.rename(store / OTHER_FOLDER / "cur" / path.name)


# -- the tools: each keeps two stores the same


class Tool:
    def __init__(self, work):
        self.work = work
        self.here, self.there = work / "here", work / "there"
        self.count = work / "count.json"
        self.is_slow = False
        work.mkdir(parents=True)

    def link(self):
        return f"{LINK} {SLOW if self.is_slow else ''} --count {self.count} --as-ssh"

    def first(self):
        """The two are equal and the tool has not seen them; afterwards it has."""
        return self.sync()

    def measured(self, command, environment=None):
        self.count.unlink(missing_ok=True)
        took = measure([str(part) for part in command], environment or {}, str(self.work), self.work / "said")
        for _ in range(100):  # unison does not wait for what it has started
            if self.count.exists():
                break
            time.sleep(0.1)
        else:
            raise BenchError(f"{self.name} did not go through the link")
        counted = json.loads(self.count.read_text())
        return {
            "there, B": counted["there"],
            "back, B": counted["back"],
            "bytes": counted["there"] + counted["back"],
            "turns": counted["turns"],
            "56k, s": (counted["there"] + counted["back"]) / BYTES_PER_SECOND + counted["turns"] / 2 * ROUND_TRIP_SECONDS,
            "measured, s": took["s"] if self.is_slow else None,
            "took, s": took["s"],
            "peak MiB": took["peak MiB"],
        }


class Kin(Tool):
    name, program = "kin", BUILD / "release/kin"

    def sync(self, kind="maildir"):
        states = ["--state", self.work / "state-here", "--remote-state", self.work / "state-there"]
        ssh = ["--ssh-command", self.link(), "--remote-kin", self.program]
        command = [self.program, "--json", "sync", "--kind", kind, *states, *ssh, self.here, f"host:{self.there}"]
        result = self.measured(command)
        said = json.loads((self.work / "said").read_text().splitlines()[-1])
        if not said["is_equal"]:
            raise BenchError(f"kin sync has not made the stores equal: {said}")
        return result

    def scan_seconds(self, touch=False):
        """To be the other end of nobody is to look through the store and no more."""
        if touch:
            for directory in self.here.glob("**/cur"):
                directory.touch()
        command = [self.program, "serve", "--stdio", "--kind", "maildir", "--state", self.work / "state-here", self.here]
        began = time.monotonic()
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        return time.monotonic() - began

    def lose_state(self):
        shutil.rmtree(self.work / "state-there")


class Rsync(Tool):
    name = "rsync"

    def sync(self):
        command = ["rsync", "-az", "--fuzzy", "--delete-after", "-e", self.link()]
        return self.measured([*command, f"{self.here}/", f"host:{self.there}/"])


class Unison(Tool):
    name = "unison"

    def sync(self):
        wrapper = self.work / "ssh"
        wrapper.write_text(f'#!/bin/sh\nexec {self.link()} -- "$@"\n')
        wrapper.chmod(0o755)
        options = ["-batch", "-confirmbigdel=false", "-contactquietly", "-logfile", self.work / "log", "-sshcmd", wrapper]
        roots = [self.here, f"ssh://host/{self.there}"]
        return self.measured(["unison", *roots, *options], {"UNISON": str(self.work / "archives")})


class Muchsync(Tool):
    """By notmuch, which has a database of each store; the one that asks is the second."""

    name = "muchsync"

    def config(self, store):
        return {"NOTMUCH_CONFIG": str(self.work / f"{store.name}.config"), "HOME": str(self.work)}

    def run(self, store, *command):
        result = subprocess.run(command, env={**os.environ, **self.config(store)}, capture_output=True, text=True)
        if result.returncode != 0:
            raise BenchError(f"{' '.join(map(str, command))}: {result.stderr[-1000:]}")

    def first(self):
        text = f"[database]\npath={self.here}\n[user]\nname=u\nprimary_email=u@example.org\n[new]\ntags=new\n"
        Path(self.config(self.here)["NOTMUCH_CONFIG"]).write_text(f"{text}[maildir]\nsynchronize_flags=true\n")
        self.run(self.here, "notmuch", "new")
        shutil.rmtree(self.there)
        first = self.sync("--init", self.there)
        self.sync()
        return first

    def sync(self, *more):
        server = f"env NOTMUCH_CONFIG={self.config(self.here)['NOTMUCH_CONFIG']} muchsync"
        command = ["muchsync", "-s", f"{self.link()} --", "-r", server, *more, "host"]
        return self.measured(command, self.config(self.there))


PEERS = {"rsync": Rsync, "unison": Unison, "muchsync": Muchsync}


# -- one run of the benchmark: what is measured, printed at once and judged at the end


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.tools = [Kin, *(PEERS[name] for name in wanted_peers(options.peers))]
        self.report, self.verdicts, self.pairs = {}, [], 0

    def pair(self, tool, files, two_folders=True):
        """Two equal stores that the tool knows."""
        self.pairs += 1
        made = tool(self.work / f"{self.pairs}-{tool.name}")
        deliver(files, made.here)
        if two_folders:
            make_maildir(made.here / OTHER_FOLDER)
            (made.here / OTHER_FOLDER / "maildirfolder").touch()
        copy_maildir(made.here, made.there)
        progress(f"{tool.name}: first sync")
        made.first()
        progress("")
        return made

    def sync(self, tool, **more):
        progress(f"{tool.name}: sync")
        tool.is_slow = tool.name in self.options.slow.split(",")
        result = tool.sync(**more)
        tool.is_slow = False
        progress("")
        return result

    def tell(self, case, rows, targets=()):
        """Rows by tool."""
        table = [[case, "there, B", "back, B", "bytes", "turns", "56k, s", "measured", "took, s"]]
        for tool, row in rows.items():
            sizes = [f"{row[column]:,}" for column in ("there, B", "back, B", "bytes", "turns")]
            measured, took = ("", f"{row['took, s']:.2f}") if row["measured, s"] is None else (f"{row['measured, s']:.2f}", "")
            table.append([f"  {tool}", *sizes, f"{row['56k, s']:.2f}", measured, took])
        print_table([[line[0].ljust(40), *line[1:]] for line in table])
        self.judge(case, rows, targets)

    def judge(self, case, rows, targets):
        self.report[case] = rows
        verdicts = judge(case, rows, targets)
        self.verdicts += verdicts
        for verdict in verdicts:
            met = "met" if verdict["met"] else "missed"
            print(f"  {verdict['row']}: {verdict['kin']:,.4g}, {verdict['bound']}: {met}", flush=True)


def wanted_peers(text):
    names = [] if text == "none" else text.split(",")
    for name in names:
        if name not in PEERS:
            raise BenchError(f"no such peer: {name}; known are {', '.join(PEERS)}, none")
        needed = ("muchsync", "notmuch") if name == "muchsync" else (name,)
        if not all(shutil.which(program) for program in needed):
            print(f"{name} is not installed and is left out; scripts/setup --developer installs it")
    return [name for name in names if shutil.which(name) and (name != "muchsync" or shutil.which("notmuch"))]


def most(value, row="bytes", unit=" B"):
    return Target(row, value, unit=unit)


# -- the cases


def files_of(directory):
    return sorted(path for path in directory.rglob("*") if path.is_file())


def changes(bench):
    """20,000 messages: none changed, 200 flagged, 200 moved."""
    files = files_of(mails())
    few = spread(files, 2000)  # notmuch takes its time
    tools = {}
    for tool in bench.tools:
        name = "muchsync (2,000)" if tool is Muchsync else tool.name
        tools[name] = bench.pair(tool, few if tool is Muchsync else files)
    steps = {
        "20,000 messages, no change": (lambda store: None, [most(200), most(2, "turns", "")]),
        "200 flag changes": (lambda store: change_flags(store, 200), [most(2500)]),
        "200 moved to another folder": (lambda store: move_to_other_folder(store, 200), [most(3000)]),
    }
    for case, (change, targets) in steps.items():
        rows = {}
        for name, tool in tools.items():
            change(tool.here)
            rows[name] = bench.sync(tool)
        bench.tell(case, rows, targets)


def lost(bench):
    """The state of one end is lost, and each has 10 messages that the other has not."""
    files = files_of(mails())
    new = spread(files, 20)
    files = [file for file in files if file not in set(new)]
    rows = {}
    for name in ("known state", "state lost"):
        kin = bench.pair(Kin, files)
        if name == "state lost":
            kin.lose_state()
        deliver(new[:10], kin.here, 100_000)
        deliver(new[10:], kin.there, 100_010)
        rows[name] = bench.sync(kin)
    size = sum(file.stat().st_size for file in new)
    case = f"10 new on each side, {size:,} B"
    bench.tell(case, rows)
    more = rows["state lost"]["bytes"] - rows["known state"]["bytes"]
    bench.judge("state lost, 20 differences", {"kin": {"bytes more than with a known state": more}}, [
        most(1024, "bytes more than with a known state")
    ])


def new_mail(bench):
    """200 new messages of lists, where the other 5,846 of SpamAssassin's are on both sides."""
    files = files_of(spamassassin())
    new = spread([file for file in files if file.parent.name.startswith("easy-ham")], 200)
    rest = [file for file in files if file not in set(new)]
    raw = sum(file.stat().st_size for file in new)
    rows = {}
    for tool in bench.tools:
        if tool is Muchsync:
            continue
        pair = bench.pair(tool, rest)
        deliver(new, pair.here, 100_000)
        rows[tool.name] = bench.sync(pair)
        rows[tool.name]["bytes by raw bytes"] = rows[tool.name]["bytes"] / raw
    bench.tell(f"200 new list mails, {raw:,} B", rows, [most(0.27, "bytes by raw bytes", "")])


REPLAYED = 400


def sent_at(file):
    """By the Date of the message, which tells about in which order a list was read."""
    head = file.read_bytes().split(b"\n\n", 1)[0].decode("latin-1")
    dates = [line[5:] for line in head.split("\n") if line.lower().startswith("date:")]
    date = email.utils.parsedate_tz(dates[0]) if dates else None
    return email.utils.mktime_tz(date) if date else 0


def compressed(content):
    """As one stream of its own."""
    return len(subprocess.run(["zstd", "-12", "-c"], input=content, capture_output=True, check=True).stdout)


def replay(bench):
    """The last 400 messages of SpamAssassin's lists come in the order of their dates, some in each session."""
    lists = [path for path in files_of(spamassassin()) if path.parent.name.startswith("easy-ham")]
    lists = [path for path in lists if b"\nlist-id:" in path.read_bytes().split(b"\n\n", 1)[0].lower()]
    lists.sort(key=lambda path: (sent_at(path), path))
    before, new = lists[:-REPLAYED], lists[-REPLAYED:]
    contents = [path.read_bytes() for path in new]
    raw = sum(map(len, contents))
    each, solid = sum(map(compressed, contents)), compressed(b"".join(contents))
    print(f"\n{REPLAYED} messages of lists after {len(before):,} others, {raw:,} B; as one stream of zstd -12 {solid / raw:.3f}")
    table = [["messages a session", "sessions", "kin, B", "a session", "by raw", "zstd -12 of each", "stream a session"]]
    for size in (1, 10, 200):
        kin = bench.pair(Kin, before)
        total = streams = 0
        progress(f"kin: {REPLAYED // size} sessions of {size}")
        for begin in range(0, REPLAYED, size):
            deliver(new[begin : begin + size], kin.here, 100_000 + begin)
            total += kin.sync()["bytes"]
            streams += compressed(b"".join(contents[begin : begin + size]))
        progress("")
        sessions = REPLAYED // size
        row = {
            "bytes": total,
            "bytes a session": total / sessions,
            "bytes by raw bytes": total / raw,
            "zstd of each by raw bytes": each / raw,
            "one stream a session by raw bytes": streams / raw,
            "one stream by raw bytes": solid / raw,
        }
        ratios = [f"{part / raw:.3f}" for part in (total, each, streams)]
        table.append([f"{size}", f"{sessions}", f"{total:,}", f"{total / sessions:,.0f}", *ratios])
        targets = [most(0.27, "bytes by raw bytes", "")] if size == 200 else []
        bench.judge(f"replay of lists, {size} messages a session", {"kin": row}, targets)
    print_table(table)


def mbox(bench):
    """199 messages of an mbox are marked as read."""
    files = spread(files_of(spamassassin() / "easy-ham-1"), 199)
    unread, read = bytearray(), bytearray()
    for number, file in enumerate(files):
        head, _, body = file.read_bytes().partition(b"\n\n")
        body = body.replace(b"\nFrom ", b"\n>From ")
        for box, status in (unread, b"O"), (read, b"RO"):
            line = f"From u{number}@example.org Thu Apr 14 00:{number // 60:02}:{number % 60:02} 2005\n".encode()
            box += line + head + b"\nStatus: " + status + b"\n\n" + body + b"\n"
    rows = {}
    for tool in bench.tools:
        if tool is Muchsync:
            continue
        bench.pairs += 1
        made = tool(bench.work / f"{bench.pairs}-{tool.name}")
        for store in (made.here, made.there):
            store.mkdir()
            (store / "box").write_bytes(unread)
        more = {}
        if tool is Kin:
            made.here, made.there, more = made.here / "box", made.there / "box", {"kind": "mbox"}
        made.sync(**more)
        box = made.here if tool is Kin else made.here / "box"
        box.write_bytes(read)
        rows[tool.name] = bench.sync(made, **more)
    bench.tell(f"an mbox of {len(unread):,} B, 199 marked as read", rows, [most(1500)])


def scan(bench):
    """Nothing has changed, or the directories look as if: then each name is looked at."""
    kin = known_small(bench, 100_000)
    kin.scan_seconds()  # directories that have changed just now are looked at once more
    quick = max(kin.scan_seconds() for _ in range(3))
    slow = max(kin.scan_seconds(touch=True) for _ in range(3))
    rows = {"kin": {"seconds": quick, "seconds, directories touched": slow}}
    bench.judge("scan of 100,000 unchanged messages", rows, [most(3, row, " s") for row in rows["kin"]])


def known_small(bench, count):
    bench.pairs += 1
    kin = Kin(bench.work / f"{bench.pairs}-kin")
    data = small_maildir(count)
    for store in (kin.here, kin.there):
        progress(f"{count:,} messages: linking")
        copy_maildir(data, store)
    progress(f"{count:,} messages: first sync")
    first = kin.sync()
    progress("")
    print(f"\n{count:,} messages, first sync of equal stores: {first['bytes']:,} B, {first['took, s']:.1f} s, peak {first['peak MiB']:.0f} MiB")
    return kin


def million(bench):
    kin = known_small(bench, 1_000_000)
    row = bench.sync(kin)
    bench.tell("1,000,000 messages, no change", {"kin": row}, [
        most(200), most(2, "turns", ""), most(PEAK_TARGET_MIB, "peak MiB", " MiB")
    ])
    print(f"  scan: {kin.scan_seconds():.2f} s; with directories touched: {kin.scan_seconds(touch=True):.2f} s")


CASES = {"changes": changes, "lost": lost, "new": new_mail, "replay": replay, "mbox": mbox, "scan": scan, "million": million}


def sync_arguments(parser):
    small = ",".join(name for name in CASES if name != "million")
    parser.add_argument("--cases", default=small, metavar="NAMES", help=f"of {','.join(CASES)}; or all (default %(default)s)")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="NAMES", help="or none (default %(default)s)")
    parser.add_argument("--slow", default="kin", metavar="NAMES", help="really go through the slow line; or none (default %(default)s)")
    parser.add_argument("--kin", metavar="PATH", help="default: build/release/kin, built from what is there")


def sync(options, work):
    names = list(CASES) if options.cases == "all" else options.cases.split(",")
    for name in names:
        if name not in CASES:
            raise BenchError(f"no such case: {name}; known are {', '.join(CASES)}, all")
    Kin.program = Path(options.kin).resolve() if options.kin else build_program("kin")
    bench = Bench(options, work)
    for name in names:
        CASES[name](bench)
        for place in work.iterdir():
            shutil.rmtree(place)
    print_targets(bench.verdicts)
    met = all(verdict["met"] for verdict in bench.verdicts)
    return {"benchmark": "sync", "cases": bench.report, "targets": bench.verdicts, "ok": met}
