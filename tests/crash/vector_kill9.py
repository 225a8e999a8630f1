#!/usr/bin/env python3
"""kill -9 of the real server while clients insert, replace and delete vectors, change attributes and ends, and copy and
rebuild the index, with snapshots in between.

Under appendfsync always, after each restart: every acknowledged element is there with its exact vector, attributes and
end, every acknowledged deletion has held, what was outstanding is either its old or its new state, elements past their
end are gone, and exact searches over the socket agree with a scan of what the server says it holds, and so does a count by a field. A copy that was
acknowledged is there; one that was made while clients wrote holds only what they had written.

  vector_kill9.py --server build/dev/bin/hotkv-server [--rounds 6] [--seed 1]
"""
import argparse
import math
import os
import random
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import servers  # noqa: E402

DIM = 24
ELEMENTS_PER_CLIENT = 150
CLIENTS = 4
# Ends are far away and far apart: read back as seconds from now, each is still told from the next.
END_BASE = int(time.time()) + 1_000_000
END_STEP = 1000


def blob(vector):
    return struct.pack(f"<{DIM}f", *vector)


class Writer(threading.Thread):
    """Owns elements c<number>:<i>. acked[id]: (blob, attr, end) or None when deleted; pending: what was sent last,
    unanswered. history: every vector that was sent under a name."""

    def __init__(self, number, port, seed, acked, history):
        super().__init__()
        self.number, self.port, self.acked, self.history = number, port, acked, history
        self.random = random.Random(seed)
        self.pending = None
        self.operations = 0

    def run(self):
        try:
            with servers.Connection(self.port) as connection:
                while True:
                    self.step(connection)
        except (OSError, ConnectionError, servers.Incomplete):
            pass

    def step(self, connection):
        name = f"c{self.number}:{self.random.randrange(ELEMENTS_PER_CLIENT)}"
        old = self.acked.get(name)
        dice = self.random.random()
        attr = f'{{"n":{self.operations}}}'
        end = self.random.randrange(1, 50) if self.random.random() < 0.5 else 0
        expected = 1 if old else 0
        if dice < 0.25:
            self.pending = (name, None)
            reply = connection.value("VSIM.DEL", "index", name)
        elif dice < 0.35:
            self.pending = (name, old and (old[0], attr, old[2]))
            reply = connection.value("VSIM.SETATTR", "index", name, attr)
        elif dice < 0.45:
            self.pending = (name, old and (old[0], old[1], end))
            words = ["EXAT", str(END_BASE + end * END_STEP)] if end else ["PERSIST"]
            reply = connection.value("VSIM.EXPIRE", "index", name, *words)
            if not end and old and not old[2]:
                expected = 0  # it had none
        else:
            state = (blob([self.random.gauss(0, 1) for _ in range(DIM)]), attr, end)
            self.history.setdefault(name, set()).add(state[0])
            self.pending = (name, state)
            words = ["EXAT", str(END_BASE + end * END_STEP)] if end else []
            reply = connection.value("VSIM.SET", "index", name, "FP32", state[0], "ATTR", attr, *words)
            expected = 0 if old else 1
            if dice > 0.9:
                connection.value("VSIM.SET", "index", f"short:{self.number}:{self.operations}", "FP32", state[0],
                                 "PX", "30")
        if reply != expected:
            raise SystemExit(f"{name}: reply {reply!r}, expected {expected!r}")
        self.acked[name] = self.pending[1]
        self.pending = None
        self.operations += 1


def states_on_server(connection, names):
    states = {}
    for name in names:
        reply = connection.value("VSIM.GET", "index", name, "RAW", "WITHATTR")
        if reply is None:
            states[name] = None
            continue
        ttl = connection.value("VSIM.TTL", "index", name)
        end = 0 if ttl == -1 else round((time.time() + ttl - END_BASE) / END_STEP)
        states[name] = (bytes(reply[0]), bytes(reply[1]).decode(), end)
    return states


class Copier(threading.Thread):
    """Copies the index over and over while clients write, and has it rebuilt."""

    def __init__(self, port, seed):
        super().__init__()
        self.port = port
        self.random = random.Random(seed)
        self.rebuilds = 0
        self.copies = 0

    def run(self):
        try:
            with servers.Connection(self.port) as connection:
                while connection.value("COPY", "index", "busy", "REPLACE") == 1:
                    self.copies += 1
                    words = ["TYPE", self.random.choice(["F32", "F16", "Q8", "Q4", "BIN"]), "M", self.random.choice(["4", "16"])]
                    reply = connection.value("VSIM.REBUILD", "index", *words)
                    self.rebuilds += 1 if reply == b"OK" or reply == "OK" else 0
        except (OSError, ConnectionError, servers.Incomplete):
            pass


def digest_of(connection, key):
    return connection.value("DEBUG", "DIGEST-VALUE", key)


# `quiet` was copied, and acknowledged, while nobody wrote.
def check_copies(connection, history, quiet_digest):
    faults = []
    if quiet_digest is not None and digest_of(connection, "quiet") != quiet_digest:
        faults.append("the acknowledged copy is not what it was")
    if connection.value("EXISTS", "busy"):
        for name, blobs in history.items():
            found = connection.value("VSIM.GET", "busy", name, "RAW")
            if found is not None and bytes(found) not in blobs:
                faults.append(f"the busy copy holds a vector of {name} that nobody wrote")
        if connection.value("VSIM.INFO", "busy") is None:
            faults.append("the busy copy does not answer")
    return faults


def same(found, wanted):
    if found is None or wanted is None:
        return found is wanted
    return found == wanted


def check_elements(connection, writers, acked):
    faults = []
    states = states_on_server(connection, [f"c{c}:{i}" for c in range(CLIENTS) for i in range(ELEMENTS_PER_CLIENT)])
    outstanding = {w.pending[0]: w.pending[1] for w in writers if w.pending}
    for name, found in states.items():
        allowed = [acked.get(name)] + ([outstanding[name]] if name in outstanding else [])
        if not any(same(found, wanted) for wanted in allowed):
            faults.append(f"{name}: neither the acknowledged nor the outstanding state")
        acked[name] = found
    return faults


def check_searches(connection, acked, rng):
    faults = []
    live = {name: struct.unpack(f"<{DIM}f", state[0]) for name, state in acked.items() if state}
    for _ in range(5):
        query = [rng.gauss(0, 1) for _ in range(DIM)]
        order = sorted(live, key=lambda name: math.dist(query, live[name]))
        reply = connection.value("VSIM.SEARCH", "index", "FP32", blob(query), "K", "10", "EXACT")
        found = [bytes(name).decode() for name in reply]
        if found != order[:10]:
            faults.append(f"search: {found} instead of {order[:10]}")
    # The field's column counts what the attributes say.
    numbers = {name: int(state[1].split(":")[1].rstrip("}")) for name, state in acked.items() if state}
    limit = rng.choice(sorted(numbers.values())) if numbers else 0
    wanted = sum(1 for number in numbers.values() if number >= limit)
    count = connection.value("VSIM.COUNT", "index", "FILTER", f".n >= {limit}")
    if count != wanted:
        faults.append(f"{count} elements with n >= {limit} by the filter, {wanted} by their attributes")
    return faults


def play_round(server, number, rng, acked, history, digests):
    writers = [Writer(c, server.port, rng.random(), acked, history) for c in range(CLIENTS)]
    copier = Copier(server.port, rng.random())
    for thread in [*writers, copier]:
        thread.start()
    time.sleep(rng.uniform(0.2, 0.8))
    if number % 2 == 0:
        with servers.Connection(server.port) as connection:
            connection.value("BGSAVE")
        time.sleep(rng.uniform(0, 0.4))
    server.kill()
    for thread in [*writers, copier]:
        thread.join()
    time.sleep(0.05)  # past the ends of the short ones
    server.start()
    with servers.Connection(server.port) as connection:
        faults = check_elements(connection, writers, acked) + check_searches(connection, acked, rng)
        faults += check_copies(connection, history, digests.get("quiet"))
        reply = connection.value("COPY", "index", "quiet", "REPLACE")
        if reply != 1:
            faults.append(f"COPY answered {reply!r}")
        digests["quiet"] = digest_of(connection, "quiet")
        if digests["quiet"] != digest_of(connection, "index"):
            faults.append("a copy differs from its source")
    operations = sum(w.operations for w in writers)
    print(f"round {number}: {operations} acknowledged, {sum(1 for w in writers if w.pending)} outstanding at the kill, "
          f"{copier.copies} copies, {copier.rebuilds} rebuilds begun")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    acked = {}
    history = {}
    digests = {}
    faults = []
    with servers.Server("hotkv", options.server, ["--appendfsync", "always", "--enable-debug-command", "yes"]).start() as server:
        with servers.Connection(server.port) as connection:
            connection.value("VSIM.CREATEINDEX", "index", "DIM", str(DIM), "METRIC", "L2", "FIELDS", "1", "n",
                             "NUMERIC")
        for number in range(1, options.rounds + 1):
            faults = play_round(server, number, rng, acked, history, digests)
            if faults:
                break
    for fault in faults[:20]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
