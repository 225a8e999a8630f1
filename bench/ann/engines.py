"""The engines of bench/ann/run, all with the same few calls: start, find, rate, resident, stop.

A search's answer is a list of row numbers; a rate is queries, wall seconds and CPU seconds of the engine. Servers are
loaded and driven by hotkv-bench through a socket; the others are programs of their own (peer_main.cc) that run one
thread. What takes long to build is kept in the folder of the cache, with the figures of its building beside it.
"""
import json
import os
import struct
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from servers import Server, decode, encode  # noqa: E402

K = 10
INDEX = "bench:index"


def read_rows(path, code):
    """Rows of a .fbin (code 'f') or .ibin (code 'i') as tuples."""
    with open(path, "rb") as file:
        rows, columns = struct.unpack("<II", file.read(8))
        size = columns * 4
        return [struct.unpack(f"<{columns}{code}", file.read(size)) for _ in range(rows)]


def read_blobs(path):
    with open(path, "rb") as file:
        rows, columns = struct.unpack("<II", file.read(8))
        return [file.read(columns * 4) for _ in range(rows)]


def rows_and_dim(path):
    with open(path, "rb") as file:
        return struct.unpack("<II", file.read(8))


def anonymous_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Anonymous:"))


def settled_bytes(pid):
    """Resident bytes of no file once they stand still: what building needed for a while is given back later."""
    last, still = anonymous_bytes(pid), 0
    for _ in range(40):
        time.sleep(0.25)
        now = anonymous_bytes(pid)
        still = still + 1 if abs(now - last) < (1 << 18) else 0
        last = now
        if still >= 4:
            break
    return last


def pinned(cores):
    return ["taskset", "-c", ",".join(map(str, cores))] if cores else []


class PeerEngine:
    """A library in a process of its own."""
    clients = (1,)

    def __init__(self, name, label, program, variant, setup):
        self.name, self.label, self.program, self.variant, self.setup = name, label, program, variant, setup
        self.process, self.facts, self.queries = None, {}, None
        self.cache = os.path.join(setup.cache, name + ".index") if setup.cache else None

    def present(self):
        return os.path.exists(self.program)

    def start(self):
        command = [*pinned(self.setup.engine_cores), self.program, "--base", self.setup.data + ".base.fbin", "--m",
                   str(self.setup.m), "--ef-construction", str(self.setup.ef_construction)]
        if self.variant:
            command += ["--variant", self.variant]
        if self.cache:
            command += ["--cache", self.cache]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        built = self.answer()
        self.facts = {"version": built["version"], "resident_bytes": built["anonymous_after"] - built["anonymous_before"],
                      "build_seconds": built["seconds"], "build_cpu_seconds": built["cpu_seconds"],
                      "built": time.strftime("%Y-%m-%d %H:%M")}
        if self.cache:
            beside = self.cache + ".json"
            if built["cached"]:
                with open(beside) as file:
                    self.facts = json.load(file)
            else:
                with open(beside, "w") as file:
                    json.dump(self.facts, file)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended: exit code {self.process.wait()}")
        return json.loads(line)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def use(self, queries):
        if queries != self.queries:
            self.ask("queries", f"{self.setup.data}.{queries}.fbin")
            self.queries = queries

    def find(self, queries, ef):
        self.use(queries)
        path = os.path.join(self.setup.scratch, self.name + ".ibin")
        self.ask("find", K, ef, path)
        return read_rows(path, "i")

    def rate(self, queries, efs, clients, seconds):
        self.use(queries)
        return [dict(self.ask("rate", K, ef, seconds), ef=ef, clients=1) for ef in efs]

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


class ServerEngine(Server):
    """A server that hotkv-bench loads and asks through a socket."""

    def __init__(self, name, label, program, element_type, setup):
        self.name, self.label, self.element_type, self.setup = name, label, element_type, setup
        self.clients = setup.clients
        self.facts = {}
        self.bench_recall = None  # of STEM.query at ef K, as hotkv-bench sees it
        kind = "hotkv" if name.startswith("hotkv") else "redis"
        super().__init__(kind, program, setup.hotkv_option if kind == "hotkv" else [])
        self.cached = False
        if setup.cache and kind == "redis":
            self.data = os.path.join(setup.cache, name)
            os.makedirs(self.data, exist_ok=True)
            self.cached = os.path.exists(os.path.join(self.data, "facts.json"))

    def present(self):
        return os.path.exists(self.program)

    def arguments(self):
        own = ["--threads", "1"] if self.kind == "hotkv" else ["--daemonize", "no"]
        return [*pinned(self.setup.engine_cores), self.program, "--port", str(self.port), "--bind", "127.0.0.1",
                "--dir", self.data, "--save", "", "--appendonly", "no", *own, *self.options]

    def start(self):
        super().start()
        if self.kind == "redis":  # a thread a search gains nothing on one core; older versions do not know the setting
            with self.connect() as connection:
                connection.value("CONFIG", "SET", "vset-force-single-threaded-execution", "yes")
        if self.cached:
            with open(os.path.join(self.data, "facts.json")) as file:
                self.facts = json.load(file)
            return
        before = settled_bytes(self.pid)
        loaded = self.bench("--keep", "--ef", str(K), "--clients", "1", "--seconds", "0.05", "--warmup", "0",
                            "--m", str(self.setup.m), "--ef-construction", str(self.setup.ef_construction))
        load = loaded["load"]
        self.bench_recall = loaded["searches"][0]["recall"]
        self.facts = {"version": f"{loaded['server']['name']} {loaded['server']['version']}",
                      "resident_bytes": settled_bytes(self.pid) - before, "build_seconds": load["seconds"],
                      "build_cpu_seconds": load["vectors"] / load["vectors_per_server_cpu_second"],
                      "built": time.strftime("%Y-%m-%d %H:%M")}
        if self.kind == "redis" and self.setup.cache:
            with self.connect(timeout=300) as connection:
                assert connection.value("SAVE") == b"OK"
            with open(os.path.join(self.data, "facts.json"), "w") as file:
                json.dump(self.facts, file)

    def bench(self, *arguments):
        dialect = "vsim" if self.kind == "hotkv" else "vset"
        kind = ["--type", self.element_type] if self.element_type else []
        command = [*pinned(self.setup.generator_cores), self.setup.bench, "ann", "--url",
                   f"redis://127.0.0.1:{self.port}", "--json", "--pid", str(self.pid), "--data", self.setup.data,
                   "--dialect", dialect, *kind, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}\n{self.log()[-2000:]}")
        return json.loads(done.stdout)

    def search_command(self, blob, ef):
        if self.kind == "hotkv":
            return encode(["VSIM.SEARCH", INDEX, "FP32", blob, "K", K, "EF", ef])
        return encode(["VSIM", INDEX, "FP32", blob, "COUNT", K, "EF", ef])

    def find(self, queries, ef):
        found = []
        with self.connect() as connection:
            for blob in read_blobs(f"{self.setup.data}.{queries}.fbin"):
                connection.send(self.search_command(blob, ef))
                reply = decode(connection.read())
                if not isinstance(reply, list):
                    raise SystemExit(f"{self.name}: {reply}")
                found.append([int(each) for each in reply])
        return found

    def rate(self, queries, efs, clients, seconds):
        # With one client the generator never sleeps: being woken would be part of what is measured.
        awake = ["--busy-poll"] if clients == 1 else []
        result = self.bench("--reuse", "--keep", "--no-recall", "--queries", queries, "--ef", ",".join(map(str, efs)),
                            "--clients", str(clients), "--seconds", str(seconds), "--warmup", "0.05", *awake)
        return [{"ef": each["ef"], "clients": clients, "queries": each["queries_per_second"], "seconds": 1.0,
                 "cpu_seconds": each["queries_per_second"] / max(each["queries_per_server_cpu_second"], 1e-9),
                 "p50_us": each["latency_us"]["p50"], "p99_us": each["latency_us"]["p99"]} for each in result["searches"]]

    def stop(self):
        self.kill()
        if self.own_folder:
            self.remove()
