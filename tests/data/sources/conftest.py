"""A server on this machine that sends good, cut and wrong files, or says nothing."""

import hashlib
import http.server
import threading
import time
from typing import ClassVar

import pytest

CONTENT = bytes(range(256)) * 1000


class Handler(http.server.BaseHTTPRequestHandler):
    files: ClassVar[dict[str, bytes]] = {}

    def do_GET(self):
        kind = self.path.strip("/").split("/")[0]
        if kind == "missing":
            self.send_error(404)
            return
        content = self.files.get(self.path.rsplit("/", 1)[-1], CONTENT)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if kind == "hanging":
            self.wfile.write(content[:1000])
            self.wfile.flush()
            time.sleep(3)
        elif kind == "cut":
            self.wfile.write(content[: len(content) // 2])
        elif kind == "wrong":
            self.wfile.write(content[:-1] + b"!")
        else:
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    handler = type("OwnHandler", (Handler,), {"files": {}})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.content, server.sha256 = CONTENT, hashlib.sha256(CONTENT).hexdigest()
    server.address = f"http://127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()
    server.server_close()
