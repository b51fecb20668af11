"""The backup tools that scripts/bench measures, and how each is called."""

import os
import shutil
import subprocess
from dataclasses import dataclass

from bench_data import BenchError

PASSWORD = "benchmark"


@dataclass
class Tool:
    """How to call one backup tool on a repository. The commands run with the restore target as cwd."""

    name: str
    program: str

    def environment(self, cache):
        raise NotImplementedError

    def init(self, repo, cache):
        raise NotImplementedError

    def backup(self, repo, cache, data, label):
        raise NotImplementedError

    def restore(self, repo, cache, target, label):
        raise NotImplementedError

    def version_command(self):
        return [self.program, "--version"]

    def version(self):
        result = subprocess.run(self.version_command(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        lines = (result.stdout or result.stderr).strip().splitlines()
        return lines[0] if lines else "unknown version"


@dataclass
class Kin(Tool):
    opens: bool = False  # containers; otherwise it stores them as they are, as its peers do

    def environment(self, cache):
        return {"KIN_PASSWORD": PASSWORD}

    def init(self, repo, cache):
        return [self.program, "-q", "-r", repo, "init"]

    def backup(self, repo, cache, data, label):
        # JSON tells what it opened.
        return [
            *(self.program, "--json" if self.opens else "-q", "-r", repo, "--cache-dir", cache, "backup"),
            *(() if self.opens else ("--no-unpack",)),
            data,
        ]

    def restore(self, repo, cache, target, label):
        return [self.program, "-q", "-r", repo, "--cache-dir", cache, "restore", "latest", "-t", target]


class Restic(Tool):
    def environment(self, cache):
        return {"RESTIC_PASSWORD": PASSWORD}

    def version_command(self):
        return [self.program, "version"]

    def init(self, repo, cache):
        return [self.program, "-q", "-r", repo, "--cache-dir", cache, "init"]

    def backup(self, repo, cache, data, label):
        return [self.program, "-q", "-r", repo, "--cache-dir", cache, "backup", data]

    def restore(self, repo, cache, target, label):
        return [self.program, "-q", "-r", repo, "--cache-dir", cache, "restore", "latest", "-t", target]


@dataclass
class Borg(Tool):
    options: tuple = ()

    def environment(self, cache):
        return {"BORG_PASSPHRASE": PASSWORD, "BORG_BASE_DIR": cache}

    def init(self, repo, cache):
        return [self.program, "init", "-e", "repokey-blake2", repo]

    def backup(self, repo, cache, data, label):
        return [self.program, "create", *self.options, f"{repo}::{label}", data]

    def restore(self, repo, cache, target, label):
        return [self.program, "extract", f"{repo}::{label}"]


class Zpaq(Tool):
    def environment(self, cache):
        return {}

    def version_command(self):
        return [self.program]

    def init(self, repo, cache):
        return ["mkdir", repo]

    def backup(self, repo, cache, data, label):
        return [self.program, "a", f"{repo}/archive.zpaq", data, "-m1"]

    def restore(self, repo, cache, target, label):
        return [self.program, "x", f"{repo}/archive.zpaq", "-to", target]


PEERS = {
    "restic": lambda: Restic("restic", "restic"),
    "borg": lambda: Borg("borg", "borg"),
    "borg-zstd": lambda: Borg("borg-zstd", "borg", ("--compression", "zstd,3")),
    "zpaq": lambda: Zpaq("zpaq", "zpaq"),
}


def choose_tools(options, kin_opens=False):
    """The tools in the order of their turns: kin first, then its older self, then the peers."""
    tools = []
    if options.kin != "none":
        tools.append(Kin("kin", options.kin, kin_opens))
    if options.compare:
        tools.append(Kin("kin-old", options.compare, kin_opens))
    for name in options.peers.split(",") if options.peers != "none" else ():
        if name not in PEERS:
            raise BenchError(f"no such peer: {name}; known are {', '.join(PEERS)}, none")
        tools.append(PEERS[name]())
    for tool in tools:
        found = shutil.which(tool.program)
        if not found:
            hint = "not built" if isinstance(tool, Kin) else "not installed; run scripts/setup --developer"
            raise BenchError(f"{tool.name}: {tool.program} is {hint}")
        tool.program = os.path.abspath(found)  # the commands run in other directories
    if not tools:
        raise BenchError("no tools to measure")
    return tools
