#!/usr/bin/python3
"""hotkv-tool as a process: into and out of running servers and stopped directories, exit codes, messages.

  tool_test.py --tool PATH [--server PATH] [CASE...]

Datasets are compared by DEBUG DIGEST of the servers that hold them.
"""
import argparse
import base64
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from array import array

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "support"))
from servers import TIME_FACTOR, Connection, Server, encode, find_redis_server, free_port, skip  # noqa: E402

DATA = os.path.join(os.path.dirname(HERE), "data", "wordnet-cbag-384-small")
TOOL = None


def tool(*args, code=0, stdin=None):
    """Runs the tool; returns (standard output, standard error) as text. Fails on another exit code."""
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, input=stdin,
                          timeout=120 * TIME_FACTOR)
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    assert done.returncode == code, f"{args}: exit code {done.returncode}, wanted {code}\n{out}\n{err}"
    return out, err


def tool_json(*args, code=0, stdin=None):
    return json.loads(tool(*args, "--json", code=code, stdin=stdin)[0])


def url(server, db=0):
    return f"redis://127.0.0.1:{server.port}/{db}"


def random_bytes(rng, longest):
    length = rng.randrange(longest)
    return rng.randbytes(length) if rng.randrange(2) else b"".join(b"%c" % rng.randrange(97, 123) for _ in range(length))


def fill_strings(connection, seed, count):
    """Random keys and values, plain and binary, in three databases, some with an expiry."""
    rng = random.Random(seed)
    commands = []
    for db in (0, 3, 9):
        commands.append(("SELECT", db))
        for i in range(count // 3):
            key = b"key:%d:" % i + random_bytes(rng, 12)
            value = random_bytes(rng, 200) if i % 50 else rng.randbytes(70000)
            expiry = ("PXAT", 99999999000000 + i) if i % 4 == 0 else ()
            commands.append(("SET", key, value) + expiry)
    commands.append(("SELECT", 0))
    replies = connection.pipeline(commands)
    assert all(reply == b"OK" for reply in replies), replies[:3]


def contents(connection, databases=(0, 3, 9)):
    """{(db, key): (value, expiry)} as the server gives them."""
    found = {}
    for db in databases:
        connection.value("SELECT", db)
        keys = connection.value("KEYS", "*")
        for start in range(0, len(keys), 500):
            part = keys[start:start + 500]
            values = connection.pipeline([("GET", key) for key in part] + [("PEXPIRETIME", key) for key in part])
            for i, key in enumerate(part):
                found[db, key] = (values[i], values[len(part) + i])
    connection.value("SELECT", 0)
    return found


# ------------------------------------------------------------------------------------------------ cases

def strings_round_trip(kind, program, folder):
    with Server(kind, program).start() as server, server.connect() as connection:
        fill_strings(connection, 1, 3000)
        digest, everything = connection.value("DEBUG", "DIGEST"), contents(connection)
        for name in ("all.resp", "all.ndjson"):
            path = os.path.join(folder, kind + name)
            result = tool_json("export", "--url", url(server), "--output", path)
            assert result["keys"] >= len(everything), result
            assert connection.value("FLUSHALL") == b"OK"
            result = tool_json("import", path, "--url", url(server))
            assert result["refused"] == 0 and result["applied"] >= len(everything), result
            assert connection.value("DEBUG", "DIGEST") == digest
        assert contents(connection) == everything
        # One database, one pattern, and through a pipe.
        out, _ = tool("export", "--url", url(server), "--output", "-", "--format", "ndjson", "--db", 3, "--match", "key:7:*")
        lines = [json.loads(line) for line in out.splitlines()]
        assert len(lines) == 1 and lines[0]["db"] == 3, lines
        connection.value("FLUSHALL")
        tool("import", "-", "--url", url(server), stdin=out.encode())
        assert len(contents(connection)) == 1


def case_redis(folder, _server):
    """Strings out of and into redis-server; what it cannot give is refused; its append-only file is read."""
    program = find_redis_server(folder)
    if not program:
        skip("no redis-server")
    strings_round_trip("redis", program, folder)
    options = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]
    with Server("redis", program, options).start() as server, server.connect() as connection:
        fill_strings(connection, 2, 300)
        everything = contents(connection)
        connection.value("RPUSH", "list", "a")
        path = os.path.join(folder, "refused.ndjson")
        _, err = tool("export", "--url", url(server), "--output", path, code=1)
        assert 'key "list": type list cannot be exported' in err, err
        assert not os.path.exists(path) and not [name for name in os.listdir(folder) if "refused" in name]
        result = tool_json("export", "--url", url(server), "--output", path, "--skip-bad", code=1)
        assert result["skipped"] == 1 and result["keys"] == len(everything), result
        connection.value("DEL", "list")
        assert connection.value("BGREWRITEAOF").startswith(b"Background")
        files = os.path.join(server.data, "appendonlydir")
        deadline = time.monotonic() + 30
        while not [name for name in os.listdir(files) if name.endswith(".base.aof") and ".2." in name]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        parts = sorted(os.path.join(files, name) for name in os.listdir(files) if name.endswith(".aof") and ".2." in name)
        connection.value("SET", "after", "rewrite")
        everything = contents(connection)
        with Server("redis", program).start() as other, other.connect() as target:
            tool("import", *parts, "--url", url(other))
            assert contents(target) == everything


def case_strings(folder, server_program):
    """Strings out of and into hotkv-server."""
    strings_round_trip("hotkv", server_program, folder)


def case_vectors(folder, server_program):
    """.fbin files, indexes and their elements, in both formats."""
    import_fbin = ("import", DATA + ".base.fbin", "--index", "docs", "--keys", DATA + ".keys.txt", "--attrs",
                   DATA + ".attrs.tsv", "--metric", "L2", "--type", "F32", "--m", 12)
    with Server("hotkv", server_program).start() as server, server.connect() as connection:
        result = tool_json(*import_fbin, "--url", url(server), "--db", 4, "--threads", 3)
        assert result["applied"] == 2000, result
        connection.value("SELECT", 4)
        info = connection.value("VSIM.INFO", "docs")
        info = dict(zip(info[::2], info[1::2]))
        assert info[b"metric"] == b"L2" and info[b"m"] == 12 and info[b"dim"] == 384, info
        with open(DATA + ".keys.txt", "rb") as keys, open(DATA + ".attrs.tsv") as attrs, open(DATA + ".base.fbin", "rb") as base:
            ids, rows = keys.read().splitlines(), attrs.read().splitlines()
            for row in (0, 17, 1999):
                base.seek(8 + row * 384 * 4)
                vector, attr = connection.value("VSIM.GET", "docs", ids[row], "RAW", "WITHATTR")
                assert vector == base.read(384 * 4)
                assert json.loads(attr)["synset"] == rows[row + 1].split("\t")[5]
        connection.value("SELECT", 0)
        connection.value("VSIM.CREATEINDEX", "small", "DIM", 3, "METRIC", "IP", "TYPE", "F32", "EF", 77)
        connection.value("VSIM.SET", "small", b"\xff\x00id", "VALUES", 3, "0.1", "-2", "3e-7", "ATTR", '{ "a" : 1 }')
        connection.value("PEXPIREAT", "small", 99999999999999)
        digest = connection.value("DEBUG", "DIGEST")
        for name in ("v.resp", "v.ndjson"):
            path = os.path.join(folder, name)
            result = tool_json("export", "--url", url(server), "--output", path)
            assert result["vectors"] == 2001 and result["keys"] == 2, result
            connection.value("FLUSHALL")
            tool("import", path, "--url", url(server))
            assert connection.value("DEBUG", "DIGEST") == digest
            assert connection.value("PEXPIRETIME", "small") == 99999999999999
        # An index that is there with another dimension: nothing is applied.
        connection.value("FLUSHALL")
        connection.value("VSIM.CREATEINDEX", "docs", "DIM", 5)
        _, err = tool(*import_fbin, "--url", url(server), code=1)
        assert 'row 0: 384 components, but index "docs" has 5' in err, err


def case_offline(folder, server_program):
    """A server's data by way of its stopped directory, and back; a directory in use is refused."""
    directory, copy = os.path.join(folder, "first"), os.path.join(folder, "second")
    with Server("hotkv", server_program, folder=directory).start() as server:
        with server.connect() as connection:
            fill_strings(connection, 3, 900)
            tool("import", DATA + ".base.fbin", "--index", "docs", "--metric", "L2", "--url", url(server))
            assert connection.value("SAVE") == b"OK"
            fill_strings(connection, 4, 300)
            connection.value("VSIM.DEL", "docs", "1", "2", "3")
            digest = connection.value("DEBUG", "DIGEST")
        for command in ("verify", "export", "log dump"):
            options = ("--output", os.path.join(folder, "x.resp")) if command == "export" else ()
            _, err = tool(*command.split(), "--dir", server.data, *options, code=2)
            assert "LOCKED" in err, err
        _, err = tool("import", os.path.join(DATA + ".base.fbin"), "--index", "x", "--dir", server.data, code=2)
        assert "LOCKED" in err, err
        info = tool_json("info", "--dir", server.data)
        assert info["in_use"] and info["snapshots"], info
        server.stop()
        result = tool_json("verify", "--dir", server.data)
        assert result["ok"] and result["snapshots"] == 1 and result["generations"] >= 1, result
        for name in ("all.resp", "all.ndjson"):
            path = os.path.join(folder, name)
            exported = tool_json("export", "--dir", server.data, "--output", path)
            assert exported["vectors"] == 1997 and exported["keys"] == result["keys"], (exported, result)
            shutil.rmtree(copy, ignore_errors=True)
            os.makedirs(copy)
            imported = tool_json("import", path, "--dir", os.path.join(copy, "data"))
            assert imported["refused"] == 0, imported
            with Server("hotkv", server_program, folder=copy).start() as other, other.connect() as connection:
                assert connection.value("DEBUG", "DIGEST") == digest
                other.stop()
        out, _ = tool("log", "dump", "--dir", server.data, "--json")
        dumped = [json.loads(line) for line in out.splitlines()]
        blocks = [line for line in dumped if "block" in line]
        epochs = [line["block"] for line in blocks]
        assert epochs == sorted(epochs) and blocks[-1]["clean_stop"], blocks[-1]
        middle = epochs[len(epochs) // 2]
        out, _ = tool("log", "dump", "--dir", server.data, "--json", "--from-epoch", middle, "--to-epoch", middle)
        part = [json.loads(line) for line in out.splitlines()]
        assert part == [line for line in dumped if middle in (line.get("block"), line.get("epoch"))]


def case_readonly(folder, server_program):
    """What changes nothing works on a read-only medium, with a lock file in the copy and without one."""
    with Server("hotkv", server_program, folder=os.path.join(folder, "first")).start() as server:
        with server.connect() as connection:
            fill_strings(connection, 5, 200)
            tool("import", DATA + ".base.fbin", "--index", "docs", "--url", url(server))
            assert connection.value("SAVE") == b"OK"
            keys = sum(len(connection.value("SELECT", db) and connection.value("KEYS", "*")) for db in range(16))
        server.stop()
        directory = server.data
    wrapper = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"',
               directory]
    if subprocess.run([*wrapper, "true"], capture_output=True).returncode != 0:
        skip("nothing can be mounted here")
    commands = {"info": ("info",), "verify": ("verify",), "dump": ("log", "dump"),
                "export": ("export", "--output", "-", "--format", "ndjson"),
                "salvage": ("export", "--salvage", "--output", "-", "--format", "ndjson")}
    assert os.path.exists(os.path.join(directory, "LOCK"))
    for locks in (True, False):
        if not locks:
            os.unlink(os.path.join(directory, "LOCK"))
            os.unlink(os.path.join(directory, "catalog.mdb-lock"))
        for name, command in commands.items():
            done = subprocess.run([*wrapper, TOOL, *command, "--dir", directory], capture_output=True,
                                  timeout=120 * TIME_FACTOR)
            assert done.returncode == 0, (locks, name, done.stderr)
            if name in ("export", "salvage"):
                lines = [json.loads(line) for line in done.stdout.splitlines()]
                assert len(lines) == keys + 2000, (locks, name, len(lines), keys)
        refused = subprocess.run([*wrapper, server_program, "--dir", directory, "--port", str(free_port())],
                                 capture_output=True, timeout=60 * TIME_FACTOR)
        assert refused.returncode == 1 and b"Read-only file system" in refused.stdout, (locks, refused)


def case_vectorsets(folder, server_program):
    """Sets of VADD and of VSIM.*: elements, attributes, ends and fields survive export and import, by file and by URL."""
    keys = ["plain", "reduced", "declared"]

    def elements(connection):
        found = {}
        for key in keys:
            for name in [b"e%d" % i for i in range(20)]:
                vector, attr = connection.value("VSIM.GET", key, name, "RAW", "WITHATTR") or (None, None)
                left = connection.value("VSIM.TTL", key, name)
                # What is left of a minute's time; VSIM.TTL tells it to a second.
                found[key, name] = (vector, attr, left if left < 0 else left > 4000)
        return found

    def info(connection, key):
        flat = connection.value("VSIM.INFO", key)
        known = dict(zip(flat[::2], flat[1::2]))
        return [known[name] for name in (b"dim", b"metric", b"type", b"m", b"ef_construction", b"ef", b"count", b"expiring",
                                         b"with_attributes", b"fields", b"input_dim", b"transient")]

    def behaves(connection):
        """What the definitions make of further commands: projections, and what goes with its last element."""
        wide = [str(c - 3.5) for c in range(8)]
        connection.value("VADD", "reduced", "REDUCE", 4, "VALUES", 8, *wide, "wide", "M", 8)
        found = [array("f", connection.value("VSIM.GET", "reduced", "wide", "RAW")).tolist(),
                 sorted(connection.value("VSIM", "reduced", "VALUES", 8, *wide, "COUNT", 5)),  # two of them are equal
                 connection.value("VADD", "reduced", "VALUES", 4, 1, 2, 3, 4, "narrow", "M", 8),
                 connection.value("VADD", "plain", "VALUES", 8, *wide, "wide"),  # another type than NOQUANT
                 connection.value("VADD", "plain", "VALUES", 8, *[0] * 8, "zero", "NOQUANT")]
        for key in keys:
            for name in ["wide", "narrow", "zero"] + [f"e{i}" for i in range(20)]:
                connection.value("VSIM.EXPIRE", key, name, "PERSIST")  # one with an end would hold the key a moment longer
                connection.value("VSIM.DEL", key, name)
            found.append(connection.value("EXISTS", key))
        return [str(value) for value in found]

    files = {}
    with Server("hotkv", server_program, folder=os.path.join(folder, "from")).start() as server:
        with server.connect() as connection:
            for i in range(20):
                vector = [str(((i * 7 + c * 13) % 17) - 8.5) for c in range(8)]
                connection.value("VADD", "plain", "VALUES", 8, *vector, f"e{i}", "NOQUANT", "SETATTR", '{"n":%d}' % i)
                connection.value("VADD", "reduced", "REDUCE", 4, "VALUES", 8, *vector, f"e{i}", "M", 8)
                if i == 0:
                    connection.value("VSIM.CREATEINDEX", "declared", "DIM", 8, "METRIC", "L2", "TYPE", "F16", "EF", 50,
                                     "FIELDS", 1, "n", "NUMERIC")
                end = ["EX", 5000] if i % 3 == 0 else []
                connection.value("VSIM.SET", "declared", f"e{i}", "VALUES", 8, *vector, "ATTR", '{"n":%d}' % i, *end)
            connection.value("VSIM.EXPIRE", "plain", "e3", "EX", 5000)
            before = elements(connection), [info(connection, key) for key in keys]
            assert before[0]["plain", b"e3"][2] is True and before[0]["declared", b"e1"][2] == -1, before
            files["url"] = os.path.join(folder, "url.ndjson")
            tool("export", "--url", url(server), "--output", files["url"])
            server.stop()
        for form in ("ndjson", "resp"):
            files[form] = os.path.join(folder, "offline." + form)
            tool("export", "--dir", server.data, "--format", form, "--output", files[form])
        server.start()
        with server.connect() as connection:
            behaviour = behaves(connection)
            assert behaviour[-3:] == ["0", "0", "1"], behaviour
            server.stop()
    for form, path in files.items():
        with Server("hotkv", server_program, folder=os.path.join(folder, "to-" + form)).start() as server:
            with server.connect() as connection:
                tool("import", path, "--url", url(server))
                after = elements(connection), [info(connection, key) for key in keys]
                for key, (vector, *rest) in before[0].items():
                    again, *rest_again = after[0][key]
                    assert rest_again == rest, (form, key, rest, rest_again)
                    # Scaled to its length anew: the last bit may differ.
                    assert all(abs(x - y) <= 1e-5 * max(1, abs(x)) for x, y in
                               zip(array("f", vector), array("f", again), strict=True)), (form, key)
                assert after[1] == before[1], (form, before[1], after[1])
                again = behaves(connection)
                assert again == behaviour, (form, behaviour, again)
                # A set of that name with another projection, or none, is not mixed with this one.
                connection.value("VADD", "reduced", "VALUES", 4, 1, 2, 3, 4, "e0", "M", 8)
                _, err = tool("import", path, "--url", url(server), code=1)
                refusal = "index already exists" if form == "resp" else "exists already with INPUT_DIM 0, not 8"
                assert refusal in err, err
                server.stop()


def case_rebuild(folder, server_program):
    """Indexes built anew in a stopped directory: other settings, the same elements, attributes and ends."""
    def elements(connection):
        found = {}
        for name in [b"%d" % i for i in range(2000)]:
            vector, attr = connection.value("VSIM.GET", "docs", name, "RAW", "WITHATTR") or (None, None)
            found[name] = (vector, attr, connection.value("VSIM.TTL", "docs", name) > 0)
        return found

    def info(connection, key):
        flat = connection.value("VSIM.INFO", key)
        return dict(zip(flat[::2], flat[1::2]))

    with Server("hotkv", server_program, folder=folder).start() as server:
        with server.connect() as connection:
            tool("import", DATA + ".base.fbin", "--index", "docs", "--metric", "L2", "--type", "F32", "--url", url(server))
            connection.value("VSIM.DEL", "docs", "1", "2", "3")
            connection.value("VSIM.SETATTR", "docs", "5", '{"a":1}')
            connection.value("VSIM.EXPIRE", "docs", "7", "EX", "5000")
            connection.value("VADD", "other", "VALUES", 2, 1, 1, "x")
            before = elements(connection)
            server.stop()
        _, err = tool("rebuild", "nobody", "--dir", server.data, code=1)
        assert "no vector index nobody" in err, err
        _, err = tool("rebuild", "docs", "--dir", server.data, "--type", "Q9", code=1)
        assert "--type must be" in err, err
        result = tool_json("rebuild", "docs", "--dir", server.data, "--type", "Q4", "--m", 8, "--threads", 2)
        assert result["indexes"] == 1 and result["elements"] == 1997, result
        assert tool_json("verify", "--dir", server.data)["ok"]
        server.start()
        with server.connect() as connection:
            docs = info(connection, "docs")
            assert docs[b"type"] == b"Q4" and docs[b"m"] == 8 and docs[b"count"] == 1997 and docs[b"deleted"] == 0, docs
            assert info(connection, "other")[b"type"] == b"Q8"
            assert elements(connection) == before
            assert connection.value("VSIM.SEARCH", "docs", "ELE", "9", "K", 1) == [b"9"]
            server.stop()
        # What is exported has the ends too.
        path = os.path.join(folder, "ends.ndjson")
        tool("export", "--dir", server.data, "--output", path)
        with open(path) as lines:
            ends = [line for line in lines if '"id":"7"' in line and '"expire_at_ms":' in line]
        assert len(ends) == 1, ends
        result = tool_json("rebuild", "--dir", server.data)
        assert result["indexes"] == 2 and result["elements"] == 1998, result


def case_killed(folder, server_program):
    """Directories of killed servers: verify, export and the next start agree."""
    for round_number in range(4):
        home = os.path.join(folder, f"killed{round_number}")
        options = ["--appendfsync", ("always", "everysec", "no", "everysec")[round_number]]
        with Server("hotkv", server_program, options, folder=home).start() as server:
            with server.connect() as connection:
                fill_strings(connection, 10 + round_number, 900)
                connection.send(b"".join(encode(("INCR", f"counter:{i % 7}")) for i in range(20000)))
                time.sleep(0.02 * round_number)
                server.kill()
            result = tool_json("verify", "--dir", server.data)
            assert result["ok"], result
            path = os.path.join(folder, "killed.resp")
            tool("export", "--dir", server.data, "--output", path)
            server.start()
            with server.connect() as connection:
                digest = connection.value("DEBUG", "DIGEST")
                connection.value("FLUSHALL")
                tool("import", path, "--url", url(server))
                assert connection.value("DEBUG", "DIGEST") == digest
            server.stop()


def case_damaged(folder, server_program):
    """A damaged log and a damaged snapshot: verify and a start name the same file and offset; a torn tail is no damage."""
    home = os.path.join(folder, "damaged")
    with Server("hotkv", server_program, folder=home).start() as server:
        with server.connect() as connection:
            fill_strings(connection, 20, 600)
        server.stop()
        log = os.path.join(server.data, "log")
        dump = tool("log", "dump", "--dir", server.data, "--blocks", "--json")[0]
        block = [json.loads(line) for line in dump.splitlines()][0]
        flip(os.path.join(log, block["segment"]), block["offset"] + 40)
        result = tool_json("verify", "--dir", server.data, code=1)
        place = f"{block['segment']} @{block['offset']}"
        assert any(place in problem for problem in result["problems"]), result
        code, text = start_and_read(server, server_program)
        assert code not in (0, None) and place in text, (code, text)
        flip(os.path.join(log, block["segment"]), block["offset"] + 40)
        assert tool_json("verify", "--dir", server.data)["ok"]

        server.start()
        with server.connect() as connection:
            connection.value("SAVE")
        server.stop()
        snapshots = os.path.join(server.data, "snapshots")
        name = os.listdir(snapshots)[0]
        middle = os.path.getsize(os.path.join(snapshots, name)) // 2
        flip(os.path.join(snapshots, name), middle)
        result = tool_json("verify", "--dir", server.data, code=1)
        problem = next(text for text in result["problems"] if name in text)
        offset = re.search(name + r" @(\d+)", problem).group(1)
        code, text = start_and_read(server, server_program)
        assert code not in (0, None) and f"{name} @{offset}" in text, (problem, code, text)


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x10]))


def start_and_read(server, program):
    """Exit code and output of a start that is expected to refuse."""
    server.port = free_port()
    done = subprocess.run(server.arguments(), capture_output=True, timeout=60 * TIME_FACTOR, cwd=server.folder)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def case_expiry(folder, server_program):
    """Times of expiry by way of export and import: past ones stay away, others are kept."""
    with Server("hotkv", server_program).start() as server, server.connect() as connection:
        connection.pipeline([("SET", "a", "v", "PX", 300), ("SET", "b", "v", "EX", 60), ("SET", "c", "v", "EX", 60),
                             ("SET", "c", "w", "KEEPTTL"), ("SET", "d", "v", "EX", 60), ("PERSIST", "d")])
        at = connection.value("PEXPIRETIME", "c")
        for name in ("ttl.resp", "ttl.ndjson"):
            tool("export", "--url", url(server), "--output", os.path.join(folder, name))
        time.sleep(0.35)
        for name in ("ttl.resp", "ttl.ndjson"):
            connection.value("FLUSHALL")
            tool("import", os.path.join(folder, name), "--url", url(server))
            assert connection.value("GET", "c") == b"w" and connection.value("PEXPIRETIME", "c") == at
            assert connection.value("TTL", "d") == -1 and connection.value("EXISTS", "a") == 0
            assert connection.value("DBSIZE") == 3


def case_errors(folder, _server):
    """Exit codes and messages where nothing can be done, and where a file is faulty."""
    def write(name, data):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    tool(code=2)
    tool("nonsense", code=2)
    out, _ = tool("--help")
    assert "import" in out and "verify" in out
    good = write("good.ndjson", b'{"key":"k","value":"v"}\n')
    for args, text in (
            (("import", good), "either --dir or --url"),
            (("import", good, "--dir", "x", "--url", "redis://127.0.0.1"), "either --dir or --url"),
            (("import", os.path.join(folder, "missing"), "--dir", os.path.join(folder, "d0")), "missing"),
            (("import", folder, "--dir", os.path.join(folder, "d0")), "directory"),
            (("import", good, "--format", "rdb", "--dir", os.path.join(folder, "d0")), "format must be"),
            (("import", good, "--url", "redis://127.0.0.1:1"), "127.0.0.1"),
            (("export", "--dir", os.path.join(folder, "none"), "--output", "-", "--format", "resp"), "no catalog"),
            (("export", "--dir", folder, "--output", os.path.join(folder, "x.bin")), "--format"),
            (("verify", "--dir", os.path.join(folder, "none")), "no catalog"),
            (("info", "--dir", os.path.join(folder, "none")), "no catalog")):
        _, err = tool(*args, code=2)
        assert text in err, (args, err)
    assert not os.path.exists(os.path.join(folder, "d0", "catalog.mdb"))

    fine = base64.b64encode(b"\x00\xff").decode()
    bad = write("bad.ndjson", b'{"key":"a","value":{"base64":"%s"}}\n{"key":"b"}\n' % fine.encode())
    target = os.path.join(folder, "d1")
    result = tool_json("import", good, bad, "--dir", target, code=1)
    assert result["applied"] == 0 and "bad.ndjson @38: line 2" in result["problems"][0], result
    assert tool_json("verify", "--dir", target)["keys"] == 0
    result = tool_json("import", good, bad, "--dir", target, "--skip-bad", code=1)
    assert result["applied"] == 2 and result["skipped"] == 1, result
    assert tool_json("verify", "--dir", target)["keys"] == 2
    unknown = write("unknown", b"SET a b\r\n")
    _, err = tool("import", unknown, "--dir", target, code=1)
    assert "--format" in err, err
    cut = write("cut.resp", b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nhel")
    _, err = tool("import", cut, "--dir", target, code=1)
    assert "cut.resp @0: ends in the midst of a command" in err, err
    wrong = write("wrong.fbin", struct.pack("<IIf", 1, 2, 0.5))
    _, err = tool("import", wrong, "--format", "fbin", "--index", "i", "--dir", target, code=1)
    assert "1 rows of 2 components" in err, err


CASES = {name[5:]: function for name, function in sorted(globals().items()) if name.startswith("case_")}
WITHOUT_SERVER = {"errors", "redis"}


def main():
    global TOOL
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tool", required=True, help="path of hotkv-tool")
    options.add_argument("--server", help="path of hotkv-server")
    options.add_argument("cases", nargs="*", help=f"of: {', '.join(CASES)}")
    given = options.parse_args()
    TOOL = os.path.abspath(given.tool)
    server = given.server and os.path.abspath(given.server)
    for name in given.cases or CASES:
        if not server and name not in WITHOUT_SERVER:
            skip("no hotkv-server")
        folder = tempfile.mkdtemp(prefix="hotkv-test-tool-")
        try:
            CASES[name](folder, server)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{name}: ok", flush=True)


if __name__ == "__main__":
    main()
