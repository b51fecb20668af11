"""Programs that write deflate streams, and how each is told to compress standard input to standard output."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

from bench_data import KEPT, BenchError


@dataclass
class Producer:
    name: str
    command: list
    level: int  # of zlib, to be measured beside it
    memory: int = 8  # likewise
    slow: bool = False  # it gets the smaller content
    environment: dict = field(default_factory=dict)

    def installed(self):
        return shutil.which(self.command[0]) is not None

    def write(self, content, path):
        """Compresses the file `content` into the file `path`."""
        with open(content, "rb") as source, open(path, "wb") as output:
            environment = {**os.environ, **self.environment}
            result = subprocess.run(self.command, stdin=source, stdout=output, stderr=subprocess.PIPE, env=environment)
        if result.returncode != 0:
            raise BenchError(f"{' '.join(self.command)}:\n{result.stderr[-2000:].decode(errors='replace')}")


LEVELS = range(1, 10)
SOME_LEVELS = (1, 6, 9)  # of those that call zlib, every level of which is measured already

PYTHON_ZLIB = """
import sys, zlib
encoder = zlib.compressobj({level}, zlib.DEFLATED, 31, {memory})
while chunk := sys.stdin.buffer.read(1 << 16):
    sys.stdout.buffer.write(encoder.compress(chunk))
sys.stdout.buffer.write(encoder.flush())
"""
PYTHON_GZIP = "import gzip, sys; sys.stdout.buffer.write(gzip.compress(sys.stdin.buffer.read(), {level}))"
PERL = "binmode STDIN; binmode STDOUT; IO::Compress::Gzip::gzip('-' => '-', -Level => {level}) or die"
PHP = "fwrite(STDOUT, gzencode(stream_get_contents(STDIN), {level}));"
JAVA = """
class Gzip {
  public static void main(String[] arguments) throws java.io.IOException {
    try (var out = new java.util.zip.GZIPOutputStream(System.out) {
      { def.setLevel(Integer.parseInt(arguments[0])); }
    }) {
      System.in.transferTo(out);
    }
  }
}
"""
GO = """
package main

import ("compress/gzip"; "io"; "os"; "strconv")

func main() {
	level, _ := strconv.Atoi(os.Args[1])
	out, err := gzip.NewWriterLevel(os.Stdout, level)
	if err == nil { _, err = io.Copy(out, os.Stdin) }
	if err == nil { err = out.Close() }
	if err != nil { panic(err) }
}
"""


def source_file(name, text):
    path = KEPT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def callers_of_zlib():
    """zlib by way of Python, which hands out its memory level; then what languages make of it by themselves."""
    java = source_file("Gzip.java", JAVA)
    for memory in (8, 9):
        for level in LEVELS:
            script = PYTHON_ZLIB.format(level=level, memory=memory)
            yield Producer(f"zlib -{level}, memLevel {memory}", [sys.executable, "-c", script], level, memory)
    for level in SOME_LEVELS:
        yield Producer(f"Python -{level}", [sys.executable, "-c", PYTHON_GZIP.format(level=level)], level)
        yield Producer(f"Perl -{level}", ["perl", "-MIO::Compress::Gzip", "-e", PERL.format(level=level)], level)
        yield Producer(f"Java -{level}", ["java", java, str(level)], level)
        php = ["php", "-d", "memory_limit=-1", "-r", PHP.format(level=level)]
        yield Producer(f"PHP -{level}", php, level)


def relatives_of_gzip():
    for level in LEVELS:
        yield Producer(f"GNU gzip -{level}", ["gzip", "-n", "-c", f"-{level}"], level)
    for level in LEVELS:
        yield Producer(f"Info-ZIP -{level}", ["zip", "-q", f"-{level}", "-", "-"], level)
    for level in LEVELS:
        yield Producer(f"pigz -{level}", ["pigz", "-n", "-c", f"-{level}"], level)


def others():
    """Encoders of their own. zlib's level is only there for its speed."""
    for level in range(1, 13):
        yield Producer(f"libdeflate -{level}", ["libdeflate-gzip", "-c", f"-{level}"], min(level, 9))
    for level in (1, 5, 7, 9):
        command = ["7z", "a", "-bd", "-tgzip", "-si", "-so", f"-mx={level}", "dummy"]
        yield Producer(f"7-Zip -mx={level}", command, level)
    yield Producer("zopfli", ["zopfli", "-c", "/dev/stdin"], 9, slow=True)
    go = source_file("gzip.go", GO)
    for level in LEVELS:
        cache = {"GOCACHE": str(KEPT / "go-cache")}
        yield Producer(f"Go -{level}", ["go", "run", go, str(level)], level, environment=cache)
