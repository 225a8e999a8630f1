"""A session with python3-redis: commands, pipelines, transactions, WATCH with retry, scan_iter, a pool of threads."""
import os
import sys
import threading

try:
    import redis
except ImportError:
    print("skipped: no python3-redis (apt-get install python3-redis)")
    sys.exit(77)

PORT = int(os.environ["PORT"])


def expect(got, wanted):
    assert got == wanted, f"got {got!r}, expected {wanted!r}"


def basics(client):
    expect(client.ping(), True)
    expect(client.set("greeting", "hello"), True)
    expect(client.get("greeting"), b"hello")
    expect(client.get("missing"), None)
    expect(client.set("greeting", "again", nx=True), None)
    expect(client.set("greeting", "new", get=True), b"hello")
    expect(client.set("short", b"\x00\xff\r\n", px=100000), True)
    expect(client.get("short"), b"\x00\xff\r\n")
    assert 99000 < client.pttl("short") <= 100000
    expect(client.incr("n", 5), 5)
    expect(client.decr("n"), 4)
    expect(client.incrbyfloat("f", 1.5), 1.5)
    expect(client.mset({"a": 1, "b": 2}), True)
    expect(client.mget("a", "b", "c"), [b"1", b"2", None])
    expect(client.append("a", "23"), 3)
    expect(client.getrange("a", 0, 1), b"12")
    expect(client.exists("a", "b", "c"), 2)
    expect(client.type("a"), b"string")
    expect(client.rename("a", "z"), True)
    expect(client.delete("z", "b"), 2)
    expect(client.expire("n", 50), True)
    expect(client.persist("n"), True)
    expect(client.ttl("n"), -1)
    expect(client.getdel("n"), b"4")
    try:
        client.incr("greeting")
        raise AssertionError("no error")
    except redis.ResponseError as error:
        expect(str(error), "value is not an integer or out of range")


def transactions(client):
    with client.pipeline(transaction=True) as pipe:
        expect(pipe.set("x", 1).incr("x").get("x").execute(), [True, 2, b"2"])
    with client.pipeline(transaction=False) as pipe:
        for i in range(2000):
            pipe.set(f"p:{i}", i)
        expect(pipe.execute(), [True] * 2000)

    def add_ten(pipe):
        value = int(pipe.get("x"))
        pipe.multi()
        pipe.set("x", value + 10)
    client.transaction(add_ten, "x")
    expect(client.get("x"), b"12")
    with client.pipeline() as pipe:
        pipe.watch("x")
        client.set("x", "changed")
        pipe.multi()
        pipe.set("x", "lost")
        try:
            pipe.execute()
            raise AssertionError("EXEC ran")
        except redis.WatchError:
            pass
    expect(sorted(client.scan_iter("p:1?", count=7)), sorted(b"p:%d" % i for i in range(10, 20)))
    expect(len(list(client.scan_iter("p:*"))), 2000)


def threads(client):
    def work():
        for _ in range(500):
            client.incr("counter")
    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    expect(client.get("counter"), b"4000")
    expect(client.set("a-lock", "token", nx=True, px=10000), True)
    expect(client.set("a-lock", "other", nx=True, px=10000), None)


def administration(client):
    info = client.info()
    assert info["redis_version"].count(".") == 2
    assert info["db0"]["keys"] > 2000
    expect(client.config_get("maxmemory"), {"maxmemory": "0"})
    expect(client.client_setname("python"), True)
    expect(client.client_getname(), "python")
    assert any(each["name"] == "python" for each in client.client_list())
    expect(client.echo("x"), b"x")
    assert client.dbsize() > 2000
    expect(client.execute_command("COMMAND INFO", "get")[0][1], 2)
    expect(client.flushdb(), True)


def main():
    with redis.Redis(port=PORT) as client:
        basics(client)
        transactions(client)
        threads(client)
        administration(client)
    text = redis.Redis(port=PORT, db=2, decode_responses=True)
    text.set("ключ", "значение")
    expect(text.get("ключ"), "значение")
    expect(text.keys("*"), ["ключ"])
    expect(redis.Redis(port=PORT).get("ключ"), None)
    print(f"python3-redis {redis.__version__}: fine")


main()
