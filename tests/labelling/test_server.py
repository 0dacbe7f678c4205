import http.client
import json
from urllib.parse import urlsplit

import pytest

from cagat.errors import ConfigError
from cagat.labelling.server import LARGEST_BODY, LabelServer


@pytest.fixture
def served(start):
    return start()


def test_the_page_and_its_headers(served):
    for path, kind in (("", "text/html"), ("label.js", "text/javascript"), ("label.css", "text/css")):
        status, text, headers = served.ask(path)
        assert status == 200
        assert headers["content-type"].startswith(kind)
        assert "http://" not in text
        assert "https://" not in text
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "set-cookie" not in headers
        assert headers["referrer-policy"] == "no-referrer"


def test_label_skip_class_and_undo(served, tmp_path):
    state = served.answer("state")
    assert [one["name"] for one in state["classes"]] == list(served.session.graph.class_names)
    first = state["suggested"]
    assert "stands for" in first["reason"]
    name = state["classes"][0]["name"]
    reply = served.answer("label", {"node": first["index"], "label": name})
    assert (tmp_path / "labels.csv").read_text() == f"node,label\n{first['name']},{name}\n"
    assert reply["state"]["labelled"] == 1
    second = reply["state"]["suggested"]
    assert second["index"] != first["index"]
    third = served.answer("skip", {"node": second["index"]})["state"]["suggested"]
    assert third["index"] not in (first["index"], second["index"])
    assert served.answer("class", {"name": "new one"})["state"]["classes"][-1]["name"] == "new one"
    served.answer("undo", {})
    assert served.answer("undo", {})["node"]["index"] == second["index"]
    undone = served.answer("undo", {})
    assert undone["node"]["index"] == first["index"]
    assert undone["state"]["labelled"] == 0
    assert served.answer("undo", {})["said"] == "There is nothing to undo."


def test_requests_that_are_refused(served):
    address, origin = served.server.address, urlsplit(served.server.address)
    body = {"node": 0, "label": served.session.store.classes[0]}
    elsewhere = f"http://{origin.netloc}/{'x' * 22}/"
    assert served.ask("state", address=elsewhere)[0] == 404
    assert served.ask("label", body, address=elsewhere)[0] == 404
    assert served.ask("../../etc/passwd")[0] == 404
    assert served.ask("store.py")[0] == 404
    for headers in ({"host": "evil.example"}, {"host": f"evil.example:{origin.port}"}, {"host": "127.0.0.1"}):
        assert served.ask("state", headers=headers)[0] == 403
    assert served.ask("label", body, headers={"origin": "http://evil.example"})[0] == 403
    assert served.ask("label", body, headers={"origin": "null"})[0] == 403
    assert served.ask("state", headers={"sec-fetch-site": "cross-site"})[0] == 403
    assert served.ask("label")[0] == 405
    assert served.ask("label", b"x" * (LARGEST_BODY + 1))[0] == 413
    assert served.ask(f"search?q={'x' * 5 * LARGEST_BODY}")[0] == 431
    assert served.ask("state", headers={"x-long": "x" * 5 * LARGEST_BODY})[0] == 431
    for wrong in (b"{", b"\xff", b"[1]", b"[" * 10_000, b'{"node": 1e999}'):
        assert served.ask("label", wrong)[0] == 400, wrong
    for wrong in ({}, {"node": "a"}, {"node": True}, {"node": -1, "label": "a"}, {"node": 10**30, "label": "a"}):
        assert served.ask("label", wrong)[0] == 400, wrong
    assert served.ask("label", {"node": 0, "label": "nothing of that name"})[0] == 400
    assert served.ask("class", {"name": 5})[0] == 400
    assert served.ask("node?index=x")[0] == 400
    assert served.ask("label", body, headers={"content-type": "text/plain"})[0] == 415
    assert served.session.labels == {}
    # The right host, by either of its names.
    right = {"host": f"localhost:{origin.port}", "origin": f"http://localhost:{origin.port}"}
    assert served.ask("label", body, headers=right)[0] == 200
    assert address.startswith("http://127.0.0.1:")


def test_an_endless_body_is_cut_off(served):
    place = urlsplit(served.server.address)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    parts = (b"x" * 4096 for _ in range(100))
    try:
        connection.request(
            "POST", place.path + "label", parts, {"content-type": "application/json"}, encode_chunked=True
        )
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # It was closed before all was sent.
    finally:
        connection.close()
    assert served.answer("state")["labelled"] == 0


def test_search_and_nodes(served):
    found = served.answer("search?q=7")["nodes"]
    assert found[0]["name"] == "7"
    assert len(served.answer("search?q=1")["nodes"]) <= 12
    assert served.answer("search?q=nobody")["nodes"] == []
    node = served.answer(f"node?index={found[0]['index']}")
    assert node["label"] is None
    assert node["columns"]
    assert node["neighbourCount"] == len(node["neighbours"])


def test_events_tell_of_changes(served):
    place = urlsplit(served.server.address)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    connection.request("GET", place.path + "events")
    reply = connection.getresponse()
    assert reply.headers["content-type"].startswith("text/event-stream")
    versions = [json.loads(reply.readline().decode().removeprefix("data: "))["version"]]
    reply.readline()
    served.answer("class", {"name": "another"})
    versions.append(json.loads(reply.readline().decode().removeprefix("data: "))["version"])
    assert versions[1] > versions[0]
    connection.close()


def test_of_two_windows_the_second_looks_on(served, wait_for):
    place, name = urlsplit(served.server.address), served.session.store.classes[0]

    def open_window(name):
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
        connection.request("GET", f"{place.path}events?window={name}")
        assert connection.getresponse().readline()
        return connection

    first, second = open_window("one"), open_window("two")
    assert served.answer("state?window=one")["readOnly"] == ""
    assert "another window" in served.answer("state?window=two")["readOnly"]
    status, text, _ = served.ask("label", {"node": 0, "label": name, "window": "two"})
    assert (status, "another window" in text) == (409, True)
    assert served.answer("label", {"node": 0, "label": name, "window": "one"})["state"]["labelled"] == 1
    first.close()
    wait_for(lambda: served.answer("state?window=two")["readOnly"] == "", 20)
    assert served.answer("label", {"node": 1, "label": name, "window": "two"})["state"]["labelled"] == 2
    second.close()
    wait_for(lambda: served.ask("undo", {})[0] == 200, 20)


def test_a_second_process_is_read_only_and_says_why(served, start):
    second = start()
    state = second.answer("state")
    assert "Another process" in state["readOnly"]
    for path in ("label", "skip", "class", "undo", "finish"):
        status, _, _ = second.ask(path, {"node": 0, "label": state["classes"][0]["name"], "name": "a"})
        # There is nothing to undo, which is no change.
        assert status == (200 if path == "undo" else 409), path
    assert served.answer("state")["labelled"] == 0


def test_a_port_that_is_taken(served):
    port = urlsplit(served.server.address).port
    with pytest.raises(ConfigError, match=f"Port {port} cannot be had"):
        LabelServer(served.session, port)


def test_the_model_comes_by_itself(served, wait_for):
    graph = served.session.graph
    for _ in range(6):
        node = served.answer("state")["suggested"]["index"]
        served.answer("label", {"node": node, "label": graph.class_names[graph.y[node]]})
    state = wait_for(lambda: (found := served.answer("state"))["model"] and found["model"]["labels"] == 6 and found)
    node = state["suggested"]
    assert sum(one["probability"] for one in node["guess"]) == pytest.approx(1)
    assert {one["index"] for one in node["because"]} <= served.session.labels.keys()
    assert not state["model"]["calibrated"]
    assert state["curve"] == []
    plane = served.answer("map")
    assert len(plane["index"]) == 90
    assert sum(plane["labelled"]) == 6
    assert set(plane["predicted"]) <= {0, 1, 2}
