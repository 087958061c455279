"""A web server of files that answers ranges, and can be made to fail."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit


class Web:
    """The files below a folder at `url`.

    `failures` are what the next GETs meet: "cut" and "stall" amid the body, "503", or "" for none.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.url = folder, f"http://127.0.0.1:{port}"
        self.requests: Counter[str] = Counter()
        self.failures: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.tags = True
        self.lock = threading.Lock()
        self.stalled = threading.Event()


@contextmanager
def serving(folder: Path) -> Iterator[Web]:
    """A server in threads of this process, until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    web = server.web = Web(folder, server.server_address[1])  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        web.stalled.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _list(self, folder: Path, prefix: str) -> None:
        """All keys of a bucket, as Google's store lists them."""
        bucket = folder / unquote(urlsplit(self.path).path).strip("/")
        listed = []
        for path in bucket.rglob("*"):
            key = str(path.relative_to(bucket))
            if path.is_file() and key.startswith(prefix):
                content = path.read_bytes()
                facts = {"Key": key, "Size": len(content), "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
                facts["LastModified"] = "2024-01-01T00:00:00.000Z"
                listed.append("".join(f"<{name}>{value}</{name}>" for name, value in facts.items()))
        objects = "".join(f"<Contents>{one}</Contents>" for one in listed)
        body = f"<ListBucketResult>{objects}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, with_body: bool) -> None:
        web: Web = self.server.web  # type: ignore[attr-defined]
        with web.lock:
            web.requests[self.command] += 1
            web.headers.append(dict(self.headers))
            failure = web.failures.pop(0) if with_body and web.failures else ""
        address = urlsplit(self.path)
        prefix = parse_qs(address.query).get("prefix")
        if prefix:
            self._list(web.folder, prefix[0])
            return
        path = web.folder / unquote(address.path).lstrip("/")
        if failure == "503" or not path.is_file():
            self.send_response(503 if failure else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content, status = path.read_bytes(), path.stat()
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end = 0, len(content)
        if asked:
            start, end = int(asked[1]), min(int(asked[2]) + 1 if asked[2] else end, end)
        if start >= max(end, 1):
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("Last-Modified", self.date_time_string(int(status.st_mtime)))
        if web.tags:
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.end_headers()
        if not with_body:
            return
        body = content[start:end]
        if failure:
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.close_connection = True
            if failure == "stall":
                web.stalled.wait(5)
            return
        self.wfile.write(body)
