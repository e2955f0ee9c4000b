"""Speaks the protocol of Redis on a free port of this machine, and lies: hostile_redis.py MODE

It greets like a good Redis: INFO, SCRIPT LOAD, and the script that joins the group. Then MODE decides. It prints its port, and for
each line of standard input the number of commands so far; it ends with standard input. It counts each script by its name.
"""

import hashlib
import itertools
import json
import os
import socket
import sys
import threading
import time
from collections import Counter

MODE = sys.argv[1]
INFO = "redis_version:7.2.0\r\nuptime_in_seconds:1000\r\naof_enabled:1\r\naof_last_write_status:ok\r\nmaxmemory:0\r\n"
# A part of each script that no other has.
MARKS = {"^BUSYGROUP": "join", "XREADGROUP": "next", "'IDLE', lease": "takeOver",
         "lost[#lost + 1]": "renew", "redis.call('XLEN'": "waiting", "local summary": "held",
         "'DELCONSUMER', stream, group, me)": "leave", "'RETRYCOUNT', ARGV[3]": "begin"}
LARGEST, SMALLEST = 2 ** 63 - 1, -(2 ** 63)
counts = Counter()
scripts = {}
given = itertools.count(1)


def reply(value):
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join(map(reply, value))
    value = value.encode() if isinstance(value, str) else value
    return b"$%d\r\n" % len(value) + value + b"\r\n"


def drip(connection, data):
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(0.5)


def for_ever(connection, start, piece):
    connection.sendall(start)
    while True:
        connection.sendall(piece * 1000)


def entry(name, attempt):
    return ["%d-0" % next(given), name, attempt, attempt, None, ""]


def honest(script):
    """Returns what an empty queue says."""
    return {"join": "1.1 me", "next": None, "takeOver": [], "renew": [], "waiting": 0, "held": [0, 0]}.get(script, 1)


WRONG = [7, "text", ["a", 1, None], None, [], [[[]]], -1, ["1-0"], ["x", "y", "z", "w"], ["1-0", "a", "b", "c"]]


def lie(connection, script):
    """Answers a script other than the one that joins, or PING."""
    send = connection.sendall
    if MODE in ("attempts-high", "attempts-low"):
        attempt = LARGEST if MODE == "attempts-high" else SMALLEST
        if script == "waiting":
            return send(reply(1 if counts["next"] < 3 else 0))
        if script == "next" and counts["next"] <= 3:
            return send(reply(entry("phone@1.tar", attempt)))
        if script == "takeOver" and counts["takeOver"] == 1:
            return send(reply([entry("tablet@1.tar", attempt)]))
        if script == "held":
            return send(reply([attempt, attempt]))
    elif MODE == "waiting" and script == "waiting":
        return send(reply(LARGEST))
    elif MODE == "duplicates" and script in ("waiting", "next"):
        return send(reply(1 if script == "waiting" else 0))
    elif MODE == "nameless" and script in ("waiting", "next"):
        return send(reply(1 if script == "waiting" else entry("", 1)))
    elif MODE == "takeovers":
        if script == "takeOver":
            return send(reply([entry("phone@%d.tar" % number, 1) for number in range(16)]))
        if script == "begin":
            return send(reply(0))
    elif MODE == "drip":
        return drip(connection, reply("x" * 1000))
    elif MODE == "error":
        return send(b"-ERR " + b"x" * 1_000_000 + b"\r\n")
    elif MODE == "endless-list":
        return for_ever(connection, b"*2147483647\r\n", b":1\r\n")
    elif MODE == "endless-lists":
        return for_ever(connection, b"*60000\r\n", b"*50000\r\n")
    elif MODE == "endless-text":
        return for_ever(connection, b"$2000000000\r\n", b"x" * 100)
    elif MODE == "endless-line":
        return for_ever(connection, b"+", b"x" * 100)
    elif MODE == "deep":
        return send(b"*1\r\n" * 100_000)
    elif MODE == "twice":
        return send(b"+PONG\r\n+PONG\r\n")
    elif MODE == "garbage":
        return send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    elif MODE == "types":
        return send(reply(WRONG[sum(counts.values()) % len(WRONG)]))
    send(reply(honest(script)))


def answer(connection, words):
    name = words[0].decode().upper()
    script = scripts.get(words[1]) if name == "EVALSHA" else name.lower()
    counts[script] += 1
    if name == "INFO":
        version = "6." + "x" * 500_000 if MODE == "version" else None
        return connection.sendall(reply(INFO.replace("7.2.0", version) if version else INFO))
    if name == "SCRIPT":
        digest = hashlib.sha1(words[2]).hexdigest().encode()
        scripts[digest] = next((script for mark, script in MARKS.items() if mark.encode() in words[2]), "other")
        return connection.sendall(reply(digest if MODE != "digest" else "x" * 500_000))
    if script == "join":
        greeting = {"group": "x" * 500_000, "store": ["s3://other\n" + "x" * 500_000]}
        return connection.sendall(reply(greeting.get(MODE, honest(script))))
    lie(connection, script)


def serve(connection):
    stream = connection.makefile("rb")
    try:
        while line := stream.readline():
            words = []
            for _ in range(int(line[1:])):
                words.append(stream.read(int(stream.readline()[1:])))
                stream.read(2)
            answer(connection, words)
    except OSError:
        pass
    finally:
        connection.close()


listener = socket.create_server(("127.0.0.1", 0))


def listen():
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=[connection], daemon=True).start()


threading.Thread(target=listen, daemon=True).start()
print(listener.getsockname()[1], flush=True)
for _ in sys.stdin:
    print(json.dumps(dict(counts)), flush=True)
os._exit(0)
