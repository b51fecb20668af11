"""Containers to back up that are made of what a machine has. All but the mailbox differ between machines, so
they are not kept."""

import collections
import email.message
import io
import mailbox
import mimetypes
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

from bench_data import FIRST_MTIME, BenchError, made_once, progress, set_mtime

APT_ARCHIVES = Path("/var/cache/apt/archives")
SMALL_PACKAGES = "hello sed grep gzip bc less tree jq time file".split()


def mailbox_of(documents, directory):
    """An mbox with a message for each version of each document, oldest first, and the document attached."""
    directory.mkdir()
    path = directory / "documents.mbox"
    box = mailbox.mbox(path)
    versions = sorted(documents.glob("*/*"), key=lambda version: (version.name, version.parent.name))
    for number, version in enumerate(versions):
        box.add(message_with(version, number))
    box.close()
    set_mtime(path, FIRST_MTIME)
    return directory


def message_with(version, number):
    """The same bytes in every run: Python would take the clock for the date, and chance for the boundary."""
    sent = time.gmtime(FIRST_MTIME + number * 86400)
    message = email.message.EmailMessage()
    message["From"] = "Ann <ann@example.com>"
    message["To"] = "Bob <bob@example.com>"
    message["Date"] = time.strftime("%a, %d %b %Y %H:%M:%S +0000", sent)
    message["Message-ID"] = f"<{number}@example.com>"
    message["Subject"] = f"{version.parent.name}, once more"
    message.set_content(f"Hello Bob,\n\nhere is {version.name}. What do you think?\n\nAnn\n")
    kind = mimetypes.guess_type(version.name)[0] or "application/octet-stream"
    main_type, sub_type = kind.split("/")
    message.add_attachment(version.read_bytes(), maintype=main_type, subtype=sub_type, filename=version.name)
    message.set_boundary(f"=_part_{number:06d}")
    in_box = mailbox.mboxMessage(message)
    in_box.set_from("ann@example.com", sent)
    return in_box


def gather(files, top, directory):
    """Links to the files, which are below `top`, in a directory of their own; copies where links cannot be."""
    for file in files:
        path = directory / file.relative_to(top)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(file, path)
        except OSError:
            shutil.copy2(file, path)
    return directory


def debian_packages(directory):
    """Every .deb in apt's cache, or some small ones."""
    packages = sorted(APT_ARCHIVES.glob("*.deb"))
    if not packages:
        packages = sorted(made_once("debian-packages-v1", "ten packages of Debian", fetch_debian).glob("*.deb"))
    print_compression(packages)
    return gather(packages, packages[0].parent, directory)


def fetch_debian(tree):
    result = subprocess.run(["apt-get", "download", *SMALL_PACKAGES], cwd=tree, capture_output=True, text=True)
    if result.returncode != 0:
        raise BenchError(f"apt-get download: {result.stderr[-2000:]}")


def print_compression(packages):
    """What packages are made of. kin does not count what it has no format for, such as xz."""
    sizes = collections.Counter()
    for package in packages:
        for name, size in ar_members(package):
            if name.startswith(("data.tar", "control.tar")):
                sizes[name] += size
    print("\n.deb members, MB: " + ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sorted(sizes.items())))


def ar_members(path):
    """(name, size) of each."""
    with open(path, "rb") as file:
        file.seek(8)
        while len(header := file.read(60)) == 60:
            name, size = header[:16].decode().strip().rstrip("/"), int(header[48:58])
            yield name, size
            file.seek(size + size % 2, os.SEEK_CUR)


def gz_files(directory):
    """Every .gz below /usr/share."""
    top = Path("/usr/share")
    return gather(filter(is_readable_file, top.rglob("*.gz")), top, directory)


def is_readable_file(path):
    return path.is_file() and not path.is_symlink() and os.access(path, os.R_OK)


def big_archive(size, directory):
    """A tar.gz of `size` plain bytes or a little more: all of /usr/share and /usr/lib, over and over, changed a
    little each time."""
    directory.mkdir()
    path = directory / "big.tar.gz"
    progress(f"big: compressing {size / 1e9:g} GB")
    with open(path, "wb") as out, subprocess.Popen(["gzip", "-6"], stdin=subprocess.PIPE, stdout=out) as gzip:
        with tarfile.open(fileobj=gzip.stdin, mode="w|") as tar:
            write_big_tar(tar, size)
        gzip.stdin.close()
    if gzip.returncode != 0:
        raise BenchError("gzip failed")
    set_mtime(path, FIRST_MTIME)
    return directory


def write_big_tar(tar, size):
    generation = 0
    while True:
        for file in real_files():
            content = changed(file.read_bytes(), generation)
            member = tarfile.TarInfo(f"{generation}{file}")
            member.size = len(content)
            member.mtime = FIRST_MTIME + generation
            tar.addfile(member, io.BytesIO(content))
            if tar.offset >= size:
                return
        generation += 1


def real_files():
    for top in "/usr/share", "/usr/lib":
        for directory, _, names in os.walk(top):
            for name in sorted(names):
                path = Path(directory, name)
                # Larger ones would be this process's memory, which counts as the tools' too.
                if is_readable_file(path) and path.stat().st_size <= 4 << 20:
                    yield path


def changed(content, generation):
    """With a mark in every 64 KiB, none in the first generation."""
    if generation == 0:
        return content
    mark = f"<generation {generation}>".encode()
    step = 64 << 10
    return b"".join(content[at : at + step] + mark for at in range(0, len(content), step))
