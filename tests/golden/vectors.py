#!/usr/bin/python3
"""A data directory with vector indexes, as format version 1 wrote it, answers as it did then.

  vectors.py --server PATH           what is in vectors-v1.tar.xz is started on and asked; answers are in vectors-v1.json
  vectors.py --server PATH --write   makes both anew: only for a new version, under a new name; old ones stay for ever

In the directory: indexes of types F32 and Q4 with attributes, of which elements were replaced and deleted; a snapshot with a
generation of each, and changes behind it in the log.
"""
import argparse
import json
import os
import random
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from servers import Server, server_argument  # noqa: E402

ARCHIVE = os.path.join(HERE, "vectors-v1.tar.xz")
ANSWERS = os.path.join(HERE, "vectors-v1.json")
DIM, COUNT, TYPES = 24, 120, ("F32", "Q4")
NOT_DATA = ("LOCK", "catalog.mdb-lock")


def vector(seed):
    source = random.Random(seed)
    return [str(round(source.gauss(0, 1), 3)) for _ in range(DIM)]


def plain(value):
    return value.decode() if isinstance(value, bytes) else [plain(each) for each in value] if isinstance(value, list) else value


def call(connection, *words):
    return plain(connection.value(*words))


def put(connection, index, name, seed, attributes=None):
    words = ["VSIM.SET", index, name, "VALUES", str(DIM), *vector(seed)]
    reply = call(connection, *words, *(["ATTR", attributes] if attributes else []))
    assert reply in (0, 1), reply


def change(connection, first, last):
    for index in TYPES:
        for i in range(first, last):
            put(connection, index, f"e{i}", i, json.dumps({"n": i}) if i % 3 == 0 else None)
        for i in range(first, last, 7):
            assert call(connection, "VSIM.DEL", index, f"e{i}") == 1
        put(connection, index, f"e{first + 1}", 5000 + first, '{"replaced":true}')


def write(server):
    with server.connect() as connection:
        for index in TYPES:
            assert call(connection, "VSIM.CREATEINDEX", index, "DIM", str(DIM), "TYPE", index, "M", "8") == "OK"
        assert call(connection, "SET", "beside", "a string") == "OK"
        change(connection, 0, COUNT)
        assert call(connection, "SAVE") == "OK"
        change(connection, COUNT, COUNT + 30)
    assert server.stop() == 0


def answers(server):
    """What is asked, and what comes. Distances are compared to four digits: kernels differ in the last bits."""
    out = {}
    with server.connect() as connection:
        out["keys"] = sorted(call(connection, "KEYS", "*"))
        out["beside"] = call(connection, "GET", "beside")
        for index in TYPES:
            names = [f"e{i}" for i in range(COUNT + 30)]
            out[f"{index} exist"] = call(connection, "VSIM.EXISTS", index, *names)
            for name in ("e1", "e3", "e121", "e149"):
                found, attributes = call(connection, "VSIM.GET", index, name, "WITHATTR")
                out[f"{index} {name}"] = [[round(float(number), 3) for number in found], attributes]
            for query in range(5):
                reply = call(connection, "VSIM.SEARCH", index, "VALUES", str(DIM), *vector(9000 + query), "K", "12", "WITHSCORES")
                out[f"{index} search {query}"] = [[name, round(float(score), 4)] for name, score in
                                                  zip(reply[::2], reply[1::2])]
    return out


def same(wanted, got):
    if isinstance(wanted, float) or isinstance(got, float):
        return abs(wanted - got) < 0.0003
    if isinstance(wanted, list):
        return isinstance(got, list) and len(wanted) == len(got) and all(map(same, wanted, got))
    return wanted == got


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    server_argument(parser)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    small = ["--stripes", "16", "--threads", "1"]
    with tempfile.TemporaryDirectory(prefix="hotkv-golden-") as folder:
        if options.write:
            with Server("hotkv", options.server, small, folder=folder) as server:
                write(server.start())
                with tarfile.open(ARCHIVE, "w:xz") as archive:
                    archive.add(server.data, "data", filter=lambda each: None if each.name.endswith(NOT_DATA) else each)
                with open(ANSWERS, "w") as file:
                    json.dump(answers(server.start()), file, indent=0)
            return 0
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder)
        with open(ANSWERS) as file:
            wanted = json.load(file)
        # Twice: what the first start leaves behind is read as well.
        for start in range(2):
            with Server("hotkv", options.server, ["--threads", "2"], folder=folder) as server:
                got = answers(server.start())
                assert wanted.keys() == got.keys()
                for name, value in wanted.items():
                    assert same(value, got[name]), f"start {start}, {name}:\n  {value}\n  {got[name]}"
                assert server.stop() == 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
