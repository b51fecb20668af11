"""Deflate streams of many producers: do they come back, what does that take, and how fast is it beside zlib?

A case is one producer at one level, or a directory of files that are there. Groups of cases are held to
targets, each by its worst case; what all of a group together reach is printed too. Speeds are of one core, in
plain bytes. "Proven" is the way of containers from 8 MiB on: each piece is rebuilt with a search of its own
before it is handed out, and this is what the target for opening is for. "Replayed" is the way of smaller ones:
opened without that search, then rebuilt as a whole and compared.
"""

import statistics
from dataclasses import dataclass

from bench_data import npm_archives, progress, stream_content
from bench_measure import print_table, ratio
from bench_producers import callers_of_zlib, others, relatives_of_gzip
from bench_programs import build_program, run_program
from bench_targets import Target, judge

PROGRAM = "deflate_bench"
COUNTS = ("streams", "exact", "plain", "deflated", "corrections")
TIMES = ("proven s", "replayed s", "rebuild s", "zlib s")


@dataclass
class Case:
    name: str
    files: list
    level: int
    memory: int = 8


@dataclass
class Group:
    name: str
    most_corrections: float  # in % of the deflated bytes
    cases: list
    held_to_speed: bool = False


def produce(producers, content, work):
    """The cases of those that are installed."""
    cases = []
    for producer in producers:
        if not producer.installed():
            print(f"skipped: {producer.name} ({producer.command[0]} is not installed)")
            continue
        progress(f"streams: compressing by {producer.name}")
        path = work / f"{producer.name.replace(' ', '-')}.deflated"
        producer.write(content / ("small" if producer.slow else "content"), path)
        cases.append(Case(producer.name, [path], producer.level, producer.memory))
    return cases


def directories(tree, level):
    """A case for each directory in it."""
    return [Case(path.name, sorted(path.iterdir()), level) for path in sorted(tree.iterdir()) if path.is_dir()]


def make_groups(options, work):
    content = stream_content()
    groups = [
        Group("zlib and its callers", 0.05, produce(callers_of_zlib(), content, work), held_to_speed=True),
        Group("gzip, Info-ZIP, pigz", 0.1, produce(relatives_of_gzip(), content, work)),
        Group("npm", 0.5, directories(npm_archives(), 9)),
    ]
    if options.office:
        groups.append(Group("office", 2, directories(options.office, 6)))
    groups.append(Group("other encoders", 9, produce(others(), content, work)))
    return [group for group in groups if group.cases]


def run_case(program, case):
    """One round: the sums over the case's files."""
    settings = ["--level", str(case.level), "--memory", str(case.memory)]
    rows = run_program(program, *settings, *map(str, case.files), show=False)
    return {column: sum(row[column] for row in rows) for column in COUNTS + TIMES}


def percent(part, whole):
    return 100 * ratio(part, whole)


def speeds(sums):
    """MB/s of plain bytes."""
    return {name.removesuffix(" s"): sums["plain"] / 1e6 / max(sums[name], 1e-6) for name in TIMES}


def as_measurements(sums):
    """In the shape that judge() takes: kin's rows, and zlib's of the same names."""
    rates = speeds(sums)
    rows = {"open, proven, MB/s": rates["proven"], "rebuild, MB/s": rates["rebuild"]}
    return {
        "kin": {
            **rows,
            "exact, %": percent(sums["exact"], sums["streams"]),
            "corrections, %": percent(sums["corrections"], sums["deflated"]),
        },
        "zlib": {row: rates["zlib"] for row in rows},
    }


def judge_group(group, results):
    """Each target by the case that is worst at it."""
    targets = [
        Target("exact, %", 100, least=True, unit=" %"),
        Target("corrections, %", group.most_corrections, unit=" %"),
    ]
    if group.held_to_speed:
        targets.append(Target("rebuild, MB/s", 0.8, "zlib", least=True))
        targets.append(Target("open, proven, MB/s", 0.4, "zlib", least=True))
    verdicts = []
    for target in targets:
        judged = [judge(f"{group.name}, worst {name}", as_measurements(sums), [target])[0]
                  for name, sums in results.items()]  # fmt: skip
        verdicts.append((min if target.least else max)(judged, key=lambda verdict: verdict["reached"]))
    return verdicts


def table_row(name, sums):
    rates = speeds(sums)
    cells = [name, f"{sums['streams']:.0f}", f"{percent(sums['exact'], sums['streams']):.2f} %"]
    cells += [f"{sums['plain'] / 1e6:.1f}", f"{percent(sums['corrections'], sums['deflated']):.4f} %"]
    cells.append(f"{rates['zlib']:.1f}")
    for way in "proven", "replayed", "rebuild":
        cells += [f"{rates[way]:.1f}", f"{ratio(rates[way], rates['zlib']):.2f}x"]
    return cells


def print_group(group, results, total):
    heads = ["streams", "exact", "plain MB", "corrections", "zlib MB/s", "open, proven", "/zlib"]
    table = [[group.name, *heads, "open, replayed", "/zlib", "rebuild", "/zlib"]]
    table += [table_row(name, sums) for name, sums in results.items()]
    table.append(table_row("all together", total))
    print_table(table)


def streams(options, work):
    """Measures all groups, and prints a table for each. What --json writes of it, with verdicts."""
    program = options.deflate_bench or build_program(PROGRAM)
    groups = make_groups(options, work)
    rounds = {(group.name, case.name): [] for group in groups for case in group.cases}
    for number in range(options.runs):
        for group in groups:
            for case in group.cases:
                progress(f"streams: round {number + 1} of {options.runs}: {case.name}")
                rounds[group.name, case.name].append(run_case(program, case))
    progress("")
    report, verdicts = {}, []
    for group in groups:
        results = {case.name: median_sums(rounds[group.name, case.name]) for case in group.cases}
        total = {column: sum(sums[column] for sums in results.values()) for column in COUNTS + TIMES}
        print_group(group, results, total)
        verdicts += judge_group(group, results)
        report[group.name] = {"cases": results, "together": total}
    exact = all(group["together"]["exact"] == group["together"]["streams"] for group in report.values())
    return {"groups": report, "targets": verdicts, "ok": exact}


def median_sums(rounds):
    return {column: statistics.median(sums[column] for sums in rounds) for column in rounds[0]}
