#!/usr/bin/python3
"""hotkv-bench against a running hotkv-server: each kind of run works, its figures are plausible, recall is reached."""
import argparse
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from servers import TIME_FACTOR, Server, server_argument  # noqa: E402


def bench(options, server, *arguments):
    command = [options.bench, arguments[0], "--url", f"redis://127.0.0.1:{server.port}", "--json", *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240 * TIME_FACTOR)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}\n{server.log()[-2000:]}")
    return json.loads(done.stdout)


def check_kv(options, server):
    for mix, pipeline in (("set=50,get=50", 1), ("set=20,get=40,incr=20,mset=10,mget=10", 16), ("get", 64)):
        result = bench(options, server, "kv", "--seconds", "0.5", "--warmup", "0.2", "--keys", "5000", "--mix", mix,
                       "--pipeline", str(pipeline), "--dist", "zipf:0.99")
        assert result["operations"] > 500, result
        assert result["errors"] == 0 and result["nulls"] == 0, result
        assert result["server"]["pid"] == server.pid, result
        assert result["server_cpu_us_per_operation"] > 0, result
        assert result["latency_us"]["p50"] <= result["latency_us"]["p99"] <= result["latency_us"]["max"], result
    with server.connect() as connection:
        # keys, counters among them, that the runs above may have made
        assert 5000 <= connection.value("DBSIZE") <= 10000


def check_ann(options, server):
    for dialect, kind in (("vsim", "the default"), ("vsim", "F32"), ("vset", "Q8")):
        with server.connect() as connection:
            names = connection.value("COMMAND", "LIST")
        if {"vsim": b"vsim.search", "vset": b"vadd"}[dialect] not in names:
            print(f"{dialect}: not in this server")
            continue
        kind_option = [] if kind == "the default" else ["--type", kind]
        result = bench(options, server, "ann", "--data", options.data, "--dialect", dialect, *kind_option, "--ef", "40,200",
                       "--clients", "1,4", "--seconds", "0.5", "--warmup", "0.2", "--recall-min", "0.97")
        assert len(result["searches"]) == 4, result
        assert all(each["queries_per_second"] > 10 for each in result["searches"]), result
        print(f"{dialect} {kind}: recall {[each['recall'] for each in result['searches'][::2]]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    server_argument(parser)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--against-redis", action="store_true")
    options = parser.parse_args()
    with Server("redis" if options.against_redis else "hotkv", options.server) as server:
        server.start()
        check_kv(options, server)
        check_ann(options, server)
    print("hotkv-bench: fine")


if __name__ == "__main__":
    main()
