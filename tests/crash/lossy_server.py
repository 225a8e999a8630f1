#!/usr/bin/python3
"""A small key-value server with a log, which can be told to get durability wrong: it proves that kill9.py can fail.

--fault none       each commit is in the file before it is acknowledged
        early-ack  commits reach the file up to 300 ms after they were acknowledged
        torn       a part of a transaction reaches the file later than the rest
        reorder    some records reach the file after later ones of the same client
        forget     one record is left out when the file is read
        split      the records of every second client reach the file 30 ms late
"""
import argparse
import json
import os
import random
import selectors
import signal
import socket
import sys
import time


class Log:
    def __init__(self, path, fault):
        self.path, self.fault = path, fault
        self.waiting = {}  # client -> [(due, record)]
        self.file = None

    def replay(self, apply):
        records = []
        if os.path.exists(self.path):
            with open(self.path) as file:
                for line in file:
                    if line.endswith("\n"):
                        records.append(json.loads(line))
        if self.fault == "forget" and len(records) > 50:
            del records[random.randrange(len(records) // 2, len(records) - 20)]
            with open(self.path, "w") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
        for record in records:
            for command in record:
                apply(command)
        self.file = open(self.path, "a", buffering=1 << 20)

    def write(self, record):
        self.file.write(json.dumps(record) + "\n")

    def delay(self, client, record, seconds):
        self.waiting.setdefault(client, []).append((time.monotonic() + seconds, record))

    def commit(self, client, record):
        if self.fault == "early-ack":
            self.delay(0, record, 0.3)
        elif self.fault == "split" and client % 2:
            self.delay(client, record, 0.03)
        elif self.fault == "torn" and len(record) > 1:
            at = random.choice((1, 3))
            self.write(record[:at])
            self.delay(client, record[at:], 0.1)
        elif self.fault == "reorder" and record[0][1].startswith("u:") and random.random() < 0.05:
            self.delay(client, record, 0.02)
        else:
            self.write(record)

    def turn(self):
        now = time.monotonic()
        for records in self.waiting.values():
            while records and records[0][0] <= now:
                self.write(records.pop(0)[1])
        self.file.flush()


class Store:
    def __init__(self, log):
        self.data, self.log = {}, log
        log.replay(self.apply)

    def apply(self, command):
        name, key = command[0], command[1]
        if name == "SET":
            self.data[key] = command[2]
            return b"+OK\r\n"
        by = int(command[2]) if name == "INCRBY" else 1
        value = int(self.data.get(key, 0)) + by
        self.data[key] = str(value)
        return b":%d\r\n" % value

    def bulk(self, key):
        value = self.data.get(key)
        return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value.encode())

    def run(self, client, command):
        name = command[0].upper()
        if name in ("SET", "INCR", "INCRBY"):
            reply = self.apply([name, *command[1:]])
            self.log.commit(client.number, [[name, *command[1:]]])
            return reply
        if name == "GET":
            return self.bulk(command[1])
        if name == "MGET":
            return b"*%d\r\n" % (len(command) - 1) + b"".join(self.bulk(key) for key in command[1:])
        if name == "EXISTS":
            return b":%d\r\n" % sum(key in self.data for key in command[1:])
        if name == "DBSIZE":
            return b":%d\r\n" % len(self.data)
        return b"+PONG\r\n" if name == "PING" else b"-ERR unknown command\r\n"

    def execute(self, client, queue):
        replies = [self.apply([command[0].upper(), *command[1:]]) for command in queue]
        self.log.commit(client.number, queue)
        return b"*%d\r\n" % len(replies) + b"".join(replies)


class Client:
    def __init__(self, number, sock):
        self.number, self.socket = number, sock
        self.buffer, self.out, self.queue = b"", b"", None

    def commands(self):
        at = 0
        while True:
            start = at
            lines = self.buffer[at:at + 4096].split(b"\r\n", 1)
            if len(lines) < 2 or not lines[0].startswith(b"*"):
                break
            at += len(lines[0]) + 2
            words = []
            for _ in range(int(lines[0][1:])):
                end = self.buffer.find(b"\r\n", at)
                if end < 0:
                    break
                size = int(self.buffer[at + 1:end])
                if len(self.buffer) < end + size + 4:
                    break
                words.append(self.buffer[end + 2:end + 2 + size].decode())
                at = end + size + 4
            if len(words) < int(lines[0][1:]):
                at = start
                break
            yield words
        self.buffer = self.buffer[at:]

    def handle(self, store):
        for words in self.commands():
            name = words[0].upper()
            if name == "MULTI":
                self.queue = []
                self.out += b"+OK\r\n"
            elif name == "EXEC":
                self.out += store.execute(self, self.queue)
                self.queue = None
            elif self.queue is not None:
                self.queue.append(words)
                self.out += b"+QUEUED\r\n"
            else:
                self.out += store.run(self, words)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--dir")
    parser.add_argument("--fault", default="none")
    options, _ = parser.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    log = Log(os.path.join(options.dir, "log.json"), options.fault)
    store = Store(log)
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", options.port))
    selector.register(listener, selectors.EVENT_READ)
    clients = 0
    while True:
        ready = []
        for key, _ in selector.select(0.005):
            if key.fileobj is listener:
                sock, _ = listener.accept()
                clients += 1
                selector.register(sock, selectors.EVENT_READ, Client(clients, sock))
                continue
            client = key.data
            try:
                data = client.socket.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                selector.unregister(client.socket)
                client.socket.close()
                continue
            client.buffer += data
            client.handle(store)
            ready.append(client)
        log.turn()  # in the file before any reply goes out
        for client in ready:
            try:
                client.socket.sendall(client.out)
            except OSError:
                pass
            client.out = b""


if __name__ == "__main__":
    main()
