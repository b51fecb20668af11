"""scripts/bench containers: what it brings to open archives, documents and mail, and what it takes.

Its parts: `streams` is in bench_streams.py. The others are backups and restores of containers, kin with its
defaults, so that it opens them:
- npm, office and mailbox beside restic, by what is stored;
- debian and gz, all packages and all .gz files that this machine has: do they come back exactly, and how many
  are opened?
- big, one tar.gz of any size: does memory stay bounded?
"""

import collections
import json
import os
from pathlib import Path

from bench_container_data import big_archive, debian_packages, gz_files, mailbox_of
from bench_data import BenchError, npm_archives
from bench_measure import print_table, run_rounds, said_file, turn_directory
from bench_streams import streams
from bench_targets import Target, judge, print_targets
from bench_tools import Kin

STEPS = ("first backup", "restore")
OFFICE_VARIABLE = "KIN_BENCH_OFFICE"
NO_OFFICE = f"no directory of documents; --office DIR or {OFFICE_VARIABLE} names one"
BIG_PEAK_MIB = 512

PARTS = ("streams", "npm", "office", "mailbox", "debian", "gz", "big")
BESIDE_RESTIC = {"npm": 0.25, "office": 0.25, "mailbox": 0.30}


def targets(name):
    if name in BESIDE_RESTIC:
        return [Target("stored, MiB", BESIDE_RESTIC[name], "restic")]
    if name == "big":
        return [Target(f"{step}, peak MiB", BIG_PEAK_MIB, unit=" MiB") for step in STEPS]
    return []


def containers_arguments(parser):
    office_help = f"documents in versions, a directory for each document (default ${OFFICE_VARIABLE})"
    parser.add_argument("--office", default=os.environ.get(OFFICE_VARIABLE), metavar="DIR", help=office_help)
    big_help = "also one tar.gz of so many plain bytes, 10G by default; it takes long"
    parser.add_argument("--big", nargs="?", const="10G", metavar="SIZE", help=big_help)
    program_help = "take this program of tests/bench instead of building it"
    parser.add_argument("--deflate-bench", metavar="PATH", help=program_help)


def choose_parts(options):
    """In the order of PARTS. The big one takes long, so "all" does not mean it."""
    names = PARTS[:-1] if options.data == "all" else options.data.split(",")
    for name in names:
        if name not in PARTS:
            raise BenchError(f"no such data: {name}; known are {', '.join(PARTS)}, all")
    if options.big:
        names = {*names, "big"}
    return [name for name in PARTS if name in names]


def make_data(name, options, work):
    """The part's directory."""
    if name == "npm":
        return npm_archives()
    if name == "office":
        return options.office
    if name == "mailbox":
        return mailbox_of(options.office, work / "mailbox-data")
    if name == "debian":
        return debian_packages(work / "debian-data")
    if name == "gz":
        return gz_files(work / "gz-data")
    return big_archive(parse_size(options.big or "10G"), work / "big-data")


def parse_size(text):
    try:
        factor = {"M": 10**6, "G": 10**9}[text[-1]]
        return int(float(text[:-1]) * factor)
    except (KeyError, ValueError):
        raise BenchError(f"no size: {text}; such as 500M or 10G") from None


def measure_part(name, tools, options, work):
    if name in ("office", "mailbox") and not options.office:
        print(f"\nskipped: {name} ({NO_OFFICE})")
        return None
    if name not in BESIDE_RESTIC:
        tools = [tool for tool in tools if isinstance(tool, Kin)]
    if not tools:
        print(f"\nskipped: {name} (without kin)")
        return None
    runs = 1 if name == "big" else options.runs
    data = make_data(name, options, work)
    report = run_rounds(name, data, tools, STEPS, runs, work)
    if tools[0].name == "kin":
        report["containers"] = containers_of(turn_directory(work, name, 0, tools[0]))
        print_containers(report["containers"])
    return report


def containers_of(turn):
    """What kin said of them when it was done."""
    lines = said_file(turn, STEPS[0]).read_text().splitlines()
    return json.loads(lines[-1])["containers"]


def print_containers(containers):
    """A row for each type: how many were opened; below, why others were not."""
    opened, closed = containers["opened"], collections.Counter()
    for row in containers["closed"]:
        closed[row["type"]] += row["count"]
    table = [["containers, at all levels", "opened", "stayed closed", "share opened"]]
    for kind in sorted({*opened, *closed}):
        count = opened.get(kind, 0)
        share = 100 * count / (count + closed[kind])
        table.append([kind, str(count), str(closed[kind]), f"{share:.2f} %"])
    print_table(table)
    for row in containers["closed"]:
        print(f"  {row['type']}, {row['reason']}: {row['count']}")


def containers(options, tools, report, work):
    """Adds to the report for --json."""
    if options.office:
        options.office = Path(options.office).resolve()
        if not options.office.is_dir():
            raise BenchError(f"no directory: {options.office}")
    chosen = choose_parts(options)
    report["targets"], report["data"], exact = [], {}, True
    for name in chosen:
        if name == "streams":
            report["streams"] = streams(options, work)
            report["targets"] += report["streams"].pop("targets")
            exact &= report["streams"]["ok"]
        elif part := measure_part(name, tools, options, work):
            report["data"][name] = part
            report["targets"] += judge(name, part["medians"], targets(name))
            exact &= part["restore"] is None or part["restore"]["equal"]
    if report["targets"]:
        print_targets(report["targets"])
    report["ok"] = exact
    return report
