"""A cheap S3 store for remote.py: keeps objects in memory, honours conditions, ignores signatures.

Usage: remote_store.py LOG GET_MS PUT_MS

Listens on a free local port, which it prints, until standard input ends. Delays each answer by GET_MS or PUT_MS
milliseconds. LOG gets a line for each request: method, status, bytes received and sent, path.
"""

import asyncio
import hashlib
import os
import sys
from email.utils import formatdate
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

OBJECTS = {}
LOG = open(sys.argv[1], "a", buffering=1)
DELAYS = {"GET": float(sys.argv[2]) / 1e3, "HEAD": float(sys.argv[2]) / 1e3}
OTHERS = float(sys.argv[3]) / 1e3


def listed(bucket, query):
    words = {name: values[0] for name, values in parse_qs(query).items()}
    prefix, after = (bucket + "/" + words[name] if name in words else "" for name in ("prefix", "start-after"))
    keys = sorted(key for key in OBJECTS if key.startswith(prefix) and key > after)[:1_000]
    parts = [f"<Contents><Key>{escape(key.partition('/')[2])}</Key><Size>{len(OBJECTS[key][0])}</Size>"
             f"<ETag>{OBJECTS[key][1]}</ETag></Contents>" for key in keys]
    return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(parts)}</ListBucketResult>".encode()


def answer(method, target, headers, body):
    """Returns status, ETag and body."""
    path, _, query = target.partition("?")
    key = unquote(path).removeprefix("/")
    there = OBJECTS.get(key)
    if method in ("GET", "HEAD"):
        if "list-type" in query:
            return 200, None, listed(key.rstrip("/"), query)
        if there and "range" in headers:
            first, last = headers["range"].removeprefix("bytes=").split("-")
            return 206, there[1], there[0][int(first):int(last) + 1]
        return (200, there[1], there[0]) if there else (404, None, b"<Error><Code>NoSuchKey</Code></Error>")
    if method == "DELETE":
        OBJECTS.pop(key, None)
        return 204, None, b""
    wanted = headers.get("if-match")
    if there and "if-none-match" in headers or wanted and there and wanted != there[1]:
        return 412, None, b"<Error><Code>PreconditionFailed</Code></Error>"
    if wanted and not there:
        return 404, None, b"<Error><Code>NoSuchKey</Code></Error>"
    tag = f'"{hashlib.md5(body).hexdigest()}"'
    OBJECTS[key] = body, tag
    return 200, tag, b""


async def connection(reader, writer):
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return writer.close()
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        delay = DELAYS.get(method, OTHERS)
        # Requests without a signature do not come from workers: they are neither counted nor delayed.
        is_own = "authorization" in headers
        if delay and is_own:
            await asyncio.sleep(delay)
        status, tag, content = answer(method, target, headers, body)
        said = f"HTTP/1.1 {status} -\r\nDate: {formatdate(usegmt=True)}\r\n"
        said += f"ETag: {tag}\r\n" if tag else ""
        if status == 206:
            whole = len(OBJECTS[unquote(target.partition("?")[0]).removeprefix("/")][0])
            said += f"Content-Range: {headers['range'].replace('=', ' ')}/{whole}\r\n"
        said += f"Content-Length: {len(content)}\r\n\r\n" if status != 204 else "\r\n"
        sent = said.encode() + (content if method != "HEAD" else b"")
        writer.write(sent)
        if is_own:
            LOG.write(f"{method} {status} {len(head) + len(body)} {len(sent)} {target}\n")


async def main():
    server = await asyncio.start_server(connection, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    loop.add_reader(0, lambda: os.read(0, 1) or os._exit(0))
    await server.serve_forever()


asyncio.run(main())
