#!/usr/bin/env python3
"""A link between two programs that speak by stdin and stdout: slow, counted, and cut if so wished.

    slow_link.py [OPTION]... COMMAND...            runs COMMAND, and passes stdin and stdout on
    slow_link.py [OPTION]... --as-ssh HOST LINE    the same in place of ssh: a shell of this machine runs LINE
    slow_link.py [OPTION]... --as-ssh -- ARGS...   the same, where options of ssh may come first

Each direction has the whole rate, as a modem's has, and a delay of its own: a round trip takes two. A turn is a change
of direction, the first bytes included, so that a question and its answer are two turns. Where both ends speak at the
same time, there are as many turns as the system's scheduler makes of them: an upper bound.
"""

import argparse
import collections
import json
import os
import select
import signal
import subprocess
import sys
import time

PIECE = 4096  # of PIPE_BUF bytes or less: a write to a pipe that is ready for it does not block
QUEUED = 1 << 16  # as much as a pipe itself takes


class Direction:
    def __init__(self, source, sink, rate, delay):
        self.source, self.sink, self.rate, self.delay = source, sink, rate, delay
        self.bytes = 0
        self.waiting = collections.deque()  # (when it is through, its bytes); None: the end
        self.waiting_bytes = 0
        self.free_at = 0.0

    def wants_to_read(self):
        return self.source is not None and self.waiting_bytes < QUEUED

    def put(self, piece):
        self.bytes += len(piece)
        self.waiting_bytes += len(piece)
        # What a slow line carries arrives byte by byte; 50 ms of it at a time do here.
        step = max(1, int(self.rate / 20)) if self.rate else PIECE
        for begin in range(0, len(piece), step):
            part = piece[begin : begin + step]
            if self.rate:
                self.free_at = max(self.free_at, time.monotonic()) + len(part) / self.rate
            else:
                self.free_at = time.monotonic()
            self.waiting.append((self.free_at + self.delay, part))

    def end(self):
        if self.source is None:
            return
        os.close(self.source)
        self.source = None
        self.waiting.append((max(self.free_at, time.monotonic()) + self.delay, None))

    def close(self):
        for end in (self.source, self.sink):
            if end is not None:
                os.close(end)
        self.source = self.sink = None
        self.waiting.clear()

    def deliver(self):
        """The next piece, whose time has come, to a sink that is ready."""
        _, piece = self.waiting.popleft()
        if piece is None:
            self.close()
            return
        self.waiting_bytes -= len(piece)
        try:
            rest = piece[os.write(self.sink, piece) :]
        except BrokenPipeError:  # who does not listen any more is not sent the rest
            self.close()
            return
        if rest:
            self.waiting.appendleft((0.0, rest))
            self.waiting_bytes += len(rest)


class Link:
    def __init__(self, child, options):
        delay = options.delay / 1000
        self.there = Direction(os.dup(0), os.dup(child.stdin.fileno()), options.rate, delay)
        self.back = Direction(os.dup(child.stdout.fileno()), os.dup(1), options.rate, delay)
        # Whoever keeps a copy of an end keeps the line open.
        child.stdin.close()
        child.stdout.close()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        self.left = options.cut_after
        self.turns = 0
        self.speaker = None
        self.was_cut = False

    def run(self):
        while self.back.sink is not None or self.was_cut and self.there.sink is not None:
            self.step()
        self.there.close()

    def step(self):
        now = time.monotonic()
        directions = (self.there, self.back)
        readers = {line.source: line for line in directions if line.wants_to_read()}
        writers = {line.sink: line for line in directions if line.waiting and line.waiting[0][0] <= now}
        times = [line.waiting[0][0] - now for line in directions if line.waiting and line.waiting[0][0] > now]
        readable, writable, _ = select.select(list(readers), list(writers), [], min(times, default=None))
        for sink in writable:
            writers[sink].deliver()
        for source in readable:
            if readers[source].source is not None:
                self.take(readers[source])

    def take(self, line):
        if self.was_cut:
            return
        piece = os.read(line.source, PIECE)
        if not piece:
            line.end()
            return
        if self.speaker is not line:
            self.speaker = line
            self.turns += 1
        if self.left is not None:
            piece = piece[: self.left]
            self.left -= len(piece)
        line.put(piece)
        if self.left == 0:  # what was sent before still arrives
            self.was_cut = True
            self.there.end()
            self.back.end()


def end_child(child, seconds):
    """Its exit code, and what it took; killed if it does not notice that nobody is there."""
    until = time.monotonic() + seconds
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid != 0:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > until:
            os.killpg(child.pid, signal.SIGKILL)
        time.sleep(0.005)


def shell_line(arguments):
    """What ssh would hand to a shell: rsync and unison give it options of its own, and words instead of one line."""
    words = list(arguments)

    def drop_options():
        while words and words[0].startswith("-"):
            del words[: 2 if words[0] in ("-l", "-p", "-o", "-e") else 1]

    drop_options()
    del words[:1]  # the host
    drop_options()  # unison has some after it
    return " ".join(words)


def main():
    parser = argparse.ArgumentParser(description="Pass a program's stdin and stdout through a slow, counted link.")
    parser.add_argument("--rate", type=float, default=0, metavar="N", help="bytes a second, each way (default: any)")
    parser.add_argument("--delay", type=float, default=0, metavar="MS", help="milliseconds, each way")
    parser.add_argument("--count", metavar="FILE", help="write the bytes and turns there, as JSON")
    parser.add_argument("--cut-after", type=int, metavar="BYTES", help="of both directions")
    parser.add_argument("--as-ssh", action="store_true", help="the arguments are those of ssh: a host and a line")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.command[:1] == ["--"]:
        del options.command[0]
    command = ["/bin/sh", "-c", shell_line(options.command)] if options.as_ssh else options.command
    if not command or not command[-1]:
        parser.error("no command")

    started = time.monotonic()
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
    )
    link = Link(child, options)

    def tell(usage=None):
        if options.count:
            told = {
                "there": link.there.bytes,
                "back": link.back.bytes,
                "turns": link.turns,
                "seconds": time.monotonic() - started,
                "was_cut": link.was_cut,
                "exit_code": child.returncode,
                "peak_kib": usage.ru_maxrss if usage else None,
            }
            with open(f"{options.count}.new", "w") as out:
                json.dump(told, out)
            os.replace(f"{options.count}.new", options.count)  # it is there as a whole, or not yet

    def stop(number, _):
        tell()
        os.killpg(child.pid, signal.SIGKILL)
        os._exit(128 + number)

    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, stop)
    link.run()
    usage = end_child(child, 4)
    tell(usage)
    return 1 if link.was_cut else child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    sys.exit(main())
