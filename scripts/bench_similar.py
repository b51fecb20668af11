"""scripts/bench similar: what the detectors of similar files do, beside their papers and Debian's simhash.

Every part makes its own data, from what the machine has below /usr/share, or from mail that is fetched; the random
ones are seeded. CPU time is the children's own (wait4), so that it does not depend on what else the machine does.
"""

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import tarfile
import time
from pathlib import Path

from bench_container_data import gather
from bench_data import BUILD, BenchError, made_once, progress, spamassassin, write_file
from bench_programs import build_program, run_program

KIN = BUILD / "release/kin"


def run(*command, ok=(0,), **more):
    """Output, wall seconds, and user and system seconds of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    result = subprocess.run([str(part) for part in command], capture_output=True, **more)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode not in ok:
        raise BenchError(f"{' '.join(map(str, command[:4]))} ...: {result.stderr[-500:].decode(errors='replace')}")
    return result.stdout, wall, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime


def json_lines(*command, ok=(0, 3)):
    return [json.loads(line) for line in run(KIN, "--json", *command, ok=ok)[0].splitlines()]


def real_files(least, most, count):
    """Regular files of /usr/share by size, spread evenly over it."""
    found = []
    for top, directories, names in os.walk("/usr/share"):
        directories.sort()
        for name in sorted(names):
            path = Path(top) / name
            if path.is_file() and not path.is_symlink() and least <= path.stat().st_size <= most:
                found.append(path)
    if len(found) < count:
        raise BenchError(f"/usr/share has {len(found)} files of {least} to {most} bytes, and {count} are needed")
    return [found[i * len(found) // count] for i in range(count)]


def verdict(text, met):
    print(f"{text}: {'met' if met else 'missed'}", flush=True)
    return met


# -- simhash: beside Debian's


def simhash(work):
    if shutil.which("simhash") is None:
        raise BenchError("simhash is not installed; scripts/setup --tests installs it")
    here = work / "simhash"
    here.mkdir()
    names = []
    for number, path in enumerate(real_files(1024, 1 << 20, 2000)):
        shutil.copy(path, here / str(number))
        names.append(str(number))
    total = sum((here / name).stat().st_size for name in names)
    print(f"simhash: {len(names)} files of /usr/share, {total / 1e6:.1f} MB")
    rows, same = [], {}

    def fastest(*command):
        """Of three turns, the one with the least user time."""
        return min((run(*command, cwd=here) for _ in range(3)), key=lambda turn: turn[2])

    def both(mode, arguments):
        theirs = fastest("simhash", *arguments)
        if mode == "-w":
            kept = {name: (here / f"{name}.sim").read_bytes() for name in names}
            for name in names:
                (here / f"{name}.sim").unlink()
        ours = fastest(KIN, "simhash", "-j1", *arguments)
        same[mode] = theirs[0] == ours[0]
        if mode == "-w":
            same[mode] = kept == {name: (here / f"{name}.sim").read_bytes() for name in names}
        rows.append((mode, theirs, ours))

    both("-w", ["-w", *names])
    both("-m", ["-m", *names])
    same["hash"] = same["-c"] = True
    for number, name in enumerate(names):
        if number % 100 == 0:
            progress(f"simhash, file by file: {number}")
        same["hash"] &= run("simhash", name, cwd=here)[0] == run(KIN, "simhash", name, cwd=here)[0]
        pair = [f"{name}.sim", f"{names[number - 1]}.sim"]
        same["-c"] &= run("simhash", "-c", *pair, cwd=here)[0] == run(KIN, "simhash", "-c", *pair, cwd=here)[0]
    progress("")
    large = here / "large"
    large.write_bytes(b"".join((here / name).read_bytes() for name in names))
    both("one large file", [str(large)])
    print(f"{'':<16}{'simhash: wall':>14}{'user':>8}{'system':>8}{'kin: wall':>12}{'user':>8}{'system':>8}{'times, user':>13}")
    ratios = []
    for mode, theirs, ours in rows:
        ratios.append(theirs[2] / max(ours[2], 1e-3))
        print(
            f"{mode:<16}{theirs[1]:>14.2f}{theirs[2]:>8.2f}{theirs[3]:>8.2f}"
            f"{ours[1]:>12.2f}{ours[2]:>8.2f}{ours[3]:>8.2f}{ratios[-1]:>13.1f}"
        )
    ok = verdict(f"the same bytes in all modes ({', '.join(f'{mode} {value}' for mode, value in same.items())})", all(same.values()))
    return verdict(f"at least 10 times its speed, by user time: {min(ratios):.1f}", min(ratios) >= 10) and ok


# -- sif: the paper's experiment


def sif(work):
    here = work / "sif"
    here.mkdir()
    files = real_files(1024, 200_000, 4500)
    for number, path in enumerate(files):
        shutil.copy(path, here / f"{number}{path.suffix}")
    # A C file of about 30 KB: one of the system's headers, or of kin itself.
    sources = [p for p in Path("/usr/include").rglob("*.h") if p.is_file() and 25_000 <= p.stat().st_size <= 35_000]
    if not sources:
        raise BenchError("no C file of 30 KB below /usr/include")
    source = min(sorted(sources), key=lambda p: (abs(p.stat().st_size - 30_000), p))
    shutil.copy(source, here / "program.h")
    content = source.read_bytes()
    seen, right = [], 0
    for seed in range(50):
        progress(f"sif: turn {seed + 1} of 50")
        chance = random.Random(seed)
        changed = bytearray(content)
        for _ in range(300):
            at = chance.randrange(len(changed) - 50)
            changed[at : at + 50] = bytes(chance.choices(range(32, 127), k=50))
        (work / "changed.h").write_bytes(changed)
        lines = json_lines("similar", "--method", "sif", "--min-similarity", "5", "--no-delta", work / "changed.h", here)
        found = [line for line in lines if line["message_type"] == "similar_file"]
        if [Path(line["path"]).name for line in found] == ["program.h"]:
            right += 1
        seen += [line["similarity"] for line in found if line["path"].endswith("/program.h")]
    progress("")
    total = sum(path.stat().st_size for path in files)
    print(f"sif: {source.name} ({len(content)} bytes) with 300 substitutions of 50 bytes, among {len(files)} files, {total / 1e6:.0f} MB")
    if seen:
        print(f"  similarity {100 * min(seen):.0f} to {100 * max(seen):.0f} %, mean {100 * statistics.mean(seen):.0f} % (the paper: 37 to 62 %, mean 52 %)")
    return verdict(f"it is found, and only it, in {right} of 50", right == 50)


# -- SimiHash: figures 6 and 7

KEYS = ("simihash-uniform", "simihash-uniform-suffix", "simihash-skew", "simihash")


def simihash(work):
    similar_set, different = work / "similar", work / "different"
    similar_set.mkdir()
    different.mkdir()
    chance = random.Random(1)
    content = bytearray(chance.randbytes(4096))
    for number in range(1000):
        (similar_set / f"{number:04}.bin").write_bytes(content)
        for _ in range(4):
            content[chance.randrange(4096)] = chance.randrange(256)
    whole = work / "whole"
    whole.mkdir()
    for number, path in enumerate(real_files(4096, 1 << 20, 10_000)):
        data = path.read_bytes()
        (whole / f"{number}{path.suffix}").write_bytes(data)
        (different / f"{number}{path.suffix}").write_bytes(data[:4096])
    print("SimiHash: sum-table hits per key hit (figure 6), and hits per million pairs (figure 7)")
    print(f"{'key':<26}{'1,000 similar, 4 KB':>22}{'10,000 real, cut to 4 KB':>27}{'10,000 real: key hits':>24}{'table hits':>12}{'ratio':>8}")
    for key in KEYS:
        cells = []
        for directory in (similar_set, different, whole):
            summary = json_lines("groups", "--method", key, "--min-similarity", "0", directory)[-1]
            cells.append((summary["candidates"], summary["matches"], summary["files"]))
        ratio = [matches / max(1, candidates) for candidates, matches, _ in cells]
        candidates, matches, files = cells[2]
        millions = files * (files - 1) / 2 / 1e6
        print(f"{key:<26}{ratio[0]:>22.3f}{ratio[1]:>27.3f}{candidates / millions:>24.0f}{matches / millions:>12.0f}{ratio[2]:>8.3f}")
    return True


# -- PAS, EPAS and TSA on data that is appended and inserted


def sampling(work):
    chance = random.Random(2)
    changes = {
        "5 KB appended": lambda data, more: data + more,
        "5 KB inserted in front": lambda data, more: more + data,
        "5 KB inserted in the middle": lambda data, more: data[: len(data) // 2] + more + data[len(data) // 2 :],
        "20 bytes changed": lambda data, more: data[:1000] + more[:20] + data[1020:],
    }
    print("detection of 30 files of 1 MB each, similarity of at least 50 %")
    print(f"{'':<30}{'tsa':>8}{'pas':>8}{'epas':>8}")
    files = [chance.randbytes(1_000_000 + chance.randrange(100_000)) for _ in range(30)]
    rates = {}
    for name, change in changes.items():
        for method in ("tsa", "pas", "epas"):
            hits = 0
            for data in files:
                (work / "a").write_bytes(data)
                (work / "b").write_bytes(change(data, chance.randbytes(5000)))
                hits += json_lines("compare", "--method", method, work / "a", work / "b")[-1]["similarity"] >= 0.5
            rates[name, method] = hits / len(files)
        print(f"{name:<30}" + "".join(f"{100 * rates[name, method]:>6.0f} %" for method in ("tsa", "pas", "epas")), flush=True)
    better = rates["5 KB appended", "pas"] > rates["5 KB appended", "tsa"]
    return verdict("pas finds more than tsa of what was appended to", better)


# -- all against all


def mails():
    """20,000 messages: SpamAssassin's 6,046, and answers that quote a part of them."""
    return made_once("mails-20000-v1", "20,000 mails", make_mails)


def make_mails(tree):
    originals = sorted(path for path in spamassassin().rglob("*") if path.is_file())
    chance = random.Random(3)
    for number in range(20_000):
        content = originals[number % len(originals)].read_bytes()
        if number >= len(originals):
            lines = content.split(b"\n\n", 1)[-1].split(b"\n")
            begin = chance.randrange(max(1, len(lines) // 2))
            words = b" ".join(chance.choices(content.split() or [b"yes"], k=60))
            head = f"Message-ID: <{chance.getrandbits(64):x}@example.org>\nFrom: u{chance.randrange(500)}@example.org\n\n".encode()
            content = head + words + b"\n\n" + b"\n".join(b"> " + line for line in lines[begin : begin + 40]) + b"\n"
        write_file(tree / f"{number % 100:02}" / str(number), content, 1_600_000_000 + number)


def growth(work):
    ok = True
    print("all against all by features, one core: every other file, and all")
    # Time goes by files as well as by bytes, so that the half has to be one of both. Half of the directories are not:
    # every other one of /usr/share had a fifth of its files and a third of its bytes.
    for name, directory in (("20,000 mails", mails()), ("/usr/share", Path("/usr/share"))):
        files = sorted(path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
        rows = []
        for step in (2, 1):
            place = gather(files[::step], directory, work / f"{directory.name}-{step}")
            lines = json_lines("groups", place)  # also reads the data once before
            turns = [run(KIN, "-j1", "-q", "groups", place, "--html", work / "page.html", ok=(0, 3)) for _ in range(3)]
            seconds = statistics.median(turn[2] + turn[3] for turn in turns)
            rows.append((lines[-1]["files"], lines[-1]["bytes"], seconds, lines[-1]["similar_groups"]))
        for files, size, seconds, groups in rows:
            print(f"  {name:<14}{files:>8} files{size / 1e6:>9.1f} MB{seconds:>8.2f} s{size / 1e6 / seconds:>8.0f} MB/s{groups:>7} groups")
        faster = (rows[1][2] / rows[0][2]) / (rows[1][1] / rows[0][1])
        ok &= verdict(f"  {name}: time grows {faster:.2f} times as fast as the data, at most 1.3", faster <= 1.3)
        speed = rows[1][1] / 1e6 / rows[1][2]
        ok &= verdict(f"  {name}: {speed:.0f} MB/s, at least 100", speed >= 100)
    return ok


# -- one against a repository


def texts(count):
    """A tar of so many texts of some hundred bytes, of random words, in pieces."""
    chance = random.Random(4)
    words = [bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz", k=chance.randrange(3, 9))) for _ in range(50_000)]
    for number in range(count):
        content = b" ".join(chance.choices(words, k=120))
        member = tarfile.TarInfo(f"{number // 1000:04}/{number}.txt")
        member.size, member.mtime = len(content), 1_600_000_000
        yield member.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % 512)
    yield bytes(10240)


def stored(work):
    rows = run_program(build_program("stored_kin_bench"), work / "features", "1000000")
    ok = verdict(f"kin of one sketch among a million: median {rows[0]['median ms']} ms, below 20", rows[0]["median ms"] < 20)
    repository = work / "repository"
    run(KIN, "-r", repository, "init", "--plain")
    with subprocess.Popen([KIN, "-q", "-r", repository, "import", "-"], stdin=subprocess.PIPE) as importing:
        for number, piece in enumerate(texts(1_000_000)):
            importing.stdin.write(piece)
            if number % 10_000 == 0:
                progress(f"a repository of a million files: {number}")
        importing.stdin.close()
        if importing.wait() != 0:
            raise BenchError("kin import failed")
    progress("")
    query = work / "query"
    query.write_bytes(b"some words before it\n" + next(texts(1))[512:].rstrip(b"\0"))
    for options in (["--no-delta"], []):
        turns = [run(KIN, "-r", repository, "similar", *options, query) for _ in range(21)]
        if b"/0000/0.txt" not in turns[0][0]:
            raise BenchError("the kin that is stored was not found")
        wall, cpu = (1000 * statistics.median(values) for values in zip(*((turn[1], turn[2] + turn[3]) for turn in turns)))
        what = f"kin similar {' '.join(options)}".rstrip()
        line = f"{what} in a repository of 1,000,000 files, the whole command: median {wall:.0f} ms, {cpu:.0f} ms of CPU"
        if options:
            ok &= verdict(f"{line}, below 20", wall < 20)
        else:
            print(line)
    return ok


PARTS = {"simhash": simhash, "sif": sif, "simihash": simihash, "sampling": sampling, "growth": growth, "stored": stored}


def similar_arguments(parser):
    parser.add_argument("--parts", default="all", metavar="NAMES", help=f"of {','.join(PARTS)}; or all")


def similar(options, work):
    names = list(PARTS) if options.parts == "all" else options.parts.split(",")
    for name in names:
        if name not in PARTS:
            raise BenchError(f"no such part: {name}; known are {', '.join(PARTS)}, all")
    build_program("kin")
    os.environ["KIN_CACHE_DIR"] = str(work / "cache")
    met = {}
    for name in names:
        place = work / name
        place.mkdir()
        met[name] = PARTS[name](place)
        shutil.rmtree(place)
        print(flush=True)
    return {"benchmark": "similar", "met": met, "ok": all(met.values())}
