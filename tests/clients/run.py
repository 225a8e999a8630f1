#!/usr/bin/python3
"""The first session of a stock client with hotkv-server: run.py --server PATH --client cli|python|node|ioredis

--against-redis runs the same against Debian's redis-server, to check the session itself.
Skipped (exit code 77) where the client is not installed.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from servers import TIME_FACTOR, Server, find_redis_server, server_argument, skip  # noqa: E402

SCRIPTS = {"cli": "redis_cli.py", "python": "python_redis.py", "node": "node_redis.mjs", "ioredis": "ioredis.mjs"}


def command_of(client):
    script = os.path.join(HERE, SCRIPTS[client])
    if client == "cli" and not shutil.which("redis-cli"):
        skip("no redis-cli (apt-get install redis-tools)")
    if client in ("cli", "python"):
        return [sys.executable, script]
    package = {"node": "redis", "ioredis": "ioredis"}[client]
    modules = os.path.join(ROOT, "build", "node", "node_modules")
    if not shutil.which("node") or not os.path.isdir(os.path.join(modules, package)):
        skip(f"no Node client '{package}' under build/node (tools/test fetches it from npm)")
    # ES modules are looked for beside the script, not in NODE_PATH: run a copy next to the packages.
    copy = os.path.join(ROOT, "build", "node", SCRIPTS[client])
    shutil.copyfile(script, copy)
    return ["node", copy]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    server_argument(parser)
    parser.add_argument("--client", choices=SCRIPTS, required=True)
    parser.add_argument("--against-redis", action="store_true")
    options = parser.parse_args()
    command = command_of(options.client)
    with tempfile.TemporaryDirectory(prefix="hotkv-clients-") as folder:
        kind, program = ("redis", find_redis_server(folder)) if options.against_redis else ("hotkv", options.server)
        with Server(kind, program) as server:
            server.start()
            done = subprocess.run(command, env={**os.environ, "PORT": str(server.port), "KIND": kind}, timeout=120 * TIME_FACTOR)
            alive = server.process.poll() is None
            if done.returncode not in (0, 77) or not alive:
                print(server.log()[-3000:])
            return done.returncode if alive else 1


if __name__ == "__main__":
    sys.exit(main())
