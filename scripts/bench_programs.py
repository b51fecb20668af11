"""The programs of tests/bench: built on demand, and what they print as rows."""

import subprocess

from bench_data import BUILD, BenchError


def build_program(name):
    """The program, built from what is there now."""
    build = ["cmake", "--build", "--preset", "release", "--target", name]
    for command in (["cmake", "--preset", "release"], build):
        result = subprocess.run(command, cwd=BUILD.parent, capture_output=True, text=True)
        if result.returncode != 0:
            raise BenchError(f"{' '.join(command)}:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    return BUILD / "release" / name


def run_program(program, *arguments, show=True):
    """It prints a table, whose rows this gives, and remarks. Those are shown in any case."""
    process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True)
    rows, columns = [], None
    for line in process.stdout:
        cells = [cell.strip() for cell in line.split("  ") if cell.strip()]
        is_row = columns is not None and len(cells) == len(columns)
        if show or columns is not None and not is_row:
            print(line, end="", flush=True)
        if columns is None:
            columns = cells
        elif is_row:
            rows.append(dict(zip(columns, map(number_or_text, cells))))
    if process.wait() != 0 or not rows:
        raise BenchError(f"{program} failed")
    return rows


def number_or_text(cell):
    try:
        return float(cell)
    except ValueError:
        return cell
