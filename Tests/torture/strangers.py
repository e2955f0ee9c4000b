#!/usr/bin/python3
"""Holds a server with hostile connections while a good client asks: strangers.py PORT PATH SECONDS COUNT ADDRESS[,ADDRESS...] GOOD

COUNT connections without a token come from the addresses. Each is opened again when the server closes it. They are, in turn:
clients that pipeline requests for PATH and read nothing, clients that send nothing, clients that send a header byte by byte, and
clients that leave right after their request. The good client at the address GOOD opens a connection for each request, 10 a second.
The output is JSON: the requests, those without the status 200, and the milliseconds of the median and of the slowest.
"""

import json
import os
import resource
import selectors
import socket
import statistics
import sys
import time

PORT, PATH, SECONDS, COUNT = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
ADDRESSES, GOOD = sys.argv[5].split(","), sys.argv[6]
REQUEST = f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


class Stranger:
    def __init__(self, number, selector):
        self.number, self.selector, self.socket = number, selector, None

    def open(self):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        # A client that reads nothing takes few bytes.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self.socket.bind((ADDRESSES[self.number % len(ADDRESSES)], 0))
        self.socket.connect_ex(("127.0.0.1", PORT))
        self.selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def close(self):
        self.selector.unregister(self.socket)
        self.socket.close()
        self.socket = None

    def step(self, events):
        """Returns whether the connection goes on."""
        kind = self.number // len(ADDRESSES) % 4
        if events & selectors.EVENT_READ and kind != 0:
            return bool(self.socket.recv(4096))
        if kind == 0:
            # Ends with an error when the server closes the connection.
            self.socket.send(REQUEST * 100)
        elif kind == 1:
            self.selector.modify(self.socket, selectors.EVENT_READ, self)
        elif kind == 2:
            self.socket.send(b"GET / HTTP/1.1\r\nX: ")
            self.selector.modify(self.socket, selectors.EVENT_READ, self)
        else:
            self.socket.send(REQUEST)
            return False
        return True


def strangers():
    selector = selectors.EpollSelector()
    all = [Stranger(number, selector) for number in range(COUNT)]
    while True:
        for stranger in all:
            if stranger.socket is None:
                stranger.open()
        for key, events in selector.select(0.05):
            try:
                goes_on = key.data.step(events)
            except BlockingIOError:
                goes_on = True
            except OSError:
                goes_on = False
            if not goes_on:
                key.data.close()
        # A second of hostile work takes half a second of a core.
        time.sleep(0.02)


def good():
    times, failed = [], {}
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        begun = time.monotonic()
        try:
            with socket.create_connection(("127.0.0.1", PORT), timeout=30, source_address=(GOOD, 0)) as client:
                client.sendall(REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                answer = b""
                while more := client.recv(1 << 16):
                    answer += more
            status = answer[9:12].decode() or "none"
        except OSError as error:
            status = type(error).__name__
        times.append(time.monotonic() - begun)
        if status != "200":
            failed[status] = failed.get(status, 0) + 1
        time.sleep(max(0, begun + 0.1 - time.monotonic()))
    print(json.dumps({
        "requests": len(times), "failed": failed, "medianMs": round(1000 * statistics.median(times), 1),
        "slowestMs": round(1000 * max(times), 1)}))


resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
child = os.fork()
if child == 0:
    strangers()
try:
    time.sleep(2)
    good()
finally:
    os.kill(child, 9)
