"""The page of `cagat label` in a real browser. Skipped, with the reason, where there is none."""

import csv
import os
import signal

import pytest

from cagat.labelling.fitting import Estimated
from cagat.labelling.gain import Gain
from headless_browser import PHONE, browser, complaints, missing
from processes import cagat
from processes import start as start_process

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
REQUIRED = os.environ.get("CAGAT_BROWSER") == "required"
SCREENSHOTS = os.environ.get("CAGAT_SCREENSHOTS")
"""A directory to keep pictures of the page in."""

pytestmark = pytest.mark.skipif(bool(missing()) and not REQUIRED, reason=missing())


def data(driver, name):
    return driver.execute_script(f"return document.body.dataset.{name}")


def by_id(driver, name):
    return driver.find_element("id", name)


def picture(driver, name):
    if SCREENSHOTS:
        driver.save_screenshot(os.path.join(SCREENSHOTS, f"{name}.png"))


@pytest.fixture
def press(driver, wait_for):
    """Presses a key on the page, and waits until the server has answered."""
    from selenium.webdriver import ActionChains

    def act(key):
        before = int(data(driver, "acts") or 0)
        ActionChains(driver).send_keys(key).perform()
        wait_for(lambda: int(data(driver, "acts") or 0) > before, 20)

    return act


def open_page(driver, address, wait_for):
    # The page of the test before may have complained that its server is gone.
    driver.get("about:blank")
    complaints(driver)
    driver.get(address)
    wait_for(lambda: data(driver, "ready") == "yes", 60)


def test_an_oracle_labels_cora_by_pressing_keys(driver, start, press, wait_for, tmp_path):
    served = start("cora")
    graph = served.session.graph
    classes, names = list(graph.class_names), list(graph.node_names)
    open_page(driver, served.server.address, wait_for)
    chosen = []
    while len(chosen) < 14:
        node = int(data(driver, "node"))
        assert node not in chosen
        chosen.append(node)
        press(str(1 + int(graph.y[node])))
        assert data(driver, "labelled") == str(len(chosen))
        if len(chosen) == 3:  # A slip of the finger.
            press("u")
            assert data(driver, "labelled") == "2"
            assert data(driver, "node") == str(node)
            press(str(1 + int(graph.y[node])))
    with (tmp_path / "labels.csv").open() as file:
        written = {row["node"]: row["label"] for row in csv.DictReader(file)}
    assert written == {names[node]: classes[graph.y[node]] for node in chosen}
    wait_for(lambda: data(driver, "model") == "14")
    assert "Too few labels to estimate" in by_id(driver, "estimate").text
    wait_for(lambda: "The model's guess" in by_id(driver, "guess").text, 20)
    picture(driver, "label-1400x900")
    with browser(PHONE) as phone:
        open_page(phone, served.server.address, wait_for)
        assert data(phone, "labelled") == "14"
        assert "another window" in by_id(phone, "read-only").text
        assert not by_id(phone, "skip").is_enabled()
        phone.execute_script("label(0)")
        assert data(phone, "acts") is None, "nothing was asked of the server"
        driver.get("about:blank")  # Now it is the only one.
        wait_for(lambda: by_id(phone, "skip").is_enabled(), 20)
        assert not by_id(phone, "read-only").is_displayed()
        assert phone.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]
        picture(phone, "label-390x844")
        assert complaints(phone) == []
    open_page(driver, served.server.address, wait_for)
    by_id(driver, "finish").click()
    wait_for(lambda: data(driver, "finished") == "14")
    assert f"cagat label cora --labels {tmp_path / 'labels.csv'} --finish" in by_id(driver, "finished").text
    assert "14 of 2485 nodes are labelled" in (tmp_path / "report.md").read_text()
    with (tmp_path / "predictions.csv").open() as file:
        predicted = {row["node"]: row["predicted"] for row in csv.DictReader(file)}
    rest = [node for node in range(len(names)) if node not in chosen]
    right = sum(predicted[names[node]] == classes[graph.y[node]] for node in rest) / len(rest)
    assert right >= 0.74
    asked = driver.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert all(address.startswith(served.server.address) or address == "data:," for address in asked)
    assert complaints(driver) == []


@pytest.mark.posix
def test_kill_9_in_the_middle_loses_nothing_and_one_goes_on(driver, press, wait_for, tmp_path):
    from selenium.webdriver import ActionChains

    labels, said = tmp_path / "labels.csv", tmp_path / "server"
    words = ["label", GRAPH, "--no-browser", "--classes", "a,b", "--labels", labels]

    def begin():
        said.with_suffix(".out").unlink(missing_ok=True)
        server = start_process(cagat, *words, said=said)
        wait_for(lambda: said.with_suffix(".out").exists() and "Page:" in said.with_suffix(".out").read_text(), 60)
        open_page(driver, said.with_suffix(".out").read_text().split("Page:")[1].split()[0], wait_for)
        return server

    def on_disk():
        with labels.open() as file:
            return {row["node"]: row["label"] for row in csv.DictReader(file)}

    given = {}
    for _ in range(2):
        server = begin()
        try:
            assert data(driver, "labelled") == str(len(given))
            for _ in range(3):  # The first model is fitted after the second label.
                node = by_id(driver, "node-heading").text.removeprefix("Node ")
                assert node not in given
                given[node] = "ab"[number := len(given) % 2]
                press(str(1 + number))
            os.kill(server.pid, signal.SIGKILL)
            server.join(20)
            assert on_disk() == given
            ActionChains(driver).send_keys("1").perform()
            wait_for(lambda: "does not answer" in by_id(driver, "said").text, 20)
            assert data(driver, "labelled") == str(len(given))
        finally:
            server.kill()
    server = begin()
    try:
        press("u")  # What was done before it was killed can be undone.
        assert data(driver, "labelled") == "5"
        given.popitem()
        assert on_disk() == given
        assert complaints(driver) == []
    finally:
        server.kill()


def test_new_class_search_and_skip_without_a_mouse(driver, start, press, wait_for):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    served = start("karate", classes=["<b>one</b>"])
    open_page(driver, served.server.address, wait_for)
    assert "<b>one</b>" in by_id(driver, "classes").text
    ActionChains(driver).send_keys("n").perform()
    ActionChains(driver).send_keys("second 2", Keys.ENTER).perform()
    wait_for(lambda: "second 2" in by_id(driver, "classes").text, 20)
    assert served.session.labels == {}  # The 2 in the name was no key.
    first = int(data(driver, "node"))
    press("s")
    second = int(data(driver, "node"))
    assert second != first
    press("2")
    assert served.session.labels == {second: "second 2"}
    ActionChains(driver).send_keys("/").perform()
    ActionChains(driver).send_keys(served.session.names[first], Keys.ENTER).perform()
    wait_for(lambda: data(driver, "node") == str(first), 20)
    press("1")
    assert served.session.labels == {second: "second 2", first: "<b>one</b>"}
    press("u")
    assert served.session.labels == {second: "second 2"}
    assert complaints(driver) == []


def test_what_more_labels_would_gain_is_said_where_it_is_known(driver, start, wait_for):
    served = start("karate")
    background = served.session.background
    background.curve = [Estimated(30, 0.70, 0.52, 0.83), Estimated(40, 0.75, 0.60, 0.86)]
    open_page(driver, served.server.address, wait_for)
    assert "With 40 labels about 75 % right (95 % interval 60 % to 86 %)" in by_id(driver, "estimate").text
    assert by_id(driver, "gain").text == ""
    background.gain = Gain(5, 0.021, 0.004, 0.038)
    served.session.add_class("another")  # News for the page.
    expected = "Label 5 more to gain about 2 points (95 % interval 0.4 to 3.8)."
    wait_for(lambda: by_id(driver, "gain").text == expected, 20)
    assert complaints(driver) == []


def test_read_only_page_says_why(driver, start, wait_for):
    start("karate")
    second = start("karate")
    open_page(driver, second.server.address, wait_for)
    assert "Another process" in by_id(driver, "read-only").text
    assert all(not button.is_enabled() for button in driver.find_elements("css selector", "#classes button"))
    assert complaints(driver) == []


def test_on_a_phone_and_in_the_dark(start, wait_for):
    served = start("synthetic:nodes=90,degree=4,classes=11,features=12,seed=0")
    with browser(PHONE) as driver:
        scheme = [{"name": "prefers-color-scheme", "value": "dark"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        open_page(driver, served.server.address, wait_for)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]
        assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
        # More classes than keys: the last is tapped.
        buttons = driver.find_elements("css selector", "#classes button")
        assert len(buttons) == 11
        name, node = served.session.store.classes[10], int(data(driver, "node"))
        buttons[10].click()
        wait_for(lambda: served.session.labels == {node: name}, 20)
        wait_for(lambda: data(driver, "node") != str(node), 20)
        picture(driver, "label-dark")
        assert complaints(driver) == []
