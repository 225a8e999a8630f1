#!/usr/bin/python3
"""Kills the server with SIGKILL while clients make, copy, rename, swap and drop vector indexes, save, and switch the log.

  kill_storm.py --server build/dev/bin/hotkv-server --tool build/dev/bin/hotkv-tool    a few seconds on each I/O back end
  kill_storm.py --server … --tool … --seconds 600 --seed 7 --io epoll                  the long run

It also dies in the middle of its starts and of its shutdowns' snapshots. After each death `hotkv-tool verify` must find
nothing wrong, and the server must start; at the end a FLUSHALL and a snapshot must leave no index folder behind.

Some clients send anything to shared keys. Each of the others works in a database of its own, command by command, and knows
the state after each: what is found must be one of these. Under appendfsync always nothing acknowledged may be missing,
under everysec and no nothing that was acknowledged over a second before the kill, and where the log was switched off and
on it may be any earlier state of the round. (In rounds with FLUSHALL only that the server starts is asked for.) A directory that is
at fault is kept.
"""
import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from servers import TIME_FACTOR, Connection, Server, server_argument, skip  # noqa: E402

OWNERS, OTHERS = 3, 3
ELEMENTS = 12
SHARED_DATABASES = 3
FIRST_OWN_DATABASE = 8
ROUNDS = ["always", "everysec", "no", "switched", "flushed"]
LOSS_SECONDS_MAX = 1.0
TOOL_SECONDS = 120 * TIME_FACTOR


def blob(*numbers):
    return struct.pack("<4f", *numbers)


class Client(threading.Thread):
    """Goes on until the server has died."""

    def __init__(self, port, seed):
        super().__init__()
        self.port, self.rng = port, random.Random(seed)
        self.fault = None

    def run(self):
        try:
            while not self.fault:
                with Connection(self.port, timeout=60) as connection:
                    self.work(connection)
        except (OSError, ConnectionError):
            pass


class Owner(Client):
    """The only one to write to its database. States: text "n", and of each index key its elements."""

    def __init__(self, port, seed, database, state, kind):
        super().__init__(port, seed)
        self.database, self.kind = database, kind
        self.states = [(0.0, state)]  # (when acknowledged, state); the first holds from the start on
        self.pending = None

    def work(self, connection):
        connection.value("SELECT", self.database)
        while not self.fault:
            words, state, expected = self.step(self.states[-1][1])
            self.pending = state
            replies = [connection.value(*command) for command in words]
            if replies[-1] not in expected and self.kind == "flushed":
                state = self.found(connection)
            elif replies[-1] not in expected:
                self.fault = f"{words!r} was answered {replies!r}, expected {expected!r} in {self.states[-1][1]!r}"
                return
            self.states.append((time.monotonic(), state))
            self.pending = None

    def step(self, state):
        """(commands, state after them, replies that the last may have)"""
        n = state["n"] + 1
        state = {**state, "n": n}
        count = [["INCR", "n"]]
        kind, element = self.rng.randrange(10), f"e{self.rng.randrange(ELEMENTS)}"
        index = self.rng.choice(["made", "made", "copy", "moved"])
        elements = state.get(index)
        if elements is None and kind < 6:
            new = ["VSIM.CREATEINDEX", index, "DIM", 4, "METRIC", "L2", "TYPE", self.rng.choice(["F32", "Q8"])]
            return self.transaction(count, new, {**state, index: {}}, b"OK")
        if kind < 4:
            new = ["VSIM.SET", index, element, "FP32", blob(n, 1, 2, 3)]
            return self.transaction(count, new, {**state, index: {**elements, element: n}}, int(element not in elements))
        if kind < 6:
            left = {name: value for name, value in elements.items() if name != element}
            return self.transaction(count, ["VSIM.DEL", index, element], {**state, index: left}, int(element in elements))
        target = self.rng.choice([name for name in ("made", "copy", "moved") if name != index])
        without = {name: value for name, value in state.items() if name != index}
        if kind == 6 or elements is None:
            return self.transaction(count, ["UNLINK", index], without, int(elements is not None))
        if kind == 7:
            return self.transaction(count, ["RENAME", index, target], {**without, target: elements}, b"OK")
        # Outside of a transaction it is made on another thread, with the client waiting.
        after = {**state, "n": n - 1, target: elements}
        return [["COPY", index, target, "REPLACE"]], after, [1]

    def transaction(self, count, command, state, reply):
        return [["MULTI"]] + count + [command, ["EXEC"]], state, [[state["n"], reply]]

    def found(self, connection):
        connection.value("SELECT", self.database)
        state = {"n": int(connection.value("GET", "n") or 0)}
        for key in connection.value("KEYS", "*"):
            if key == b"n":
                continue
            index = key.decode()
            names = [f"e{i}" for i in range(ELEMENTS)]
            rows = [connection.value("VSIM.GET", index, name, "RAW") for name in names]
            if any(isinstance(row, Exception) for row in rows):
                return {"fault": f"VSIM.GET {index}: {rows!r}"}
            state[index] = {name: int(struct.unpack("<4f", row)[0]) for name, row in zip(names, rows) if row is not None}
        return state

    def is_allowed(self, found, killed):
        states = [state for _, state in self.states]
        first = 0
        if self.kind == "flushed":
            return "fault" not in found
        if self.kind == "always":
            first = len(states) - 1
        elif self.kind in ("everysec", "no"):
            old = [i for i, (moment, _) in enumerate(self.states) if moment <= killed - LOSS_SECONDS_MAX]
            first = old[-1] if old else 0
        return found in states[first:] or found == self.pending


class Other(Client):
    """Anything, in any order; only that it is answered counts."""

    def __init__(self, port, seed, kind):
        super().__init__(port, seed)
        self.kind = kind

    def work(self, connection):
        for _ in range(self.rng.randrange(1, 30)):
            commands = [self.command() for _ in range(self.rng.choice([1, 3, 10]))]
            if self.rng.random() < 0.2:
                commands = [["MULTI"]] + [words for words in commands if words[0] != "SAVE"] + [["EXEC"]]
            connection.pipeline([["SELECT", self.rng.randrange(SHARED_DATABASES)]] + commands)
        if self.rng.random() < 0.3:
            connection.send(b"*4\r\n$4\r\nCOPY\r\n$2\r\ni1\r\n$2\r\ni2\r\n$7\r\nREPLACE\r\n")  # and does not wait

    def command(self):
        kind = self.rng.random()
        if kind < 0.06:
            return self.on_server()
        return self.on_strings() if kind < 0.3 else self.on_vectors()

    def on_strings(self):
        key, rng = f"k{self.rng.randrange(20)}", self.rng
        return rng.choice([["SET", key, "v" * rng.randrange(300)], ["INCR", f"n{key}"], ["DEL", key], ["UNLINK", key],
                           ["EXPIRE", key, 1], ["PEXPIRE", key, rng.randrange(30)], ["RENAME", key, "k1"],
                           ["COPY", key, "k2", "REPLACE"]])

    def on_vectors(self):
        index, other, rng = f"i{self.rng.randrange(4)}", f"i{self.rng.randrange(4)}", self.rng
        name, vector = f"e{rng.randrange(40)}", ["FP32", blob(*(rng.gauss(0, 1) for _ in range(4)))]
        return rng.choice([
            ["VSIM.CREATEINDEX", index, "DIM", 4, "TYPE", rng.choice(["F32", "F16", "Q8", "Q4"]), "M", 4],
            ["VSIM.SET", index, name] + vector, ["VSIM.SET", index, name] + vector + ["PX", rng.randrange(1, 40)],
            ["VSIM.SET", index, name] + vector, ["VSIM.DEL", index, name], ["VSIM.DROPINDEX", index],
            ["VADD", index] + vector + [name], ["VADD", index] + vector + [name], ["VREM", index, name],
            ["COPY", index, other, "REPLACE"], ["COPY", index, other, "DB", rng.randrange(SHARED_DATABASES), "REPLACE"],
            ["RENAME", index, other], ["MOVE", index, rng.randrange(SHARED_DATABASES)], ["UNLINK", index],
            ["PEXPIRE", index, rng.randrange(60)], ["VSIM.REBUILD", index, "M", 5],
            ["VSIM.SEARCH", index] + vector + ["K", 3]])

    def on_server(self):
        rng = self.rng
        commands = [["SAVE"], ["BGSAVE"], ["BGREWRITEAOF"], ["FLUSHDB"], ["FLUSHDB", "ASYNC"],
                    ["SWAPDB", rng.randrange(SHARED_DATABASES), rng.randrange(SHARED_DATABASES)]]
        if self.kind == "flushed":
            commands += [["FLUSHALL"]]
        if self.kind in ("switched", "flushed"):
            commands += [["CONFIG", "SET", "appendonly", rng.choice(["yes", "no"])],
                         ["CONFIG", "SET", "appendfsync", rng.choice(["always", "everysec", "no"])]] * 2
        return rng.choice(commands)


class Storm:
    def __init__(self, server, tool, seed, keep):
        self.server, self.tool, self.rng, self.keep = server, tool, random.Random(seed), keep
        self.options = list(server.options)
        self.states = [{"n": 0} for _ in range(OWNERS)]
        self.kills = 0
        self.commands = 0

    def verify(self):
        done = subprocess.run([self.tool, "verify", "--dir", self.server.data], capture_output=True, text=True,
                              timeout=TOOL_SECONDS)
        return [] if done.returncode == 0 else [f"verify: {done.stdout[-2000:]}{done.stderr[-1000:]}"]

    def keep_directory(self):
        if self.keep:
            os.makedirs(self.keep, exist_ok=True)
        folder = tempfile.mkdtemp(prefix="hotkv-kill-storm-", dir=self.keep)
        shutil.copytree(self.server.data, folder, dirs_exist_ok=True)
        return f"the directory is kept as {folder}"

    def die(self):
        self.server.kill()
        self.kills += 1
        return self.verify()

    def die_in_starts(self):
        """The next start is killed at some moment of it, now and then several times."""
        while self.rng.random() < 0.5:
            self.server.launch()
            time.sleep(self.rng.expovariate(1 / 0.05))
            if faults := self.die():
                return faults
        return []

    def play_round(self, kind):
        policy = kind if kind in ("always", "everysec", "no") else "everysec"
        self.server.options = self.options + ["--appendfsync", policy]
        if faults := self.die_in_starts():
            return faults
        self.server.start()
        owners = [Owner(self.server.port, self.rng.random(), FIRST_OWN_DATABASE + i, state, kind)
                  for i, state in enumerate(self.states)]
        if faults := self.look(owners, lambda owner, found: found == owner.states[0][1]):
            return faults
        others = [Other(self.server.port, self.rng.random(), kind) for _ in range(OTHERS)]
        for client in owners + others:
            client.start()
        time.sleep(self.rng.uniform(0.05, 1.2))
        if self.rng.random() < 0.25:
            self.stop_half_way()
        killed = time.monotonic()
        self.server.kill()
        for client in owners + others:
            client.join()
        self.commands += sum(len(owner.states) for owner in owners)
        faults = [client.fault for client in owners if client.fault] + self.die() + self.die_in_starts()
        if faults:
            return faults
        self.server.start()
        faults = self.look(owners, lambda owner, found: owner.is_allowed(found, killed))
        if self.rng.random() < 0.7:
            faults += self.die()
        elif self.server.stop() != 0:
            faults.append("a clean stop failed")
        return faults

    def stop_half_way(self):
        """A shutdown that takes a snapshot, for a moment."""
        try:
            with self.server.connect() as connection:
                connection.send(b"*2\r\n$8\r\nSHUTDOWN\r\n$4\r\nSAVE\r\n")
                time.sleep(self.rng.uniform(0, 0.15))
        except OSError:
            pass

    def look(self, owners, is_allowed):
        faults = []
        with self.server.connect(timeout=60) as connection:
            for i, owner in enumerate(owners):
                found = owner.found(connection)
                if not is_allowed(owner, found):
                    faults.append(f"database {owner.database} holds {found!r}; the last states were "
                                  f"{owner.states[-3:]!r}, pending {owner.pending!r}")
                self.states[i] = found
        return faults

    def check_leftovers(self):
        """Whatever the kills have left half done goes."""
        self.server.start()
        with self.server.connect(timeout=60) as connection:
            connection.value("FLUSHALL")
            deadline = time.monotonic() + 20 * TIME_FACTOR
            while left := os.listdir(os.path.join(self.server.data, "index")):
                if time.monotonic() > deadline:
                    return [f"index folders of no key stay: {left}"]
                connection.value("SAVE")
                time.sleep(0.2)
        return self.die()

    def run(self, seconds):
        until, faults = time.monotonic() + seconds, []
        try:
            self.server.start().stop()  # before it there is no directory to verify
            for kind in ROUNDS * 1_000_000:
                faults = [f"round of kind {kind}: {fault}" for fault in self.play_round(kind)]
                if faults or time.monotonic() > until:
                    break
            faults = faults or self.check_leftovers()
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            faults = [repr(error)]
        if faults:
            self.server.kill()
            faults += [self.keep_directory(), self.server.log()[-3000:]]
        return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    server_argument(parser)
    parser.add_argument("--tool", help="path of hotkv-tool")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--io", action="append", choices=["auto", "epoll", "uring"])
    parser.add_argument("--keep", help="folder for directories at fault; otherwise a new one")
    options = parser.parse_args()
    if not options.server or not options.tool:
        skip("no --server or no --tool")
    failed = False
    only_epoll = "epoll" in os.environ.get("HOTKV_SERVER_OPTIONS", "")
    for io in options.io or (["epoll"] if only_epoll else ["epoll", "auto"]):
        with Server("hotkv", options.server, ["--io", io, "--threads", "3", "--stripes", "64"]) as server:
            storm = Storm(server, options.tool, options.seed, options.keep)
            faults = storm.run(options.seconds)
            print(f"{io}, seed {options.seed}: {storm.kills} kills, {storm.commands} changes with a known state, "
                  f"{len(faults)} faults", flush=True)
            for fault in faults:
                print("  " + fault)
            failed = failed or bool(faults)
    sys.exit(failed)


if __name__ == "__main__":
    main()
