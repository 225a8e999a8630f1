#!/usr/bin/env python3
"""kill -9 of the real server while clients insert, replace and delete vectors, with snapshots in between.

Under appendfsync always, after each restart: every acknowledged element is there with its exact vector and attributes,
every acknowledged deletion has held, what was outstanding is either its old or its new state, and exact searches over
the socket agree with a scan of what the server says it holds.

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


def blob(vector):
    return struct.pack(f"<{DIM}f", *vector)


class Writer(threading.Thread):
    """Owns elements c<number>:<i>. acked[id]: (blob, attr) or None when deleted; pending: what was sent last, unanswered."""

    def __init__(self, number, port, seed, acked):
        super().__init__()
        self.number, self.port, self.acked = number, port, acked
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
        if self.random.random() < 0.3:
            self.pending = (name, None)
            reply = connection.value("VSIM.DEL", "index", name)
            expected = 1 if self.acked.get(name) else 0
        else:
            state = (blob([self.random.gauss(0, 1) for _ in range(DIM)]), f'{{"n":{self.operations}}}')
            self.pending = (name, state)
            reply = connection.value("VSIM.SET", "index", name, "FP32", state[0], "ATTR", state[1])
            expected = 0 if self.acked.get(name) else 1
        if reply != expected:
            raise SystemExit(f"{name}: reply {reply!r}, expected {expected!r}")
        self.acked[name] = self.pending[1]
        self.pending = None
        self.operations += 1


def states_on_server(connection, names):
    states = {}
    for name in names:
        reply = connection.value("VSIM.GET", "index", name, "RAW", "WITHATTR")
        states[name] = None if reply is None else (bytes(reply[0]), bytes(reply[1]).decode())
    return states


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
    return faults


def play_round(server, number, rng, acked):
    writers = [Writer(c, server.port, rng.random(), acked) for c in range(CLIENTS)]
    for writer in writers:
        writer.start()
    time.sleep(rng.uniform(0.2, 0.8))
    if number % 2 == 0:
        with servers.Connection(server.port) as connection:
            connection.value("BGSAVE")
        time.sleep(rng.uniform(0, 0.4))
    server.kill()
    for writer in writers:
        writer.join()
    server.start()
    with servers.Connection(server.port) as connection:
        faults = check_elements(connection, writers, acked) + check_searches(connection, acked, rng)
    operations = sum(w.operations for w in writers)
    print(f"round {number}: {operations} acknowledged, {sum(1 for w in writers if w.pending)} outstanding at the kill")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    acked = {}
    faults = []
    with servers.Server("hotkv", options.server, ["--appendfsync", "always"]).start() as server:
        with servers.Connection(server.port) as connection:
            connection.value("VSIM.CREATEINDEX", "index", "DIM", str(DIM), "METRIC", "L2")
        for number in range(1, options.rounds + 1):
            faults = play_round(server, number, rng, acked)
            if faults:
                break
    for fault in faults[:20]:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
