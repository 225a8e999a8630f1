#!/usr/bin/python3
"""Kills a server under load with SIGKILL, starts it again, and compares what it holds with what its clients were told.

  kill9.py --server build/dev/bin/hotkv-server            20 rounds
  kill9.py --server … --rounds 200 --writes 10000000      the long run
  kill9.py --self-test                                    the checks against a server that loses data on purpose

Each connection runs the same iteration over and over, pipelined, and records when each reply came:

  INCR cnt:C                   its own counter: n
  SET u:C:n n                  a key of its own for each iteration
  MULTI                        two copies of n, and a transfer between accounts of all connections
    SET x:C n   SET y:C n   INCRBY acc:I -d   INCRBY acc:J d
  EXEC
  SET seen:C v                 the newest value of `shared` that it had been told before it sent this
  INCR shared

After a restart the data must be an exact earlier moment: per connection a prefix of that sequence (cnt >= u >= x = y >=
cnt - 1, no hole in u), accounts that sum to 0, no `seen` ahead of `shared`. Under appendfsync always nothing that was
acknowledged may be missing. Under everysec and no the process dies but not the kernel: what was acknowledged over 50 ms
before the kill should be there. A round that misses this is late; a quarter of them may be (a starved machine), with
--strict none; and nothing older than a second may ever be missing.
"""
import argparse
import os
import random
import selectors
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from servers import Server, encode, server_argument, skip  # noqa: E402

POLICIES = ["always", "everysec", "no"]
SLACK_SECONDS, LOSS_SECONDS_MAX = 0.050, 1.0
ACCOUNTS = 16
WRITES_PER_ITERATION = 8
# Lines of reply to one iteration: INCR 1, SET 1, MULTI 1, 4 QUEUED, EXEC 1 + 4, SET 1, INCR 1.
LINES = 14
LINES_COUNTER, LINES_KEY, LINES_EXEC, LINES_SHARED = 1, 2, 12, 14
CHUNK = 200


class Client:
    """One connection: what it sent and what it was told. Iterations are numbered from 1 over all rounds."""

    def __init__(self, number):
        self.number = number
        self.done = 0      # iterations known to be in the data
        self.sent = 0      # iterations sent at all
        self.told_shared = 0
        self.acknowledged = []  # (time, lines received in this round, newest shared)
        self.lines, self.rest = 0, b""
        self.error = None
        self.socket = None

    def begin(self, connection):
        self.socket = connection.socket
        self.socket.setblocking(False)
        self.sent = self.done
        self.base = self.done
        self.acknowledged = []
        self.lines, self.rest, self.out = 0, b"", b""

    def batch(self, rng, size):
        parts = []
        me = self.number
        for n in range(self.sent + 1, self.sent + size + 1):
            amount = rng.randint(1, 100)
            start, end = rng.sample(range(ACCOUNTS), 2)
            for words in (("INCR", f"cnt:{me}"), ("SET", f"u:{me}:{n}", n), ("MULTI",), ("SET", f"x:{me}", n),
                          ("SET", f"y:{me}", n), ("INCRBY", f"acc:{start}", -amount), ("INCRBY", f"acc:{end}", amount),
                          ("EXEC",), ("SET", f"seen:{me}", self.told_shared), ("INCR", "shared")):
                parts.append(encode(words))
        self.sent += size
        self.out += b"".join(parts)
        self.send()

    def send(self):
        try:
            while self.out:
                self.out = self.out[self.socket.send(self.out):]
        except BlockingIOError:
            pass
        except OSError:
            self.out = b""

    def outstanding(self):
        return self.base + self.lines // LINES < self.sent

    def receive(self, now):
        """Reads what is there; False once the connection is closed."""
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not data:
            return False
        lines = (self.rest + data).split(b"\r\n")
        self.rest = lines.pop()
        for i, line in enumerate(lines, self.lines):
            place = i % LINES
            if line[:1] == b"-":
                self.error = self.error or line.decode("latin1")
            elif place == 0 and line != b":%d" % (self.base + i // LINES + 1):
                self.error = self.error or f"INCR cnt:{self.number} answered {line!r} in iteration {self.base + i // LINES + 1}"
            elif place == LINES - 1:
                self.told_shared = int(line[1:])
        self.lines += len(lines)
        self.acknowledged.append((now, self.lines, self.told_shared))
        return True

    def promised(self, lines):
        """(counter, key, transaction) that so many lines of replies promised."""
        whole, part = divmod(lines, LINES)
        whole += self.base
        return whole + (part >= LINES_COUNTER), whole + (part >= LINES_KEY), whole + (part >= LINES_EXEC)

    def first_lost(self, found, shared_found):
        """(moment, what was promised) of the first acknowledgement that the data does not keep; None if all are kept."""
        for moment, lines, shared in self.acknowledged:
            promised = self.promised(lines)
            if shared > shared_found or any(want > have for want, have in zip(promised, found)):
                return moment, (*promised, shared)
        return None


class Round:
    """Loads the server until the moment of the kill and a little beyond: what had been sent by then is still read."""

    def __init__(self, server, clients, rng, options):
        self.server, self.clients, self.rng, self.options = server, clients, rng, options
        self.selector = selectors.DefaultSelector()

    def run(self, seconds):
        connections = [self.server.connect() for _ in self.clients]
        for client, connection in zip(self.clients, connections):
            client.begin(connection)
            self.selector.register(client.socket, selectors.EVENT_READ, client)
            client.batch(self.rng, self.rng.randint(1, self.options.batch))
        control = self.server.connect() if self.rng.random() < 0.5 else None
        start = time.monotonic()
        save_at = start + self.rng.random() * seconds
        kill_at = start + seconds
        while (now := time.monotonic()) < kill_at:
            if control and now >= save_at:
                control.send(encode([self.rng.choice(["BGSAVE", "BGREWRITEAOF"])]))
                save_at = kill_at + 1
            self.step(min(kill_at - now, 0.01))
        outstanding = any(client.outstanding() for client in self.clients)
        killed = time.monotonic()
        self.server.kill()
        for client in self.clients:
            while client.receive(killed):
                pass
        self.selector.close()
        for connection in connections + ([control] if control else []):
            connection.close()
        return killed, outstanding

    def step(self, timeout):
        for key, _ in self.selector.select(timeout):
            client = key.data
            if not client.receive(time.monotonic()):
                client.error = client.error or "the server closed the connection before it was killed"
                self.selector.unregister(client.socket)
        for client in self.clients:
            if client.out:
                client.send()
            elif client.sent - client.base - client.lines // LINES < self.options.batch // 2 + 1:
                client.batch(self.rng, self.rng.randint(1, self.options.batch))


class Checker:
    def __init__(self, server, clients):
        self.clients = clients
        self.connection = server.connect()
        self.violations = []

    def number(self, key):
        value = self.connection.value("GET", key)
        if isinstance(value, Exception):
            self.violations.append(f"GET {key}: {value}")
        return int(value) if isinstance(value, bytes) else 0

    def fail(self, kind, text):
        self.violations.append(f"{kind}: {text}")

    def check(self, killed, always):
        """Compares with what the clients were told; returns how old the oldest lost acknowledgement was at the kill."""
        shared, worst = self.number("shared"), 0.0
        for client in self.clients:
            me = client.number
            counter, x, y = self.number(f"cnt:{me}"), self.number(f"x:{me}"), self.number(f"y:{me}")
            key = self.last_key(client)
            lost = client.first_lost((counter, key, x), shared)
            if lost:
                age = killed - lost[0]
                worst = max(worst, age)
                if always or age > LOSS_SECONDS_MAX:
                    self.fail("lost", f"connection {me}: counter, key, transaction, shared are {counter, key, x, shared}; "
                                      f"{lost[1]} were acknowledged {age * 1000:.0f} ms before the kill")
            if x != y:
                self.fail("torn", f"connection {me}: x {x}, y {y}")
            if not (counter >= key >= x >= counter - 1):
                self.fail("not a moment", f"connection {me}: counter {counter}, key {key}, transaction {x}")
            if counter > client.sent:
                self.fail("invented", f"connection {me}: counter {counter}, sent were {client.sent}")
            if (seen := self.number(f"seen:{me}")) > shared:
                self.fail("not a moment", f"connection {me} had seen {seen}, shared is {shared}")
            client.counter, client.key = counter, key
            client.told_shared = min(client.told_shared, shared)  # what was told and lost is not told on
        accounts = sum(self.number(f"acc:{i}") for i in range(ACCOUNTS))
        if accounts != 0:
            self.fail("torn", f"the accounts sum to {accounts}, not 0")
        return worst

    def values(self, me, numbers):
        return self.connection.value("MGET", *(f"u:{me}:{n}" for n in numbers))

    def last_key(self, client):
        """The last iteration whose key is there; complains about holes and wrong values since the last check."""
        last, hole = client.done, None
        for start in range(client.done + 1, client.sent + 1, CHUNK):
            numbers = range(start, min(start + CHUNK, client.sent + 1))
            for n, value in zip(numbers, self.values(client.number, numbers)):
                if value is None:
                    hole = hole or n
                elif value != b"%d" % n:
                    self.fail("wrong", f"u:{client.number}:{n} is {value!r}")
                elif hole:
                    self.fail("not a moment", f"u:{client.number}:{n} is there, u:{client.number}:{hole} is not")
                    hole = None
                    last = n
                else:
                    last = n
        return last

    def check_size(self):
        """Older keys are still there: the number of all keys is known."""
        names = {"shared"} if self.connection.value("EXISTS", "shared") else set()
        fixed = [f"{kind}:{c.number}" for c in self.clients for kind in ("cnt", "x", "y", "seen")]
        fixed += [f"acc:{i}" for i in range(ACCOUNTS)]
        expected = len(names) + self.connection.value("EXISTS", *fixed) + sum(c.key for c in self.clients)
        size = self.connection.value("DBSIZE")
        if size != expected:
            self.fail("lost" if size < expected else "invented", f"DBSIZE {size}, should be {expected}")

    def check_all_keys(self):
        for client in self.clients:
            for start in range(1, client.key + 1, CHUNK):
                numbers = range(start, min(start + CHUNK, client.key + 1))
                for n, value in zip(numbers, self.values(client.number, numbers)):
                    if value != b"%d" % n:
                        self.fail("lost", f"u:{client.number}:{n} is {value!r}")
                        return

    def close_the_gap(self):
        """Finishes a half-done last iteration, so that the next round starts with whole ones."""
        for client in self.clients:
            me, n = client.number, client.counter
            commands = [("SET", f"u:{me}:{n}", n), ("SET", f"x:{me}", n), ("SET", f"y:{me}", n)] if n else []
            self.connection.pipeline(commands)
            client.done = client.key = client.sent = n


def play(options, program, arguments=()):
    rng = random.Random(options.seed)
    clients = [Client(i) for i in range(options.connections)]
    totals = {"writes": 0, "acknowledged": 0, "outstanding": 0, "rounds": 0, "late": 0, "worst": 0.0}
    violations = []
    with Server("hotkv", program, arguments) as server:
        base_options = list(server.options)
        while not violations and (totals["rounds"] < options.rounds or totals["writes"] < options.writes):
            policy = options.policies[totals["rounds"] % len(options.policies)]
            server.options = base_options + ["--appendfsync", policy]
            server.start()
            killed, outstanding = Round(server, clients, rng, options).run(
                options.min_seconds + rng.random() * (options.max_seconds - options.min_seconds))
            totals["rounds"] += 1
            totals["outstanding"] += outstanding
            totals["writes"] += sum((c.sent - c.base) * WRITES_PER_ITERATION for c in clients)
            totals["acknowledged"] += sum(c.lines // LINES * WRITES_PER_ITERATION for c in clients)
            violations += [f"error reply: {c.error}" for c in clients if c.error]
            server.start()
            checker = Checker(server, clients)
            worst = checker.check(killed, policy == "always")
            totals["worst"] = max(totals["worst"], worst)
            totals["late"] += worst > SLACK_SECONDS
            checker.check_size()
            if totals["rounds"] >= options.rounds and totals["writes"] >= options.writes:
                checker.check_all_keys()
            checker.close_the_gap()
            violations += [f"round {totals['rounds']} ({policy}, seed {options.seed}): {text}"
                           for text in checker.violations]
            checker.connection.close()
            violations += end_of_check(server, totals["rounds"])
            if options.verbose:
                print(f"round {totals['rounds']} {policy}: {totals['writes']} writes so far, "
                      f"{'with' if outstanding else 'no'} replies outstanding, lost the last {worst * 1000:.0f} ms", flush=True)
        if totals["late"] > (0 if options.strict else totals["rounds"] / 4):
            violations.append(f"lost: in {totals['late']} rounds what was acknowledged over {SLACK_SECONDS * 1000:.0f} ms "
                              f"before the kill, at worst {totals['worst'] * 1000:.0f} ms")
        if violations and options.keep:
            server.own_folder = False
            print(f"kept: {server.folder}")
        elif violations:
            print(server.log()[-2000:])
    return totals, violations


def end_of_check(server, number):
    """Every other time a clean stop, else one more crash soon after the recovery."""
    if number % 2:
        code = server.stop()
        return [] if code == 0 else [f"a clean stop ended with code {code}"]
    time.sleep(2 * SLACK_SECONDS)
    server.kill()
    return []


def self_test(options):
    """The checks must find each fault of a server made for it, and none in an honest one."""
    program = os.path.join(HERE, "lossy_server.py")
    failed = False
    options.writes, options.batch = 0, 4
    options.min_seconds, options.max_seconds, options.connections = 0.05, 0.25, 5
    for fault, kinds in (("none", ()), ("early-ack", ("lost",)), ("torn", ("torn",)), ("reorder", ("not a moment",)),
                         ("forget", ("lost", "not a moment", "error reply")), ("split", ("not a moment",))):
        options.rounds = 6 if fault == "none" else 20
        # These two keep their promise to clients and still leave states that never were.
        options.policies = ["no"] if fault in ("reorder", "split") else POLICIES
        _, violations = play(options, program, ["--fault", fault])
        found = any(kind + ":" in text for text in violations for kind in kinds)
        good = found if kinds else not violations
        failed = failed or not good
        print(f"{fault}: {'as it should be' if good else 'WRONG'}; {violations[:1] or 'no violations'}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    server_argument(parser)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--writes", type=int, default=0, help="go on until so many writes were sent")
    parser.add_argument("--policies", default=POLICIES, type=lambda text: text.split(","))
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--batch", type=int, default=30, help="most iterations a connection sends at once")
    parser.add_argument("--min-seconds", type=float, default=0.1)
    parser.add_argument("--max-seconds", type=float, default=1.2)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--option", action="append", default=[], help="further argument for the server")
    parser.add_argument("--strict", action="store_true", help="no round may be late")
    parser.add_argument("--keep", action="store_true", help="keep the data of a failed run")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test(options)
    if not options.server:
        skip("no server given")
    totals, violations = play(options, options.server, options.option)
    for text in violations[:20]:
        print(text)
    print(f"kill9: {totals['rounds']} rounds (seed {options.seed}), {totals['writes']} writes sent, "
          f"{totals['acknowledged']} acknowledged, replies outstanding at the kill in {totals['outstanding']} rounds, "
          f"of what had been acknowledged up to {totals['worst'] * 1000:.0f} ms before the kill was lost, "
          f"{totals['late']} rounds late, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
