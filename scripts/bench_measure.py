"""Rounds of backups and restores, timed, and printed as tables. The rules are in scripts/bench."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_data import BenchError, progress

COMPARE_TREES = Path(__file__).resolve().parent / "compare_trees"


def warm(path):
    """Reads all of it into the page cache. Returns the count of files and of bytes."""
    files = size = 0
    for top, _, names in os.walk(path):
        for name in names:
            file = os.path.join(top, name)
            if os.path.isfile(file) and not os.path.islink(file):
                with open(file, "rb", buffering=0) as stream:
                    while chunk := stream.read(1 << 20):
                        size += len(chunk)
                files += 1
    return files, size


def stored_bytes(path):
    return sum(os.lstat(os.path.join(top, name)).st_size for top, _, names in os.walk(path) for name in names)


def measure(command, environment, cwd, said=os.devnull):
    """Runs one command; wall and CPU seconds and peak memory in MiB. What it says goes to the file `said`."""
    os.sync()
    with tempfile.TemporaryFile() as errors, open(said, "wb") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)  # else Popen waits for it once more
        if process.returncode != 0:
            errors.seek(0)
            tail = errors.read()[-2000:].decode(errors="replace")
            raise BenchError(f"{' '.join(command)}: exit status {process.returncode}\n{tail}")
    return {"s": seconds, "CPU s": usage.ru_utime + usage.ru_stime, "peak MiB": usage.ru_maxrss / 1024}


def said_file(turn, step):
    """What a tool said in one step of a turn."""
    return turn / f"{step}.said"


def turn_directory(work, data_name, number, tool):
    return work / f"{data_name}-{number}-{tool.name}"


def run_turn(tool, steps, data, work, title):
    """One tool's turn of a round. Returns ({row: value}, the directory it restored to)."""
    repo, cache, target = (str(work / part) for part in ("repo", "cache", "restored"))
    os.makedirs(cache)
    os.makedirs(target)
    environment = tool.environment(cache)
    measure(tool.init(repo, cache), environment, target)
    commands = {
        "first backup": tool.backup(repo, cache, str(data), "first"),
        "second backup": tool.backup(repo, cache, str(data), "second"),
        "restore": tool.restore(repo, cache, target, "first"),  # the second has the same content
    }
    rows = {}
    for step in steps:
        progress(f"{title}: {step}")
        for unit, value in measure(commands[step], environment, target, said_file(work, step)).items():
            rows[f"{step}, {unit}"] = value
        if step == "first backup":
            rows["stored, MiB"] = stored_bytes(repo) / (1 << 20)
    return rows, Path(target)


def run_rounds(name, data, tools, steps, runs, work):
    """All rounds on one data set, printed as a table. Returns what --json writes of them."""
    values = {tool.name: [] for tool in tools}
    verdict = None
    for number in range(runs):
        for tool in tools:
            # Kept until the end: ext4 does not reuse an inode for half a minute after it was freed, and
            # searching past thousands of those costs whoever creates files next several times what creating
            # them does.
            turn = turn_directory(work, name, number, tool)
            turn.mkdir()
            os.sync()
            # For each: what the tools before have written may have taken the place of the data in the system's
            # cache, and who comes first would read it from disk for those that follow.
            progress(f"{name}: reading it once")
            files, size = warm(data)
            title = f"{name}: round {number + 1} of {runs}: {tool.name}"
            rows, restored = run_turn(tool, steps, data, turn, title)
            values[tool.name].append(rows)
            if tool.name == "kin" and verdict is None:
                progress(f"{name}: comparing what kin restored")
                verdict = compare_trees(data, restored / data.relative_to("/"))
    progress("")
    medians = {tool: median_rows(turns) for tool, turns in values.items()}
    print_measurements(f"{name}: {files} files, {size / 1e6:.1f} MB ({size / (1 << 20):.1f} MiB)", medians)
    if runs > 1:
        print(f"widest spread between rounds: {widest_spread(values)}")
    if verdict is not None:
        print(f"kin's restore: {verdict['summary']}", flush=True)
    return {"files": files, "bytes": size, "medians": medians, "values": values, "restore": verdict}


def median_rows(turns):
    return {row: statistics.median(turn[row] for turn in turns) for row in turns[0]}


def widest_spread(values):
    """How far to trust the ratios: one between two tools says nothing when one tool alone varies as much."""
    spreads = []
    for tool, turns in values.items():
        for row in turns[0]:
            lowest, highest = (bound(turn[row] for turn in turns) for bound in (min, max))
            spreads.append((highest / max(lowest, 1e-9), f"{tool}, {row}: {lowest:.2f} to {highest:.2f}"))
    return max(spreads)[1]


def compare_trees(original, restored):
    command = [sys.executable, COMPARE_TREES, original, restored]
    result = subprocess.run(command, capture_output=True, text=True)
    lines = (result.stdout + result.stderr).splitlines() or ["compare_trees said nothing"]
    shown = lines if len(lines) <= 11 else [*lines[:10], "...", lines[-1]]
    return {"equal": result.returncode == 0, "summary": "\n  ".join(shown)}


def ratio(value, other):
    return value / max(other, 1e-9)


def print_measurements(title, medians):
    """A row per measurement: each tool's median, then kin's ratio to each other tool; lower is better."""
    tools = list(medians)
    others = tools[1:] if tools[0] == "kin" else []
    table = [[title, *tools, *(f"kin/{other}" for other in others)]]
    for row in medians[tools[0]]:
        cells = [row, *(f"{medians[tool][row]:.2f}" for tool in tools)]
        for other in others:
            kin_to_other = ratio(medians["kin"][row], medians[other][row])
            cells.append(f"{kin_to_other:.2f}" + (" behind" if kin_to_other > 1 else ""))
        table.append(cells)
    print_table(table)


def print_table(table):
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    print()
    for line in table:
        first, *rest = (cell.rjust(width) for cell, width in zip(line, widths))
        print("  ".join([first.strip().ljust(widths[0]), *rest]).rstrip())
