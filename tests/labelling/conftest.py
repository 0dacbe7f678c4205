import json
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest

from cagat.labelling.open_graph import open_graph
from cagat.labelling.server import LabelServer
from cagat.labelling.session import Session

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"


@pytest.fixture
def wait_for():
    """Waits until a condition holds, and gives what it gave."""

    def wait(condition, seconds=120):
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, "it takes too long"
            time.sleep(0.05)
        return found

    return wait


@pytest.fixture
def start(tmp_path, wait_for):
    """Starts a server: its session, its address, and a function that asks it."""
    running = []

    def begin(graph=GRAPH, **options):
        opened = open_graph(graph, **{"labels": tmp_path / "labels.csv"} | options)
        if graph != "cora":  # Of the small graphs no test asks how well the model knows them.
            opened = opened._replace(config=opened.config.model_copy(update={"epochs": 8, "fixed_epochs": 8}))
        session = Session(*opened)
        server = LabelServer(session)
        thread = threading.Thread(target=server.serve)
        thread.start()
        running.append((session, server, thread))

        def ask(path, body=None, headers=None, address=server.address):
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            kinds = {"content-type": "application/json"} if data is not None else {}
            request = urllib.request.Request(address + path, data, {**kinds, **(headers or {})})
            try:
                with urllib.request.urlopen(request, timeout=60) as reply:
                    return reply.status, reply.read().decode(), dict(reply.headers)
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode(), dict(error.headers)

        def answer(path, body=None):
            status, text, _ = ask(path, body)
            assert status == 200, text
            return json.loads(text)

        wait_for(lambda: server._server.started)
        return SimpleNamespace(session=session, server=server, ask=ask, answer=answer)

    yield begin
    for session, server, thread in running:
        server.stop()
        thread.join(timeout=30)
        session.close()
        assert not thread.is_alive()
