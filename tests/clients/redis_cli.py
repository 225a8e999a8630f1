"""A session with redis-cli: one command a call, standard input, pipe mode, RESP3, --scan, --stat's and --bigkeys' needs."""
import os
import subprocess

PORT = os.environ["PORT"]


def cli(*arguments, text=None, binary=False):
    done = subprocess.run(["redis-cli", "-p", PORT, *arguments], input=text, capture_output=True,
                          text=not binary, timeout=60 * float(os.environ.get("HOTKV_TIME_FACTOR", "1")))
    assert done.returncode == 0, (arguments, done)
    return done.stdout if binary else done.stdout.strip()


def expect(got, wanted):
    assert got == wanted, f"got {got!r}, expected {wanted!r}"


expect(cli("PING"), "PONG")
expect(cli("SET", "greeting", "hello world"), "OK")
expect(cli("GET", "greeting"), "hello world")
expect(cli("GET", "missing"), "")
expect(cli("--no-raw", "GET", "missing"), "(nil)")
expect(cli("--no-raw", "INCR", "visits"), "(integer) 1")
expect(cli("--no-raw", "MGET", "greeting", "missing"), '1) "hello world"\n2) (nil)')
expect(cli("--no-raw", "SET", "greeting"), "(error) ERR wrong number of arguments for 'set' command")
expect(cli("-3", "--no-raw", "GET", "missing"), "(nil)")
expect(cli("-3", "PING"), "PONG")
expect(cli("-n", "3", "SET", "other", "db3"), "OK")
expect(cli("-n", "3", "GET", "other"), "db3")
expect(cli("GET", "other"), "")
expect(cli("EXPIRE", "greeting", "100"), "1")
assert 98 <= int(cli("TTL", "greeting")) <= 100

# several commands in one session, a transaction among them
out = cli(text="MULTI\nINCR visits\nINCR visits\nEXEC\nDBSIZE\n")
expect(out.split("\n"), ["OK", "QUEUED", "QUEUED", "2", "3", "2"])

# mass insertion
commands = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\nbulk:%d\r\n$1\r\nx\r\n" % (len("bulk:%d" % i), i) for i in range(10000))
out = cli("--pipe", text=commands, binary=True).decode()
assert "errors: 0, replies: 10000" in out, out
expect(cli("DBSIZE"), "10002")
keys = cli("--scan", "--pattern", "bulk:*").split("\n")
expect(len(keys), len(set(keys)))
expect(len(keys), 10000)

# what administrators call
assert "redis_version:" in cli("INFO", "server")
assert "keys=10002" in cli("INFO", "keyspace")
expect(cli("CONFIG", "GET", "maxmemory").split("\n"), ["maxmemory", "0"])
assert "name=" in cli("CLIENT", "LIST")
expect(cli("-x", "SET", "from-stdin", text="a value\nwith lines"), "OK")
assert cli("--latency", "--raw", "-i", "1").split()  # min max avg samples
expect(cli("EVAL_NOT_THERE").split()[0:3], ["ERR", "unknown", "command"])
expect(cli("FLUSHALL"), "OK")
expect(cli("DBSIZE"), "0")
print("redis-cli: fine")
