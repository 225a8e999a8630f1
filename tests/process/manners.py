#!/usr/bin/python3
"""The server as a process: wrong flags and files, signals, service manager, pid file, log file, crash report, restart.

  tests/process/manners.py --server build/dev/bin/hotkv-server
"""
import argparse
import ctypes
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from servers import TIME_FACTOR, free_port  # noqa: E402

WAIT_SECONDS = 60 * TIME_FACTOR
failures = []


def check(what, holds, detail=""):
    print(("ok    " if holds else "FAIL  ") + what + ("" if holds else f": {detail}"), flush=True)
    if not holds:
        failures.append(what)


def wait_for(condition):
    end = time.time() + WAIT_SECONDS
    while time.time() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def ask(port, line):
    """One inline command; its first line, or '' when nobody answers."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5 * TIME_FACTOR) as peer:
            peer.sendall(line.encode() + b"\r\n")
            return peer.makefile("rb").readline().decode().strip()
    except OSError:
        return ""


class Running:
    def __init__(self, server, folder, *options, env=None, before=None, wrapper=()):
        self.port = free_port()
        self.log = os.path.join(folder, "log")
        arguments = [*wrapper, server, "--port", str(self.port), "--bind", "127.0.0.1", "--threads", "2",
                     "--dir", os.path.join(folder, "data"), "--logfile", self.log, *options]
        environment = dict(os.environ, **(env or {}))
        self.process = subprocess.Popen(arguments, cwd=folder, env=environment, preexec_fn=before,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.up = wait_for(lambda: ask(self.port, "PING") == "+PONG" or self.process.poll() is not None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(WAIT_SECONDS)


def refused(server, folder, *arguments, text=None):
    run = subprocess.run([server, *arguments], cwd=folder, input=text, capture_output=True, text=True, timeout=WAIT_SECONDS)
    return run.returncode, run.stdout + run.stderr


def wrong_input(server, folder):
    for arguments, expected in [(["--nonsense", "1"], "Bad directive or wrong number of arguments"),
                                (["--port", "abc"], "argument couldn't be parsed into an integer"),
                                (["/nonexistent.conf"], "No such file"),
                                (["--io", "telepathy"], "argument(s) must be one of the following"),
                                (["--dir", "/proc/nothing", "--port", str(free_port())], "data directory"),
                                (["stray.conf", "word"], "stray.conf")]:
        code, output = refused(server, folder, *arguments)
        check(f"refuses {' '.join(arguments)}", code == 1 and expected in output, (code, output))
    code, output = refused(server, folder, "-", text="maxclients ten\n")
    check("refuses a wrong line on standard input", code == 1 and ">>> 'maxclients ten'" in output, (code, output))
    code, output = refused(server, folder, "--version")
    check("tells its version", code == 0 and output.startswith("HotKV server v="), output)
    code, output = refused(server, folder, "--help")
    check("helps", code == 0 and "--appendfsync" in output and "Usage:" in output, output)


def taken_port(server, folder):
    with Running(server, folder) as first:
        check("starts", first.up, read(first.log))
        code, _ = refused(server, folder, "--port", str(first.port), "--bind", "127.0.0.1", "--dir",
                          os.path.join(folder, "other"), "--logfile", os.path.join(folder, "log2"))
        check("a taken port ends the start", code == 1 and "listening socket" in read(os.path.join(folder, "log2")),
              read(os.path.join(folder, "log2")))
        code, _ = refused(server, folder, "--port", str(free_port()), "--dir", os.path.join(folder, "data"),
                          "--logfile", os.path.join(folder, "log3"))
        check("a data directory in use ends the start", code == 1, read(os.path.join(folder, "log3")))
        check("the first one goes on", ask(first.port, "PING") == "+PONG")


def contents(root):
    """Every file below a folder with its bytes; LMDB's own lock file counts by its name only."""
    found = {}
    for folder, names, files in os.walk(root):
        for name in names:
            found[os.path.relpath(os.path.join(folder, name), root)] = None
        for name in files:
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                found[os.path.relpath(path, root)] = None
                continue
            with open(path, "rb") as file:
                found[os.path.relpath(path, root)] = b"" if name.endswith("-lock") else file.read()
    return found


def refused_starts_touch_nothing(server, folder):
    """Whatever ends a start leaves the data directory as it was, and one new directory none at all."""
    work = os.path.join(folder, "work")
    data = os.path.join(work, "data")
    os.mkdir(work)

    def attempt(what, message, *options, fresh=False):
        before = contents(work)
        code, output = refused(server, work, "--bind", "127.0.0.1", "--dir", os.path.join(work, "new") if fresh else data,
                               *options)
        text = [line for line in output.splitlines() if message in line]
        check(f"{what}: status 1 and one message", code == 1 and len(text) == 1, (code, output))
        after = contents(work)
        check(f"{what}: nothing is touched", after == before,
              sorted(name for name in set(before) | set(after) if before.get(name, 0) != after.get(name, 0)))

    with socket.socket() as taken, socket.socket(socket.AF_UNIX) as local:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        local.bind(os.path.join(folder, "served"))
        local.listen()
        port = str(taken.getsockname()[1])
        free = str(free_port())
        refusals = [("a taken port", "listening socket", "--port", port),
                    ("a taken Unix socket", "Unix socket", "--port", free, "--unixsocket", os.path.join(folder, "served")),
                    ("a socket in no folder", "Unix socket", "--port", free, "--unixsocket", os.path.join(folder, "no", "s")),
                    ("a wrong flag", "Bad directive", "--port", free, "--nonsense", "1"),
                    ("a wrong value", "power of two", "--port", free, "--stripes", "3"),
                    ("a wrong address", "192.0.2.1", "--port", free, "--bind", "192.0.2.1x"),
                    ("a daemon with a taken port", "listening socket", "--port", port, "--daemonize", "yes")]
        for what, message, *options in refusals:
            attempt(what + ", no data yet", message, *options, fresh=True)
        with Running(server, work, "--logfile", os.path.join(folder, "log")) as running:
            ask(running.port, "SET k v")
            running.stop()
        for what, message, *options in refusals:
            attempt(what + ", with data", message, *options)
        check("somebody's socket stays", os.path.exists(os.path.join(folder, "served")))
    free = str(free_port())
    if os.geteuid() != 0:
        os.chmod(work, 0o555)
        attempt("an unwritable folder", "Cannot make the data directory", "--port", free, fresh=True)
        os.chmod(work, 0o755)
    with open(os.path.join(work, "file"), "w"):
        pass
    attempt("a file in the directory's place", "Cannot use the data directory", "--port", free, "--dir", os.path.join(work, "file"))
    foreign = os.path.join(work, "new")
    for name in ("dump.rdb", "appendonlydir", "appendonly.aof"):
        os.mkdir(foreign)
        os.mkdir(os.path.join(foreign, name))
        attempt(name + " of another server", "hotkv-tool import", "--port", free, fresh=True)
        shutil.rmtree(foreign)
    with Running(server, work, "--logfile", os.path.join(folder, "log")) as running:
        ask(running.port, "SET k v")
        def names():  # the server that runs makes log segments ahead
            return sorted(name for name in contents(data) if not name.startswith("log"))
        before = names()
        code, output = refused(server, work, "--bind", "127.0.0.1", "--port", free, "--dir", data)
        check("a directory in use: status 1 and one message",
              code == 1 and output.count("another hotkv-server or hotkv-tool works on this directory") == 1, (code, output))
        check("a directory in use: no file comes or goes", names() == before, (before, names()))
        check("the other server goes on", ask(running.port, "EXISTS k") == ":1")


def refused_data(server, folder):
    with Running(server, folder) as running:
        with socket.create_connection(("127.0.0.1", running.port), timeout=5 * TIME_FACTOR) as peer:
            peer.sendall(b"SELECT 3\r\nSET k v\r\n")
            lines = peer.makefile("rb")
            check("writes to database 3", [lines.readline(), lines.readline()] == [b"+OK\r\n"] * 2)
        check("ends", running.stop() == 0)
    code, output = refused(server, folder, "--port", str(free_port()), "--bind", "127.0.0.1", "--dir",
                           os.path.join(folder, "data"), "--databases", "2")
    last = output.strip().splitlines()[-1]
    check("data that cannot be loaded ends the start with 1, and the last line says why",
          code == 1 and "database 3 in the log, but only 2 are configured" in last, output)


def signals(server, folder):
    pid_file = os.path.join(folder, "pid")
    with Running(server, folder, "--pidfile", pid_file, "--unixsocket", os.path.join(folder, "socket")) as running:
        check("writes its pid", read(pid_file).strip() == str(running.process.pid), read(pid_file))
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(os.path.join(folder, "socket"))
            peer.sendall(b"PING\r\n")
            check("answers on its Unix socket", peer.recv(100) == b"+PONG\r\n")
        check("writes", ask(running.port, "SET kept value") == "+OK")
        os.rename(running.log, running.log + ".1")
        running.process.send_signal(signal.SIGHUP)
        check("opens its log again on SIGHUP", wait_for(lambda: "SIGHUP" in read(running.log)), read(running.log))
        check("ends with 0 on SIGTERM", running.stop() == 0, read(running.log))
        check("says so", "bye bye" in read(running.log), read(running.log))
        check("removes its pid file", not os.path.exists(pid_file))
        check("removes its socket", not os.path.exists(os.path.join(folder, "socket")))
    with Running(server, folder) as again:
        check("has its data after a restart", ask(again.port, "EXISTS kept") == ":1", read(again.log))
        check("ends with 0 on SIGINT", again.stop(signal.SIGINT) == 0)


def snapshot_at_end(server, folder):
    with Running(server, folder, "--appendonly", "no") as running:
        check("writes without a log", ask(running.port, "SET only snapshot") == "+OK")
        check("ends with a snapshot", running.stop() == 0, read(running.log))
    with Running(server, folder, "--appendonly", "no") as again:
        check("the snapshot of the end is there", ask(again.port, "EXISTS only") == ":1", read(again.log))


def service_manager(server, folder):
    path = os.path.join(folder, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(WAIT_SECONDS)
        with Running(server, folder, env={"NOTIFY_SOCKET": path}) as running:
            check("says READY", b"READY=1" in manager.recv(1000))
            running.stop()
            check("says STOPPING", b"STOPPING=1" in manager.recv(1000))


def crash(server, folder):
    with Running(server, folder) as running:
        running.process.send_signal(signal.SIGSEGV)
        code = running.process.wait(WAIT_SECONDS)
        log = read(running.log)
        check("dies by the signal", code == -signal.SIGSEGV, code)
        check("leaves a report with a backtrace", "HOTKV BUG REPORT START" in log and "SIGSEGV" in log and "(+0x" in log, log)


def daemon(server, folder):
    port = free_port()
    pid_file = os.path.join(folder, "daemon.pid")
    run = subprocess.run([server, "--port", str(port), "--bind", "127.0.0.1", "--daemonize", "yes", "--pidfile", pid_file,
                          "--dir", os.path.join(folder, "data"), "--logfile", os.path.join(folder, "log")],
                         cwd=folder, timeout=WAIT_SECONDS, check=False)
    check("the parent of a daemon ends at once", run.returncode == 0, run.returncode)
    check("the daemon answers", wait_for(lambda: ask(port, "PING") == "+PONG"), read(os.path.join(folder, "log")))
    os.kill(int(read(pid_file)), signal.SIGTERM)
    check("the daemon ends", wait_for(lambda: not os.path.exists(pid_file)))


def rewrite(server, folder):
    conf = os.path.join(folder, "redis.conf")
    with open(conf, "w", encoding="utf-8") as file:
        file.write("# kept\nmaxclients 100\nio-threads 4\nactivedefrag no\n")
    port = free_port()
    log = os.path.join(folder, "log")
    process = subprocess.Popen([server, conf, "--port", str(port), "--bind", "127.0.0.1", "--logfile", log,
                                "--dir", os.path.join(folder, "data")], cwd=folder)
    try:
        check("takes a file of Redis's", wait_for(lambda: ask(port, "PING") == "+PONG"), read(log))
        check("lists once what has no effect", read(log).count("io-threads, activedefrag") == 1, read(log))
        check("CONFIG SET", ask(port, "CONFIG SET maxclients 200") == "+OK")
        check("CONFIG REWRITE", ask(port, "CONFIG REWRITE") == "+OK")
        check("the file is rewritten in place", read(conf).startswith("# kept\nmaxclients 200\nio-threads 4\n"), read(conf))
    finally:
        process.terminate()
        process.wait()


def doubtful_disk(server, folder):
    """A data directory in memory is served, and one line says that it is."""
    if not os.path.isdir("/dev/shm"):
        return
    data = tempfile.mkdtemp(prefix="hotkv-manners-", dir="/dev/shm")
    try:
        with Running(server, folder, "--dir", data) as running:
            ask(running.port, "PING")
            check("says once that its directory may not outlive the machine",
                  wait_for(lambda: read(running.log).count(" lies on tmpfs: ") == 1), read(running.log))
    finally:
        shutil.rmtree(data, ignore_errors=True)


# ---- a process with less than the machine has: run between fork and exec ----

def limit(which, soft, hard):
    """A limit that root cannot raise either."""
    pr_capbset_drop, cap_sys_resource = 24, 24

    def apply():
        resource.setrlimit(which, (soft, hard))
        ctypes.CDLL(None).prctl(pr_capbset_drop, cap_sys_resource, 0, 0, 0)  # not root: it has none to drop
    return apply


def without_rings():
    """io_uring_setup is not permitted, as in many containers."""
    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(Instruction))]

    load_number, jump_if_equal, give_back = 0x20, 0x15, 0x06
    io_uring_setup, refuse_with_eperm, allow = 425, 0x00050001, 0x7fff0000
    code = (Instruction * 4)((load_number, 0, 0, 0), (jump_if_equal, 0, 1, io_uring_setup),
                             (give_back, 0, 0, refuse_with_eperm), (give_back, 0, 0, allow))
    program = Program(len(code), code)
    pr_set_no_new_privs, pr_set_seccomp, mode_filter = 38, 22, 2
    libc = ctypes.CDLL(None)
    if libc.prctl(pr_set_no_new_privs, 1, 0, 0, 0) != 0 or libc.prctl(pr_set_seccomp, mode_filter, ctypes.byref(program), 0, 0):
        raise OSError("no seccomp here")


def few_open_files(server, folder):
    """Fewer clients than maxclients where the limit says so, and then exactly as many as the log tells."""
    with Running(server, folder, before=limit(resource.RLIMIT_NOFILE, 300, 300)) as running:
        line = "Open files are limited to 300: maxclients is 236 instead of 10000"
        check("says that open files are too few for maxclients", wait_for(lambda: read(running.log).count(line) == 1),
              read(running.log))
        # The connection that asked whether it is up may still be counted.
        wait_for(lambda: ask(running.port, "INFO clients") != "" and connected(running.port) == 1)
        peers = [socket.create_connection(("127.0.0.1", running.port), timeout=WAIT_SECONDS) for _ in range(236)]
        try:
            check("serves as many clients as it said", all(roundtrip(peer) == b"+PONG\r\n" for peer in peers))
            check("and refuses the next", ask(running.port, "PING") == "-ERR max number of clients reached")
            check("the others are served as before", all(roundtrip(peer) == b"+PONG\r\n" for peer in peers))
        finally:
            for peer in peers:
                peer.close()
    os.mkdir(os.path.join(folder, "raised"))
    with Running(server, os.path.join(folder, "raised"), before=limit(resource.RLIMIT_NOFILE, 100, 12000)) as running:
        with open(f"/proc/{running.process.pid}/limits") as file:
            soft = next(line.split()[3] for line in file if line.startswith("Max open files"))
        check("raises the limit of open files as far as it needs", soft == "10064", soft)
        check("and is silent then", running.up and "Open files" not in read(running.log), read(running.log))


def roundtrip(peer):
    peer.sendall(b"PING\r\n")
    return peer.recv(64)


def connected(port):
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) as peer:
        peer.sendall(b"INFO clients\r\n")
        return next(int(line.split(b":")[1]) for line in peer.makefile("rb") if line.startswith(b"connected_clients:"))


def little_locked_memory(server, folder):
    """Where rings are not to be had and locked memory may be why, one line says so."""
    def small():
        limit(resource.RLIMIT_MEMLOCK, 65536, 65536)()
        without_rings()

    line = "Locked memory is limited to 65536 bytes"
    for name, before, options, expected in [("small", small, [], 1), ("asked", small, ["--io", "epoll"], 0),
                                            ("enough", without_rings, [], 0)]:
        home = os.path.join(folder, name)
        os.mkdir(home)
        if name == "enough" and resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] < 8 << 20:
            continue
        with Running(server, home, *options, before=before) as running:
            check(f"locked memory ({name}): starts on epoll", wait_for(lambda: "(epoll)" in read(running.log)), read(running.log))
            check(f"locked memory ({name}): is named {expected} times", read(running.log).count(line) == expected,
                  read(running.log))


def strict_overcommit(server, folder):
    """vm.overcommit_memory 2 is named. The setting is the machine's: another file is laid over it, in a name space of its own."""
    fake = os.path.join(folder, "two")
    with open(fake, "w") as file:
        file.write("2\n")
    over = f'mount --bind "{fake}" /proc/sys/vm/overcommit_memory && exec "$@"'
    wrapper = ["unshare", "--mount", "sh", "-c", over, "sh"]
    if subprocess.run([*wrapper, "true"], capture_output=True).returncode != 0:
        print("      strict_overcommit: left out, mounts are not permitted here")
        return
    with Running(server, folder, wrapper=wrapper) as running:
        check("says that overcommit is strict",
              wait_for(lambda: read(running.log).count("vm.overcommit_memory is 2: ") == 1), read(running.log))
    with Running(server, folder, "--logfile", os.path.join(folder, "log2")) as running:
        strict = read("/proc/sys/vm/overcommit_memory").strip() == "2"
        check("and nothing where it is not", running.up and
              ("overcommit" in read(os.path.join(folder, "log2"))) == strict, read(os.path.join(folder, "log2")))


def allocator_of(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5 * TIME_FACTOR) as peer:
        peer.sendall(b"INFO memory\r\n")
        return next(line.split(b":")[1].strip() for line in peer.makefile("rb") if line.startswith(b"mem_allocator:"))


def memory_goes_back(server, folder):
    with Running(server, folder, "--appendonly", "no", "--enable-debug-command", "yes") as running:
        def resident():
            with open(f"/proc/{running.process.pid}/status") as file:
                return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))
        before = resident()
        ask(running.port, "DEBUG POPULATE 500000 key 100")
        full = resident()
        check("half a million keys take memory", full - before > 60_000_000, f"{before} {full}")
        ask(running.port, "FLUSHALL ASYNC")
        if allocator_of(running.port) != b"mimalloc":
            return  # a sanitizer keeps what was freed, to see who still uses it
        check("after FLUSHALL it goes back", wait_for(lambda: resident() - before < (full - before) // 3),
              f"{before} {full} {resident()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("tests", nargs="*", help="names of the tests to run; default: all")
    arguments = parser.parse_args()
    server = os.path.abspath(arguments.server)
    tests = [wrong_input, taken_port, refused_starts_touch_nothing, refused_data, signals, snapshot_at_end,
             service_manager, crash, daemon, rewrite, doubtful_disk, few_open_files, little_locked_memory,
             strict_overcommit, memory_goes_back]
    for test in [test for test in tests if not arguments.tests or test.__name__ in arguments.tests]:
        folder = tempfile.mkdtemp(prefix="hotkv-manners-")
        try:
            test(server, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
