"""sync_random.py KIN KIND FIRST-SEED SEEDS [KILLS]: random changes to two stores of mail, and kin sync in between.

After each sync both must hold the same messages with the same flags, a second one must find nothing to do, and of each
message there must be as many as whoever changed their number has; where both did, as many as one of them. With KILLS,
so large a part of the syncs is killed first. A seed that fails is printed, and does the same again.
"""

import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LETTERS = "DFPRST"
SEQUENCES = ("unseen", "replied", "flagged", "own")


class Maildir:
    def __init__(self, root, chance, mark):
        self.root, self.chance, self.mark, self.made = root, chance, mark, 0
        self.make_folder("")

    def make_folder(self, name):
        for part in ("cur", "new", "tmp"):
            os.makedirs(os.path.join(self.root, name, part), exist_ok=True)

    def folders(self):
        return [""] + sorted(n for n in os.listdir(self.root) if n.startswith(".") and os.path.isdir(f"{self.root}/{n}/cur"))

    def paths(self):
        return sorted(f"{self.root}/{folder}/{part}/{name}" for folder in self.folders() for part in ("cur", "new")
                      for name in os.listdir(f"{self.root}/{folder}/{part}"))

    def new_name(self, flags):
        self.made += 1
        return f"{1_000_000_000 + self.made}.M{self.made}P1.{self.mark}:2,{flags}"

    def some_folder(self):
        return f"{self.root}/{self.chance.choice(self.folders())}/cur/"

    def change(self, text):
        chance, paths = self.chance, self.paths()
        what = chance.choice(["new", "new", "new", "flag", "flag", "move", "copy", "twin", "delete", "folder", "drop"])
        flags = "".join(sorted(chance.sample(LETTERS, chance.randrange(3))))
        if what == "new":
            with open(self.some_folder() + self.new_name(flags), "wb") as out:
                out.write(text)
        elif what == "folder":
            self.make_folder(chance.choice([".one", ".two", ".one.more", ".with space"]))
        elif what == "drop" and len(self.folders()) > 1 and chance.random() < 0.3:
            shutil.rmtree(f"{self.root}/{chance.choice(self.folders()[1:])}")
        elif paths and what != "drop":
            path = chance.choice(paths)
            base, _, old = os.path.basename(path).partition(":2,")
            if what == "flag":
                now = "".join(sorted(set(old) ^ {chance.choice(LETTERS)}))
                os.rename(path, os.path.dirname(os.path.dirname(path)) + f"/cur/{base}:2,{now}")
            elif what == "move":
                os.rename(path, self.some_folder() + f"{base}:2,{old}")
            elif what == "delete":
                os.unlink(path)
            else:
                at = self.some_folder() if what == "copy" else os.path.dirname(os.path.dirname(path)) + "/cur/"
                shutil.copy(path, at + self.new_name(flags))

    def state(self):
        found = collections.Counter()
        for path in self.paths():
            folder = os.path.relpath(os.path.dirname(os.path.dirname(path)), self.root)
            with open(path, "rb") as message:
                found[folder, message.read(), os.path.basename(path).partition(":2,")[2]] += 1
        return found


class Mh:
    def __init__(self, root, chance, mark):
        self.root, self.chance, self.mark = root, chance, mark
        os.makedirs(root)
        self.write_sequences(root, {"unseen": set()})

    def folders(self):
        return sorted(at for at, _, _ in os.walk(self.root))

    def numbers(self, folder):
        return sorted(int(name) for name in os.listdir(folder) if name.isdigit())

    def sequences(self, folder):
        out = {}
        try:
            with open(f"{folder}/.mh_sequences") as lines:
                for line in lines:
                    name, _, ranges = line.partition(":")
                    ends = [(part.split("-")[0], part.split("-")[-1]) for part in ranges.split()]
                    out[name] = {number for first, last in ends for number in range(int(first), int(last) + 1)}
        except FileNotFoundError:
            pass
        return out

    def write_sequences(self, folder, sequences):
        with open(f"{folder}/.mh_sequences", "w") as out:
            for name, numbers in sequences.items():
                out.write(f"{name}: {' '.join(map(str, sorted(numbers)))}\n" if numbers else "")

    def add(self, folder, text):
        number = max(self.numbers(folder), default=0) + 1
        with open(f"{folder}/{number}", "wb") as out:
            out.write(text)

    def remove(self, folder, number):
        os.unlink(f"{folder}/{number}")
        self.write_sequences(folder, {name: numbers - {number} for name, numbers in self.sequences(folder).items()})

    def change(self, text):
        chance, folder = self.chance, self.chance.choice(self.folders())
        numbers = self.numbers(folder)
        what = chance.choice(["new", "new", "new", "mark", "mark", "move", "copy", "delete", "pack", "sort", "folder"])
        if what == "new":
            self.add(folder, text)
        elif what == "folder":
            os.makedirs(f"{folder}/{chance.choice(['one', 'two'])}", exist_ok=True)
        elif numbers:
            number = chance.choice(numbers)
            if what == "mark":
                sequences = self.sequences(folder)
                name = chance.choice(SEQUENCES)
                sequences[name] = sequences.get(name, set()) ^ {number}
                self.write_sequences(folder, sequences)
            elif what in ("move", "copy"):
                with open(f"{folder}/{number}", "rb") as message:
                    self.add(chance.choice(self.folders()), message.read())
                if what == "move":
                    self.remove(folder, number)
            elif what == "delete":
                self.remove(folder, number)
            else:
                order = numbers if what == "pack" else chance.sample(numbers, len(numbers))
                named = {old: new for new, old in enumerate(order, 1)}
                for old in numbers:
                    os.rename(f"{folder}/{old}", f"{folder}/,t{old}")
                for old in numbers:
                    os.rename(f"{folder}/,t{old}", f"{folder}/{named[old]}")
                sequences = self.sequences(folder)
                self.write_sequences(folder, {name: {named[n] for n in marked if n in named} for name, marked in sequences.items()})

    def state(self):
        found = collections.Counter()
        for folder in self.folders():
            sequences = self.sequences(folder)
            for number in self.numbers(folder):
                marks = ",".join(sorted(name for name, numbers in sequences.items() if number in numbers))
                with open(f"{folder}/{number}", "rb") as message:
                    found[os.path.relpath(folder, self.root), message.read(), marks] += 1
        return found


KINDS = {"maildir": Maildir, "mh": Mh}


def numbers_of(state):
    out = collections.Counter()
    for (folder, content, _), count in state.items():
        out[folder, content] += count
    return out


def some(state):
    return [(folder, content[:40], flags, count) for (folder, content, flags), count in list(state.items())[:4]]


def run_seed(kin, kind, seed, kills):
    chance = random.Random(seed)
    work = tempfile.mkdtemp(dir=os.environ.get("TMPDIR"))
    stores = [KINDS[kind](f"{work}/{mark}", chance, mark) for mark in "ab"]
    texts = 0
    before = None

    def change(store):
        nonlocal texts
        texts += 1
        text = f"From: {texts % 3}@example.org\nSubject: {texts} of {seed}\n\n" + "a line\n" * chance.randrange(200)
        store.change(text.encode())

    def command():
        order = chance.sample([store.root for store in stores], 2)
        return [kin, "--json", "sync", "--kind", kind, "--allow-deletes", "--state", f"{work}/state", *order]

    def sync():
        done = subprocess.run(command(), capture_output=True, timeout=120, text=True)
        assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout} {done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    for _ in range(5):
        change(stores[0])
    for turn in range(7):
        for store in stores:
            for _ in range(chance.randrange(7) if turn > 0 else 0):
                change(store)
        was = [store.state() for store in stores]
        if chance.random() < kills:
            running = subprocess.Popen(command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(chance.random() * 0.06)
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        sync()
        now = [store.state() for store in stores]
        assert now[0] == now[1], f"turn {turn}: only in a: {some(now[0] - now[1])}, only in b: {some(now[1] - now[0])}"
        assert sync()["was_equal"], f"turn {turn}: there was more to do"
        assert [store.state() for store in stores] == now, f"turn {turn}: nothing to do, and something was done"
        counts = [numbers_of(state) for state in (before or collections.Counter(), *was, now[0])]
        for key in set().union(*counts):
            base, a, b, outcome = (count[key] for count in counts)
            least, most = sorted((a, b)) if a != base and b != base else ((b, b) if a == base else (a, a))
            assert least <= outcome <= most, f"turn {turn}: {key[0]} {key[1][:40]}: {base}, then {a} and {b}, now {outcome}"
        before = now[0]
    shutil.rmtree(work)


def main():
    kin, kind, first, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    kills = float(sys.argv[5]) if len(sys.argv) > 5 else 0
    for seed in range(first, first + seeds):
        try:
            run_seed(kin, kind, seed, kills)
        except AssertionError as why:
            sys.exit(f"seed {seed} of {kind}, kills {kills}: {why}")


main()
