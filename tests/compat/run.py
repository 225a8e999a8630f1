#!/usr/bin/python3
"""Sends the same scripts of commands to Debian's redis-server (7.0) and to hotkv-server and compares the replies byte
for byte, in RESP2 and RESP3.

  run.py --server build/dev/bin/hotkv-server [script…]     default: all scripts beside this file
  run.py --against-itself                                  redis-server on both sides: checks the scripts

HotKV runs each script three times: command by command, with all commands of a connection in one write (pipelined), and
in random small pieces (fragmented). The format of the scripts is described in docs/testing.md. In short:

  SET k v                  a command, on connection A; "…" with escapes
  B| GET k                 on connection B
  @expect "+OK\\r\\n"        for the next command: HotKV's reply, where it is meant to differ from 7.0 (@expect2, @expect3
                           for one protocol); @new: the reference does not know the command and is not asked
  @unordered               arrays are compared as multisets (of pairs for maps)
  @near N                  integers may differ by N; moments (in s or ms since the epoch) count from the script's start
  @shape                   only types are compared, and array lengths
  @match REGEX             both replies match it (on latin-1 text)
  @until MS "bytes"        the command is sent again until this is its reply, at most so long
  @let NAME                keep the reply's text of each server as $NAME
  @only 2 | @only 3        only in that protocol
  @sleep MS   @reconnect A   @close B   @noreply
  @raw "bytes"             sends bytes on a connection of its own, reads until the server closes, compares all
  @scan SCAN * MATCH a*    iterates (the star is the cursor) and compares the sets of elements
  {now+10} {nowms-5}       seconds, milliseconds since the epoch at the script's start
"""
import argparse
import glob
import os
import random
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from servers import (TIME_FACTOR, Connection, Server, decode, encode, find_redis_server, server_argument, skip,  # noqa: E402
                     split_line)

PIPELINE_MAX = 64
CURSOR_MAX = 2 ** 53


class Step:
    """One command or directive of a script, with the annotations that apply to it."""

    def __init__(self, line_number, text):
        self.line, self.text = line_number, text
        self.kind = "command"
        self.connection = "A"
        self.words = []
        self.raw = b""
        self.expect = {}
        self.unordered = self.shape = self.new = self.noreply = False
        self.near = None
        self.match = None
        self.let = self.until = None
        self.only = None
        self.sleep_ms = 0

    def plain(self):
        """May be pipelined with its neighbours."""
        return self.kind == "command" and not (self.noreply or self.let or self.until or b"$" in b"".join(self.words))


def annotate(step, name, rest):
    if name in ("expect", "expect2", "expect3"):
        value = split_line(rest)[0]
        for protocol in (2, 3):
            if name in ("expect", f"expect{protocol}"):
                step.expect[protocol] = value
    elif name in ("unordered", "shape", "new", "noreply"):
        setattr(step, name, True)
    elif name == "near":
        step.near = int(rest)
    elif name == "match":
        step.match = re.compile(rest, re.S)
    elif name == "let":
        step.let, step.shape = rest, True
    elif name == "until":
        limit, reply = rest.split(" ", 1)
        step.until = (int(limit) / 1000, split_line(reply)[0])
    elif name == "only":
        step.only = int(rest)
    else:
        return False
    return True


def read_script(path):
    steps, pending = [], None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            step = pending or Step(number, line)
            step.line, step.text = number, line
            pending = None
            if line.startswith("@"):
                name, _, rest = line[1:].partition(" ")
                if annotate(step, name, rest.strip()):
                    pending = step
                    continue
                directive(step, name, rest.strip(), path)
            else:
                match = re.match(r"([A-Z])\|\s*(.*)", line)
                step.connection, text = match.groups() if match else ("A", line)
                step.words = split_line(text)
            steps.append(step)
    if pending:
        raise ValueError(f"{path}: annotation at the end")
    return steps


def directive(step, name, rest, path):
    step.kind = name
    if name == "sleep":
        step.sleep_ms = int(rest)
    elif name in ("reconnect", "close"):
        step.connection = rest
    elif name == "raw":
        step.raw = split_line(rest)[0]
    elif name == "scan":
        step.words = split_line(rest)
    else:
        raise ValueError(f"{path}:{step.line}: unknown @{name}")


class Player:
    """Plays a script on one server and records the raw reply of each step."""

    def __init__(self, server, protocol, mode, now, seed):
        self.server, self.protocol, self.mode, self.now = server, protocol, mode, now
        self.random = random.Random(seed)
        self.connections, self.names = {}, {}

    def connection(self, name):
        if name not in self.connections:
            self.connections[name] = Connection(self.server.port, self.protocol)
        return self.connections[name]

    def fill_in(self, word):
        def moment(match):
            unit = 1000 if match.group(1) else 1
            return b"%d" % (int(self.now * unit) + int(match.group(2) or 0))
        word = re.sub(rb"\{now(ms)?([+-]\d+)?\}", moment, word)
        return re.sub(rb"\$([A-Z]+)", lambda m: self.names.get(m.group(1).decode(), m.group(0)), word)

    def wire(self, step):
        return encode([self.fill_in(word) for word in step.words])

    def send(self, connection, data):
        if self.mode != "fragmented":
            connection.send(data)
            return
        at = 0
        while at < len(data):
            part = self.random.randint(1, 12)
            connection.send(data[at:at + part])
            at += part
            if self.random.random() < 0.05:
                time.sleep(0.001)

    def play(self, steps, skipped):
        replies, i = {}, 0
        with Connection(self.server.port) as first:
            first.call("FLUSHALL")
        while i < len(steps):
            group = self.group(steps, i, skipped)
            if len(group) > 1:
                data = b"".join(self.wire(step) for step in group)
                connection = self.connection(group[0].connection)
                self.send(connection, data)
                for step in group:
                    replies[step.line] = self.receive(connection, step)
                i = steps.index(group[-1], i) + 1
                continue
            step = steps[i]
            i += 1
            if not skipped(step):
                replies[step.line] = self.one(step)
        for connection in self.connections.values():
            connection.close()
        return replies

    def group(self, steps, start, skipped):
        if self.mode != "pipelined":
            return []
        group = []
        for step in steps[start:start + PIPELINE_MAX]:
            if skipped(step):
                continue
            if not step.plain() or (group and step.connection != group[0].connection):
                break
            group.append(step)
        return group

    def receive(self, connection, step):
        try:
            return connection.read()
        except (OSError, ValueError) as error:
            return f"<{type(error).__name__}: {error}>".encode()

    def one(self, step):
        if step.kind == "sleep":
            time.sleep(step.sleep_ms / 1000)
            return b""
        if step.kind in ("reconnect", "close"):
            if step.connection in self.connections:
                self.connections.pop(step.connection).close()
            return b""
        if step.kind == "raw":
            return self.play_raw(step)
        if step.kind == "scan":
            return self.play_scan(step)
        connection = self.connection(step.connection)
        self.send(connection, self.wire(step))
        if step.noreply:
            return b""
        reply = self.receive(connection, step)
        deadline = time.monotonic() + (step.until[0] * TIME_FACTOR if step.until else 0)
        while step.until and reply != step.until[1] and time.monotonic() < deadline:
            time.sleep(0.02)
            connection.send(self.wire(step))
            reply = self.receive(connection, step)
        if step.let:
            value = decode(reply)
            self.names[step.let] = value if isinstance(value, bytes) else str(value).encode()
        return reply

    def play_raw(self, step):
        with Connection(self.server.port, timeout=10) as connection:
            try:
                self.send(connection, step.raw)
            except OSError:
                pass  # it may close while we still write
            try:
                return connection.read_until_closed()
            except TimeoutError:
                return bytes(connection.buffer) + b"<stays open>"

    def play_scan(self, step):
        connection, cursor, seen = self.connection(step.connection), b"0", set()
        for _ in range(100_000):
            connection.send(encode([cursor if word == b"*" else self.fill_in(word) for word in step.words]))
            reply = decode(connection.read())
            if isinstance(reply, Exception):
                return str(reply).encode()
            cursor, elements = reply
            if int(cursor) >= CURSOR_MAX:
                return b"<cursor too large: %s>" % cursor
            seen.update(elements)
            if cursor == b"0":
                return b"\n".join(sorted(seen))
        return b"<does not end>"


# ------------------------------------------------------------------------------------------ comparing

def shape(value):
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__


def in_any_order(value):
    if isinstance(value, list):
        return sorted((in_any_order(item) for item in value), key=repr)
    return value


def since(value, now):
    """Moments count from the time at which their script was started."""
    if value > 10 ** 12:
        return value - int(now * 1000)
    return value - int(now) if value > 10 ** 9 else value


def close(a, b, step, nows):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(close(x, y, step, nows) for x, y in zip(a, b))
    if isinstance(a, int) and isinstance(b, int):
        return abs(since(a, nows[0]) - since(b, nows[1])) <= step.near
    return a == b and type(a) is type(b)


def agrees(step, reference, ours, protocol, nows):
    """None when they agree, else what was expected. nows: when the reference's and our script were started."""
    if protocol in step.expect:
        return None if ours == step.expect[protocol] else step.expect[protocol]
    if step.match:
        return None if step.match.search(ours.decode("latin1")) else f"match of {step.match.pattern}"
    if reference == ours:
        return None
    try:
        if step.unordered and reference[:1] == ours[:1] and \
                in_any_order(decode(reference)) == in_any_order(decode(ours)):
            return None
        if step.near is not None and close(decode(reference), decode(ours), step, nows):
            return None
        if step.shape and reference[:1] == ours[:1] and shape(decode(reference)) == shape(decode(ours)):
            return None
    except (ValueError, IndexError):
        pass
    return reference


def check_script(path, reference, subject, options):
    steps = read_script(path)
    failures, compared = [], 0
    for protocol in options.protocols:
        def skipped(step, p=protocol):
            return step.only is not None and step.only != p

        now = time.time()
        recorded = Player(reference, protocol, "plain", now, 0).play(
            steps, lambda step: skipped(step) or (step.new and not options.against_itself))
        for mode in options.modes:
            player = Player(subject, protocol, mode, time.time(), options.seed)
            try:
                ours = player.play(steps, lambda step: skipped(step) or (step.new and options.against_itself))
            except OSError as error:
                failures.append(f"{os.path.basename(path)} RESP{protocol} {mode}: the server is gone: {error}")
                return failures, compared
            for step in steps:
                if step.line not in ours or (step.line not in recorded and protocol not in step.expect and not step.match):
                    continue
                if step.kind in ("sleep", "reconnect", "close") or (options.against_itself and step.expect):
                    continue
                compared += 1
                wanted = agrees(step, recorded.get(step.line, b""), ours[step.line], protocol, (now, player.now))
                if wanted is not None:
                    failures.append(f"{os.path.basename(path)}:{step.line} RESP{protocol} {mode}: {step.text}\n"
                                    f"    expected {wanted!r}\n    got      {ours[step.line]!r}")
    return failures, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    server_argument(parser)
    parser.add_argument("--against-itself", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", default="plain,pipelined,fragmented", type=lambda text: text.split(","))
    parser.add_argument("--protocols", default=(2, 3), type=lambda text: [int(p) for p in text.split(",")])
    parser.add_argument("--option", action="append", default=[], help="further argument for hotkv-server")
    parser.add_argument("scripts", nargs="*")
    options = parser.parse_args()
    scripts = options.scripts or sorted(glob.glob(os.path.join(HERE, "*.resp")))

    with tempfile.TemporaryDirectory(prefix="hotkv-compat-") as folder:
        redis = find_redis_server(folder)
        if not redis:
            skip("no redis-server (apt-get install redis-tools)")
        kind, program = ("redis", redis) if options.against_itself else ("hotkv", options.server)
        with Server("redis", redis) as reference, Server(kind, program, options.option) as subject:
            reference.start()
            subject.start()
            failed = 0
            for script in scripts:
                failures, compared = check_script(script, reference, subject, options)
                failed += len(failures)
                for failure in failures[:60]:
                    print(failure)
                print(f"{os.path.basename(script)}: {compared} replies compared, {len(failures)} differ")
            if subject.process.poll() is not None:
                print(f"server ended with code {subject.process.returncode}:\n{subject.log()[-4000:]}")
                failed += 1
            return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
