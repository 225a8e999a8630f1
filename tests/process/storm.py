#!/usr/bin/python3
"""Clients that send anything at all, together, while snapshots, reloads, evictions and changes of settings run.

  storm.py --server build/dev/bin/hotkv-server                 a few seconds on each I/O back end
  storm.py --server … --seconds 60 --rounds 10 --seed 7        the long run

Each client sends pipelines, whole or in pieces: commands that make sense, the same with an argument changed, and any command
of COMMAND LIST with arguments of any kind. Every reply must be of its protocol, and behind each pipeline the answer to an
ECHO must come: a stream out of step shows at once. Then the server is killed or stopped and started again, and must hold
the same keys with the same values and ends as before.
"""
import argparse
import os
import random
import socket
import struct
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from servers import Connection, Server, decode, encode, server_argument, skip  # noqa: E402

CLIENTS = 4
LIMITS = """0 -1 1 2 3 10 100 9223372036854775807 -9223372036854775808 9223372036854775808 18446744073709551615 2147483647
2147483648 4294967295 4294967296 1e400 nan inf -inf 0.1 1e-320 -0 +1 01 0x10 * ? [ \\ 536870912 1099511627776 9007199254740993
1700000000 99999999999999 9223372036854775""".split() + ["", " 1", "\0", "\r\n"]
WORDS = """NX XX GT LT EX PX EXAT GET KEEPTTL COUNT MATCH TYPE DB REPLACE ASYNC SYNC IDX LEN HELP ON OFF yes no IFEQ BYINT ELE
VALUES FP32 FILTER K EF WITHSCORES RAW EXPLAIN RANGE CAS SETATTR""".split()
ATTRIBUTES = ['{"a":1,"t":"x"}', '{"a":[1,"x"],"t":"y"}', '{"a":null,"t":true}', "{}", "no json", "", "[" * 500]
FILTERS = [".a == 1", ".t in ['x','y'] and .a > 0", "not .a", ".a / 0 > 1", "((((.a", ".zz", "!" * 1000 + ".a", "1"]
POLICIES = """noeviction allkeys-lru allkeys-lfu allkeys-random volatile-lru volatile-lfu volatile-random volatile-ttl""".split()
# What would end the server, a connection or the test itself.
NEVER = {"SHUTDOWN", "QUIT", "MONITOR", "AUTH", "HELLO", "RESET", "WAIT", "WAITAOF"}
NEVER_BELOW = {("CLIENT", "REPLY"), ("CLIENT", "KILL"), ("CLIENT", "PAUSE"), ("CONFIG", "SET"), ("CONFIG", "REWRITE"),
               ("DEBUG", "SLEEP"), ("DEBUG", "SEGFAULT"), ("DEBUG", "PANIC"), ("DEBUG", "POPULATE"),
               ("DEBUG", "SET-ACTIVE-EXPIRE")}


def text(word):
    return (word if isinstance(word, bytes) else str(word).encode()).upper().decode("latin1")


def is_harmless(words):
    return text(words[0]) not in NEVER and (len(words) < 2 or (text(words[0]), text(words[1])) not in NEVER_BELOW)


class Source:
    def __init__(self, seed, names):
        self.rng, self.names = random.Random(seed), names

    def key(self):
        return f"k{self.rng.randrange(25)}"

    def index(self):
        return f"i{self.rng.randrange(5)}"

    def element(self):
        return f"e{self.rng.randrange(60)}"

    def number(self):
        return self.rng.choice(LIMITS) if self.rng.random() < 0.2 else self.rng.randrange(100)

    def life(self):
        return self.rng.choice([[], [], ["EX", self.rng.randrange(5000, 90000)], ["PX", self.rng.randrange(1, 60)],
                                ["EX", self.number()]])

    def vector(self):
        numbers = [self.rng.choice([self.rng.uniform(-1, 1)] * 40 + [0.0, float("nan"), 1e38]) for _ in range(8)]
        return self.rng.choice([["FP32", struct.pack("<8f", *numbers)], ["VALUES", 8] + numbers,
                                ["ELE", self.element()]])

    def anything(self):
        kind = self.rng.randrange(8)
        if kind < 3:
            return [self.key, self.index, self.element][kind]()
        if kind < 6:
            return self.rng.choice([LIMITS, WORDS, ATTRIBUTES][kind - 3])
        if kind == 6:
            return self.rng.getrandbits(64).to_bytes(8, "little")
        return "x" * self.rng.choice([100, 5000, 70000])

    def on_strings(self):
        key, value = self.key(), self.rng.choice([self.number(), "v" * self.rng.choice([1, 11, 12, 100, 70000])])
        return self.rng.choice([
            ["SET", key, value] + self.life(), ["SET", key, value], ["GET", key], ["INCRBY", key, self.number()],
            ["APPEND", key, value], ["SETRANGE", key, self.rng.randrange(300), value], ["MSET", key, 1, self.key(), value],
            ["MGET", key, self.key()], ["DEL", key, self.index()], ["EXPIRE", key, self.number()], ["PERSIST", key],
            ["RENAME", key, self.key()], ["COPY", key, self.key(), "REPLACE"], ["MOVE", key, self.rng.randrange(3)],
            ["SCAN", 0, "COUNT", self.number()], ["WATCH", key], ["MULTI"], ["EXEC"], ["EXEC"], ["DISCARD"],
            ["SELECT", self.rng.choice([0, 0, 0, 1, 2])], ["GETEX", key] + self.life(), ["SWAPDB", 0, 1],
            ["GETDEL", key], ["OBJECT", "ENCODING", key]])

    def on_vectors(self):
        index, element = self.index(), self.element()
        return self.rng.choice([
            ["VSIM.CREATEINDEX", index, "DIM", 8, "TYPE", self.rng.choice(["F32", "F16", "Q8", "Q4"]), "M", 4],
            ["VSIM.SET", index, element] + self.vector() + self.life(),
            ["VSIM.SET", index, element] + self.vector() + ["ATTR", self.rng.choice(ATTRIBUTES)],
            ["VSIM.SET", index, element] + self.vector(),
            ["VSIM.MSET", index, 2, element] + self.vector() + [self.element()] + self.vector(),
            ["VSIM.DEL", index, element], ["VSIM.GET", index, element, "WITHATTR"],
            ["VSIM.SEARCH", index] + self.vector() + ["K", self.number(), "WITHSCORES", "WITHATTR"],
            ["VSIM.SEARCH", index] + self.vector() + ["FILTER", self.rng.choice(FILTERS)],
            ["VSIM.MSEARCH", index, 2] + self.vector() + self.vector(), ["VSIM.INFO", index],
            ["VSIM.EXPIRE", index, element, "PX", 20], ["VSIM.SETATTR", index, element, self.rng.choice(ATTRIBUTES)],
            ["VSIM.ALTER", index, "FIELDS", 2, "a", "NUMERIC", "t", "TAG"], ["VSIM.REBUILD", index, "M", 5],
            ["VSIM.DELWHERE", index, "FILTER", self.rng.choice(FILTERS)], ["VSIM.DROPINDEX", index],
            ["VSIM.SCAN", index, 0, "COUNT", self.number()], ["COPY", index, self.index(), "REPLACE"],
            ["RENAME", index, self.index()], ["VADD", index] + self.vector() + [element], ["VREM", index, element],
            ["VSIM", index] + self.vector() + ["WITHSCORES", "COUNT", self.number()], ["VRANDMEMBER", index, 3],
            ["VLINKS", index, element, "WITHSCORES"], ["VEMB", index, element]])

    def on_server(self):
        return self.rng.choice([
            ["BGSAVE"], ["BGREWRITEAOF"], ["SAVE"], ["DEBUG", "RELOAD"], ["DEBUG", "RELOAD", "NOSAVE"], ["DEBUG", "LOADAOF"],
            ["CONFIG", "SET", "appendonly", self.rng.choice(["yes", "no"])],
            ["CONFIG", "SET", "appendfsync", self.rng.choice(["always", "everysec", "no"])],
            ["CONFIG", "SET", "maxmemory", self.rng.choice([0, 0, 0, 0, 0, 300000])],
            ["CONFIG", "SET", "maxmemory-policy", self.rng.choice(POLICIES)],
            ["CONFIG", "GET", "*"], ["INFO", "everything"], ["CLIENT", "LIST"], ["DEBUG", "DIGEST"], ["COMMAND"],
            ["FLUSHALL" if self.rng.random() < 0.1 else "DBSIZE"], ["SLOWLOG", "GET", self.number()], ["MEMORY", "STATS"]])

    def changed(self, words):
        at = self.rng.randrange(1, len(words)) if len(words) > 1 else 0
        how = self.rng.randrange(3)
        if at and how == 0:
            words[at] = self.anything()
        elif at and how == 1:
            del words[at]
        else:
            words.append(self.anything())
        return words

    def command(self):
        while True:
            kind = self.rng.random()
            if kind < 0.04:
                return self.on_server()
            if kind < 0.8:
                words = self.on_strings() if kind < 0.35 else self.on_vectors()
                words = self.changed(words) if self.rng.random() < 0.15 else words
            else:
                words = self.rng.choice(self.names).split("|") + [self.anything() for _ in range(self.rng.randrange(6))]
            if is_harmless(words):
                return words


def send_in_pieces(client, data, rng):
    while data:
        size = rng.choice([1, 2, 7, 100, 1000])
        client.send(data[:size])
        data = data[size:]


def is_resp2(frame):
    return frame[:1] in (b"+", b"-", b":", b"$", b"*")


def storm(server, seed, names, until, faults, counts):
    source, rng = Source(seed, names), random.Random(seed)
    while time.monotonic() < until and not faults:
        protocol = rng.choice([2, 3])
        with Connection(server.port, protocol=protocol, timeout=60) as client:
            for _ in range(rng.randrange(1, 12)):
                commands = [source.command() for _ in range(rng.choice([1, 5, 40]))]
                token = f"token{rng.getrandbits(48)}"
                data = b"".join(encode(words) for words in commands + [["DISCARD"], ["ECHO", token]])
                if len(data) < 5000 and rng.random() < 0.2:
                    send_in_pieces(client, data, rng)
                else:
                    client.send(data)
                for words in commands:
                    frame = client.read()
                    decode(frame)
                    if protocol == 2 and not is_resp2(frame):
                        faults.append(f"{words!r:.300} was answered {frame[:80]!r} in RESP2")
                client.read()
                if decode(client.read()) != token.encode():
                    faults.append(f"out of step behind {commands!r:.2000}")
                    return
                counts.append(len(commands))
            if rng.random() < 0.3:
                client.send(encode(["SET", "k1", "half a command"])[:rng.randrange(1, 30)])
            elif rng.random() < 0.3:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def run_storm(server, seed, seconds):
    """Faults that the clients saw, and how many commands they sent."""
    with server.connect() as client:
        names = [name.decode() for name in client.value("COMMAND", "LIST")]
    faults, counts = [], []
    until = time.monotonic() + seconds

    def run(number):
        try:
            storm(server, seed * 100 + number, names, until, faults, counts)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the test is for
            faults.append(f"client {number}: {error!r}")

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults, sum(counts)


def settle(client):
    """Settings under which nothing goes by itself, and a log that has everything."""
    for name, value in (("maxmemory", 0), ("appendonly", "yes"), ("appendfsync", "everysec")):
        client.value("CONFIG", "SET", name, value)
    for _ in range(600):
        info = client.value("INFO", "persistence").decode()
        if "rdb_bgsave_in_progress:0" in info and "aof_rewrite_in_progress:0" in info:
            break
        time.sleep(0.1)
    time.sleep(1.5)  # elements and keys with short lives are gone, and a snapshot that the log's begin wants is made
    return client.value("WAITAOF", 1, 0, 20000) == [1, 0]


def contents(client):
    found = {}
    for db in range(16):
        client.value("SELECT", db)
        cursor = b"0"
        while True:
            cursor, keys = client.value("SCAN", cursor, "COUNT", 1000)
            for key in keys:
                ends = client.value("PEXPIRETIME", key)
                if ends != -2:
                    found[db, key] = (client.value("TYPE", key), ends, client.value("DEBUG", "DIGEST-VALUE", key))
            if cursor == b"0":
                break
    return found


def round_of(server, seed, seconds):
    faults, commands = run_storm(server, seed, seconds)
    if server.process.poll() is not None:
        return faults + [f"the server ended with {server.process.returncode}:\n{server.log()[-4000:]}"], commands
    with server.connect(timeout=60) as client:
        if not settle(client):
            faults.append("the log does not become durable: " + client.value("INFO", "persistence").decode())
        before = contents(client)
    server.kill() if seed % 2 else server.stop()
    server.start()
    with server.connect(timeout=60) as client:
        after = contents(client)
    now_ms = time.time() * 1000
    for place in sorted(set(before) | set(after)):
        ended = place in before and 0 < before[place][1] <= now_ms
        if before.get(place) != after.get(place) and not ended:
            faults.append(f"{place} was {before.get(place)} and is {after.get(place)} after a restart")
    return faults, commands


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    server_argument(parser)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not options.server:
        skip("no --server")
    failed = False
    for io in ["epoll"] if "epoll" in os.environ.get("HOTKV_SERVER_OPTIONS", "") else ["epoll", "auto"]:
        with Server("hotkv", options.server, ["--io", io, "--threads", "4", "--stripes", "64"]) as server:
            server.start()
            for seed in range(options.seed, options.seed + options.rounds):
                faults, commands = round_of(server, seed, options.seconds)
                print(f"{io}, seed {seed}: {commands} commands, {len(faults)} faults", flush=True)
                for fault in faults[:10]:
                    print("  " + fault)
                failed = failed or bool(faults)
                if server.process.poll() is not None:
                    break
    sys.exit(failed)


if __name__ == "__main__":
    main()
