#!/usr/bin/python3
"""Measures the cost of `encoder-worker serve`: a list of many sessions, and many clients at once.

    /usr/bin/python3 Benchmarks/serving.py .build/release/encoder-worker [--sessions 1000] [--clients 200] [--seconds 60]

Prints a table. Exits with 1 if an answer was wrong, or if the server's memory grew although the requests stayed the
same.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid):
    return int(next(l for l in Path(f"/proc/{pid}/status").read_text().splitlines() if l.startswith("VmRSS")).split()[1])


def make_output(binary, place, sessions):
    """Encodes one session of each fixture, and copies one under other names, with its manifests."""
    for fixture in ["exact-1fps", "gap", "rotation"]:
        subprocess.run([binary, "encode", FIXTURES / fixture, "--output", place], check=True, stdout=subprocess.DEVNULL)
    text = (place / "gap" / "session.json").read_text()
    for number in range(sessions - 3):
        copy = place / f"copy-{number:05}"
        shutil.copytree(place / "gap", copy)
        (copy / "session.json").write_text(text.replace('"gap"', f'"copy-{number:05}"'))


async def get(reader, writer, path, first=None, last=None):
    part = f"Range: bytes={first}-{last}\r\n" if first is not None else ""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{part}\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    size = next(int(l.split(":")[1]) for l in head.splitlines() if l.lower().startswith("content-length"))
    return int(head.split()[1]), await reader.readexactly(size)


async def client(port, files, until, counts):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    chance = random.Random(counts["clients"])
    counts["clients"] += 1
    while time.monotonic() < until:
        path, whole = chance.choice(files)
        first = chance.randrange(len(whole))
        last = min(len(whole) - 1, first + chance.randrange(1, 100_000))
        status, body = await get(reader, writer, path, first, last)
        counts["requests"] += 1
        counts["bytes"] += len(body)
        if status != 206 or body != whole[first:last + 1]:
            counts["errors"] += 1
    writer.close()


async def load(port, pid, files, clients, seconds):
    counts = {"clients": 0, "requests": 0, "bytes": 0, "errors": 0}
    memory = []
    started, cpu = time.monotonic(), cpu_seconds(pid)
    tasks = [asyncio.create_task(client(port, files, started + seconds, counts)) for _ in range(clients)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(min(1, seconds / 10))
        memory.append(resident_kib(pid))
    for task in tasks:
        if task.exception():
            counts["errors"] += 1
            print(f"a client: {task.exception()!r}", file=sys.stderr)
    return counts, memory, time.monotonic() - started, cpu_seconds(pid) - cpu


async def measure(arguments, place):
    server = subprocess.Popen(
        [arguments.binary, "serve", place, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline().rstrip("/\n").rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        listed = []
        for _ in range(2):
            cpu = cpu_seconds(server.pid)
            status, body = await get(reader, writer, "/sessions.json")
            listed.append(cpu_seconds(server.pid) - cpu)
            if status != 200 or len(json.loads(body)["sessions"]) != arguments.sessions:
                sys.exit("not all sessions are listed")
        cpu = cpu_seconds(server.pid)
        for _ in range(100):
            await get(reader, writer, "/sessions.json?limit=500")
        page = (cpu_seconds(server.pid) - cpu) * 10
        files = []
        for session in ["exact-1fps", "gap", "rotation"]:
            _, timeline = await get(reader, writer, f"/sessions/{session}/timeline.json")
            for segment in json.loads(timeline)["segments"]:
                files += [f"/sessions/{session}/{segment[name]}" for name in ["file", "fragment"]]
            files.append(f"/sessions/{session}/session.mp4")
        files = [(path, (await get(reader, writer, path))[1]) for path in files]
        writer.close()
        counts, memory, took, cpu = await load(port, server.pid, files, arguments.clients, arguments.seconds)
    finally:
        server.terminate()
        server.wait()
    half = len(memory) // 2
    # The first half warms up: the server starts a thread for each connection.
    grown = max(memory[half:]) - max(memory[:half])
    print("| what | measured |\n|---|---|")
    print(f"| {arguments.sessions} sessions listed, CPU | {listed[0]:.2f} s first, {listed[1]:.2f} s when nothing is new |")
    print(f"| a page of 500 of them, CPU | {page:.1f} ms |")
    print(f"| {arguments.clients} clients for {took:.0f} s, parts of files and fragments | {counts['requests']} requests, "
          f"{counts['bytes'] / 1e9:.2f} GB, {counts['errors']} errors |")
    print(f"| CPU of the server a request | {1000 * cpu / max(1, counts['requests']):.2f} ms |")
    print(f"| memory of the server | {max(memory) / 1024:.0f} MiB at most; second half against first "
          f"{grown / 1024:+.1f} MiB |")
    # A run below 30 s is all warm-up, so memory and the time of the list are not judged.
    is_fine = arguments.seconds < 30 or grown < 4_096 and listed[0] < 1
    return counts["errors"] == 0 and counts["requests"] > 0 and is_fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="serving-") as place:
        make_output(arguments.binary, Path(place), arguments.sessions)
        sys.exit(0 if asyncio.run(measure(arguments, place)) else 1)


if __name__ == "__main__":
    main()
