"""The page of `cagat label` in a real browser. Skipped, with the reason, where there is none."""

import csv
import os

import pytest

from headless_browser import PHONE, browser, complaints, missing

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


@pytest.fixture(scope="module")
def driver():
    assert not missing(), missing()
    with browser() as driver:
        yield driver


@pytest.fixture
def press(driver, wait_for):
    """Presses a key on the page, and waits until the server has answered."""
    from selenium.webdriver import ActionChains

    def act(key):
        before = int(data(driver, "acts") or 0)
        ActionChains(driver).send_keys(key).perform()
        wait_for(lambda: int(data(driver, "acts") or 0) > before, 20)

    return act


def open_page(driver, served, wait_for):
    # The page of the test before may have complained that its server is gone.
    driver.get("about:blank")
    complaints(driver)
    driver.get(served.server.address)
    wait_for(lambda: data(driver, "ready") == "yes", 60)


def test_an_oracle_labels_cora_by_pressing_keys(driver, start, press, wait_for, tmp_path):
    served = start("cora")
    graph = served.session.graph
    classes, names = list(graph.class_names), list(graph.node_names)
    open_page(driver, served, wait_for)
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
    with browser(PHONE) as phone:  # A second window of the same server.
        open_page(phone, served, wait_for)
        assert data(phone, "labelled") == "14"
        assert phone.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]
        picture(phone, "label-390x844")
        assert complaints(phone) == []
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


def test_new_class_search_and_skip_without_a_mouse(driver, start, press, wait_for):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    served = start("karate", classes=["<b>one</b>"])
    open_page(driver, served, wait_for)
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


def test_read_only_page_says_why(driver, start, wait_for):
    start("karate")
    second = start("karate")
    open_page(driver, second, wait_for)
    assert "Another process" in by_id(driver, "read-only").text
    assert all(not button.is_enabled() for button in driver.find_elements("css selector", "#classes button"))
    assert complaints(driver) == []


def test_on_a_phone_and_in_the_dark(start, wait_for):
    served = start("synthetic:nodes=90,degree=4,classes=11,features=12,seed=0")
    with browser(PHONE) as driver:
        scheme = [{"name": "prefers-color-scheme", "value": "dark"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        open_page(driver, served, wait_for)
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
