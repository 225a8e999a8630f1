"""Servers and raw RESP connections for the tests that drive real processes.

A server runs on loopback, on a free port, in a directory of its own that is removed at the end, and is stopped by its
own process id. Nothing here knows what is tested.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

# How many times longer everything may take: sanitizers slow a server down (tests/CMakeLists.txt).
TIME_FACTOR = float(os.environ.get("HOTKV_TIME_FACTOR", "1"))
START_SECONDS = 60 * TIME_FACTOR
STOP_SECONDS = 60 * TIME_FACTOR
SKIP = 77  # ctest's exit code for "skipped"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find_redis_server(folder):
    """redis-server, or a link by that name to the binary in redis-tools (the name makes it the server)."""
    found = shutil.which("redis-server")
    if found:
        return found
    twin = shutil.which("redis-check-rdb")
    if not twin:
        return None
    link = os.path.join(folder, "redis-server")
    if not os.path.exists(link):
        os.symlink(twin, link)
    return link


class Server:
    """One server process. kind: 'hotkv' or 'redis'; program: path; options: further arguments."""

    def __init__(self, kind, program, options=(), folder=None):
        self.kind, self.program, self.options = kind, os.path.abspath(program), list(options)
        self.own_folder = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix=f"hotkv-test-{kind}-")
        self.data = os.path.join(self.folder, "data")
        os.makedirs(self.data, exist_ok=True)
        self.log_path = os.path.join(self.folder, "server.log")
        self.port = None
        self.process = None

    def arguments(self):
        command = [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.data]
        if self.kind == "redis":
            command += ["--save", "", "--appendonly", "no"]
        elif self.kind == "hotkv":
            command += os.environ.get("HOTKV_SERVER_OPTIONS", "").split()  # as in "--io epoll"
        return command + ["--enable-debug-command", "yes"] + self.options

    def start(self):
        for attempt in range(3):
            self.launch()
            if self._wait_until_ready():
                return self
            if attempt < 2 and "ddress already in use" in self.log():
                self.kill()
                continue
            self.kill()
            raise RuntimeError(f"{self.kind} did not start:\n{self.log()[-3000:]}")
        return self

    def launch(self):
        """Starts the process, on a port of its own, and does not wait for it."""
        self.port = free_port()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.arguments(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.folder)

    def _wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return False
            try:
                with Connection(self.port, timeout=5) as connection:
                    reply = connection.call("PING")
                    # An error other than LOADING (NOAUTH, ...) is a server that is ready too.
                    if reply == b"+PONG\r\n" or (reply[:1] == b"-" and not reply.startswith(b"-LOADING")):
                        return True
            except OSError:
                pass
            time.sleep(0.02)
        return False

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        try:
            with open(self.log_path, errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def connect(self, **options):
        return Connection(self.port, **options)

    def kill(self):
        """SIGKILL, as a crash."""
        if self.process and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        if self.process:
            self.process.wait()

    def stop(self):
        """SIGTERM, a clean stop. Returns the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"{self.kind} did not stop within {STOP_SECONDS} s")

    def remove(self):
        self.kill()
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class Incomplete(Exception):
    pass


def frame_end(data, at):
    """Where the RESP value that starts at `at` ends. Raises Incomplete or ValueError."""
    todo = 1
    while todo:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            raise Incomplete
        kind, text = data[at:at + 1], data[at + 1:line_end]
        at = line_end + 2
        todo -= 1
        if kind in (b"$", b"=", b"!"):
            length = int(text)
            if length >= 0:
                if len(data) < at + length + 2:
                    raise Incomplete
                at += length + 2
        elif kind in (b"*", b"~", b">"):
            todo += max(int(text), 0)
        elif kind == b"%":
            todo += 2 * int(text)
        elif kind == b"|":
            todo += 2 * int(text) + 1
        elif kind not in (b"+", b"-", b":", b"_", b"#", b",", b"("):
            raise ValueError(f"not RESP: {data[line_end - len(text) - 1:line_end][:60]!r}")
    return at


def decode(data):
    """A whole frame as Python values: bytes, int, float, None, bool, list, dict (list of pairs), Exception for errors."""
    value, end = _decode(data, 0)
    if end != len(data):
        raise ValueError("bytes after the frame")
    return value


def _decode(data, at):
    line_end = data.index(b"\r\n", at)
    kind, text = data[at:at + 1], data[at + 1:line_end]
    at = line_end + 2
    if kind in (b"+", b"("):
        return text, at
    if kind == b"-":
        return RuntimeError(text.decode("latin1")), at
    if kind == b":":
        return int(text), at
    if kind == b"_":
        return None, at
    if kind == b"#":
        return text == b"t", at
    if kind == b",":
        return float(text), at
    count = int(text)
    if count < 0:
        return None, at
    if kind in (b"$", b"=", b"!"):
        return data[at:at + count], at + count + 2
    items = []
    for _ in range(count * (2 if kind in (b"%", b"|") else 1)):
        item, at = _decode(data, at)
        items.append(item)
    if kind == b"%":
        return list(zip(items[::2], items[1::2])), at
    return items, at


def encode(args):
    out = [b"*%d\r\n" % len(args)]
    for arg in args:
        if not isinstance(arg, bytes):
            arg = str(arg).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(out)


class Connection:
    def __init__(self, port, protocol=2, timeout=30, host="127.0.0.1"):
        self.socket = socket.create_connection((host, port), timeout=timeout * TIME_FACTOR)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.last_reply = b""
        if protocol == 3:
            self.call("HELLO", "3")

    def send(self, data):
        self.socket.sendall(data)

    def read(self):
        """The raw bytes of the next reply."""
        while True:
            try:
                end = frame_end(self.buffer, 0)
                self.last_reply = bytes(self.buffer[:end])
                del self.buffer[:end]
                return self.last_reply
            except Incomplete:
                pass
            part = self.socket.recv(1 << 20)
            if not part:
                raise ConnectionError("closed by the server")
            self.buffer += part

    def read_until_closed(self, seconds=5):
        """Everything up to the server's close; raises TimeoutError when it stays open."""
        self.socket.settimeout(seconds * TIME_FACTOR)
        try:
            while True:
                part = self.socket.recv(1 << 16)
                if not part:
                    break
                self.buffer += part
        except ConnectionResetError:
            pass
        data = bytes(self.buffer)
        self.buffer.clear()
        return data

    def call(self, *args):
        self.send(encode(args))
        return self.read()

    def value(self, *args):
        return decode(self.call(*args))

    def pipeline(self, commands):
        self.send(b"".join(encode(command) for command in commands))
        return [decode(self.read()) for _ in commands]

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def split_line(line):
    """Words of a command line as redis-cli reads them: "…" with escapes, '…' plain."""
    words, at = [], 0
    token = re.compile(rb"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\S+))""", re.S)
    line = line.strip() if isinstance(line, bytes) else line.strip().encode()
    while at < len(line):
        match = token.match(line, at)
        if not match:
            raise ValueError(f"cannot read: {line!r}")
        if match.group(1) is not None:
            words.append(unescape(match.group(1)))
        elif match.group(2) is not None:
            words.append(match.group(2).replace(b"\\'", b"'"))
        else:
            words.append(match.group(3))
        at = match.end()
    return words


ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"0": b"\0"}


def unescape(text):
    def replace(match):
        escaped = match.group(1)
        if escaped[:1] == b"x":
            return bytes([int(escaped[1:], 16)])
        return ESCAPES.get(escaped, escaped)
    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", replace, text, flags=re.S)


def server_argument(parser):
    parser.add_argument("--server", default=os.environ.get("HOTKV_SERVER"), help="path of hotkv-server")
