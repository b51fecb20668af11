"""scripts/bench life: what a repository takes after a month of backups when a week is kept, and what prune costs."""

import json
import os
import random
import shutil
import subprocess
from datetime import datetime, timezone
from pathlib import Path

from bench_data import BUILD, BenchError, made_once, progress, write_file
from bench_measure import compare_trees, measure, stored_bytes
from bench_tools import Borg, Kin, Restic, choose_tools

DAYS = 30
KEPT_DAYS = 7
MOST_BEYOND_FRESH = 1.10
FIRST_DAY = 1_600_041_600  # 2020-09-14, at midnight in UTC
DAY = 86_400
HOUR = 3600

# -- data


def real_files(most_bytes):
    """Files that every machine with a compiler has, the same in each run on it."""
    size = 0
    for top in ("/usr/include", "/usr/share/perl", "/usr/share/python3", "/usr/share/doc"):
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                if path.is_symlink() or not path.is_file():
                    continue
                if size + path.stat().st_size > most_bytes:
                    return
                size += path.stat().st_size
                yield path


def first_day(tree, most_bytes):
    for path in real_files(most_bytes):
        write_file(tree / path.relative_to("/usr"), path.read_bytes(), FIRST_DAY)


def edit(content, generator):
    """Lines are changed, put in and taken out in a few places, as somebody who works on the file would."""
    lines = content.splitlines(keepends=True) or [b"\n"]
    for _ in range(generator.randint(1, 4)):
        at = generator.randrange(len(lines))
        line = lines[at].rstrip()
        new = [b"/* %d */ %s\n" % (generator.getrandbits(64), line) for _ in range(generator.randint(0, 6))]
        lines[at : at + generator.randint(0, 4)] = new
        lines = lines or [b"\n"]
    return b"".join(lines)


def next_day(tree, day):
    """Of a hundred files three are edited, one in 300 is new (like another), and goes, and gets another name."""
    generator = random.Random(f"kin bench life {day}")
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    mtime = FIRST_DAY + day * DAY
    for path in generator.sample(files, len(files) * 3 // 100):
        write_file(path, edit(path.read_bytes(), generator), mtime)
    some = generator.sample(files, len(files) // 300 * 3)
    for number, path in enumerate(some):
        if number % 3 == 0:
            write_file(path.with_name(f"{path.stem}-{day}{path.suffix}"), edit(path.read_bytes(), generator), mtime)
        elif number % 3 == 1:
            path.unlink()
        else:
            path.rename(path.with_name(f"{path.stem}-of-{day}{path.suffix}"))


def million_files():
    return made_once("million-v1", "the tree of 1,000,000 files", make_million_files)


def make_million_files(tree):
    """Small files of their own: 1,000 in each of 1,000 directories. As text, so that all tools compress it."""
    generator = random.Random("kin bench million 1")
    for folder in range(1000):
        (tree / f"{folder:03}").mkdir()
        for number in range(1000):
            with open(tree / f"{folder:03}" / f"{number:03}", "w") as out:
                out.write(f"{folder} {number} {generator.getrandbits(600):x}\n")


# -- how each tool does it


def command(tool, place, *words):
    """Of kin or restic, which are called alike."""
    return [tool.program, "-q", "-r", place.repo, "--cache-dir", place.cache, *words]


def backup(tool, place, tree, day):
    """At noon of that day."""
    date = datetime.fromtimestamp(FIRST_DAY + day * DAY + 12 * HOUR, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(tool, Kin):
        return command(tool, place, "backup", "--no-unpack", "--time", date, tree)
    if isinstance(tool, Restic):
        return command(tool, place, "backup", "--time", date, tree)
    return [tool.program, "create", *tool.options, "--timestamp", date.replace(" ", "T"), f"{place.repo}::{day}", tree]


def forget_and_prune(tool, place, *rule):
    """Two commands: after the first, only some snapshots are left; after the other, only what these need."""
    if isinstance(tool, Borg):
        return [[tool.program, "prune", *rule, place.repo], [tool.program, "compact", place.repo]]
    return [command(tool, place, "forget", *rule), command(tool, place, "prune", *(["--now"] * isinstance(tool, Kin)))]


class Place:
    """One tool's repository."""

    def __init__(self, tool, path):
        self.repo, self.cache = str(path / "repo"), str(path / "cache")
        path.mkdir()
        os.makedirs(self.cache)
        self.environment = {**tool.environment(self.cache), "TZ": "UTC"}
        self.cwd = str(path)
        self.run(tool.init(self.repo, self.cache))

    def run(self, command):
        return measure(command, self.environment, self.cwd)

    def mebibytes(self):
        return stored_bytes(self.repo) / (1 << 20)


def table(rows):
    names = list(rows)
    columns = list(rows[names[0]])
    print(f"  {'':12}" + "".join(f"{column:>22}" for column in columns))
    for name in names:
        print(f"  {name:12}" + "".join(f"{rows[name][column]:22.2f}" for column in columns), flush=True)


def verdict(text, value, most):
    met = value <= most
    print(f"{text}: {value:.2f}, at most {most:.2f}: {'met' if met else 'MISSED'}", flush=True)
    return met


# -- cases


def snapshots_of(tool, place):
    """kin's, the oldest first."""
    words = [tool.program, "--json", "-r", place.repo, "--cache-dir", place.cache, "snapshots"]
    environment = {**os.environ, **place.environment}
    out = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in out.splitlines()]
    return sorted((row for row in rows if "id" in row), key=lambda row: row["time"])


def count_equal(tool, place, tree, days, work):
    """How many of the snapshots restore to what the tree was on their day; and how many there are."""
    snapshots, equal = snapshots_of(tool, place), 0
    for number, snapshot in enumerate(snapshots):
        progress(f"daily: restoring {number + 1} of {len(snapshots)}")
        target = work / f"back-{tool.name}-{number}"
        place.run(command(tool, place, "restore", snapshot["id"], "-t", str(target)))
        same = compare_trees(days / str(DAYS - KEPT_DAYS + number), target / tree.relative_to("/"))
        equal += same["equal"]
        if not same["equal"]:
            print(same["summary"])
    progress("")
    return equal, len(snapshots)


def daily(options, tools, work):
    """A month of days, of which a week is kept; beside repositories that only ever had that week."""
    tree, days = work / "tree", work / "days"
    tree.mkdir()
    days.mkdir()
    first_day(tree, options.megabytes * 1_000_000)
    files = sum(1 for path in tree.rglob("*") if path.is_file())
    print(f"daily: {files:,} files of {options.megabytes} MB, {DAYS} days, {KEPT_DAYS} kept", flush=True)
    places = {tool.name: Place(tool, work / f"all-{tool.name}") for tool in tools}
    fresh = {tool.name: Place(tool, work / f"new-{tool.name}") for tool in tools}
    for day in range(DAYS):
        if day > 0:
            next_day(tree, day)
        progress(f"daily: day {day + 1} of {DAYS}")
        is_kept = day >= DAYS - KEPT_DAYS
        for tool in tools:
            for place in (places[tool.name], *((fresh[tool.name],) if is_kept else ())):
                place.run(backup(tool, place, str(tree), day))
        if is_kept:
            subprocess.run(["cp", "-a", str(tree), str(days / str(day))], check=True)
    rows = {}
    for tool in tools:
        place = places[tool.name]
        before = place.mebibytes()
        progress(f"daily: {tool.name} prunes")
        forget, prune = map(place.run, forget_and_prune(tool, place, "--keep-daily", str(KEPT_DAYS)))
        rows[tool.name] = {
            "30 days, MiB": before,
            "7 kept, MiB": place.mebibytes(),
            "fresh 7, MiB": fresh[tool.name].mebibytes(),
            "forget, s": forget["s"],
            "prune, s": prune["s"],
            "prune, peak MiB": prune["peak MiB"],
        }
    progress("")
    table(rows)
    ok = True
    for tool in tools:
        if not isinstance(tool, Kin):
            continue
        row, place = rows[tool.name], places[tool.name]
        ok &= verdict(f"{tool.name}: kept, beside fresh", row["7 kept, MiB"] / row["fresh 7, MiB"], MOST_BEYOND_FRESH)
        equal, count = count_equal(tool, place, tree, days, work)
        print(f"{tool.name}: {equal} of {count} snapshots restored exactly", flush=True)
        ok &= equal == count == KEPT_DAYS
    return {"rows": rows, "ok": ok}


def million(options, tools, work):
    """Half of a million files go."""
    source = million_files()
    tree = work / "million"
    progress("million: copying the tree")
    subprocess.run(["cp", "-a", str(source), str(tree)], check=True)
    print("million: 1,000,000 files, 500,000 of them gone in the second snapshot, which is kept", flush=True)
    places = {tool.name: Place(tool, work / f"million-{tool.name}") for tool in tools}
    for day in (0, 1):
        for tool in tools:
            progress(f"million: {tool.name}: backup {day + 1} of 2")
            place = places[tool.name]
            place.run(backup(tool, place, str(tree), day))
        if day == 0:
            for folder in range(0, 1000, 2):
                shutil.rmtree(tree / f"{folder:03}")
    rows = {}
    for tool in tools:
        place = places[tool.name]
        before = place.mebibytes()
        progress(f"million: {tool.name} prunes")
        forget, prune = map(place.run, forget_and_prune(tool, place, "--keep-last", "1"))
        rows[tool.name] = {
            "before, MiB": before,
            "after, MiB": place.mebibytes(),
            "forget, s": forget["s"],
            "prune, s": prune["s"],
            "prune, CPU s": prune["CPU s"],
            "prune, peak MiB": prune["peak MiB"],
        }
    progress("")
    table(rows)
    ok = True
    for tool in tools:
        if isinstance(tool, Kin) and "restic" in rows:
            for what in ("prune, s", "prune, peak MiB"):
                ok &= verdict(f"{tool.name}: {what}, beside restic's", rows[tool.name][what] / rows["restic"][what], 1)
    return {"rows": rows, "ok": ok}


CASES = {"daily": daily, "million": million}


def life_arguments(parser):
    parser.add_argument("--cases", default="all", metavar="NAMES", help=f"of {','.join(CASES)}; or all")
    parser.add_argument("--megabytes", type=int, default=100, metavar="N", help="of real files, in daily (default 100)")
    parser.add_argument("--kin", default=str(BUILD / "release/kin"), metavar="PATH")
    parser.add_argument("--compare", metavar="KIN_OLD", help="a second kin binary, as a peer")
    parser.add_argument("--peers", default="restic,borg", metavar="NAMES", help="of restic,borg,borg-zstd; or none")


def life(options, work):
    tools = choose_tools(options)
    names = list(CASES) if options.cases == "all" else options.cases.split(",")
    for name in names:
        if name not in CASES:
            raise BenchError(f"no such case: {name}; known are {', '.join(CASES)}, all")
    versions = {tool.name: tool.version() for tool in tools}
    for name, version in versions.items():
        print(f"  {name}: {version}")
    print(f"load average {os.getloadavg()[0]:.1f} at the start; all encrypted")
    cases = {name: CASES[name](options, tools, work) for name in names}
    return {"benchmark": "life", "versions": versions, "cases": cases, "ok": all(case["ok"] for case in cases.values())}
