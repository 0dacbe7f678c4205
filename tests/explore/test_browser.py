"""The page of `cagat explore` in a real browser. Skipped, with the reason, where there is none."""

import os
import shutil

import pyarrow as pa
import pytest
import torch

from cagat.explore import write_page
from cagat.explore.explored_run import STRONGEST
from cagat.training.predictions import write_table
from headless_browser import PHONE, browser, complaints, missing, open_page

REQUIRED = os.environ.get("CAGAT_BROWSER") == "required"

pytestmark = pytest.mark.skipif(bool(missing()) and not REQUIRED, reason=missing())

# As many digits as the table shows; values on the page are rounded to 1 / 32767 of the largest.
TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "explore.html"
    write_page(run, path)
    return path


@pytest.fixture
def laptop(driver, page):
    if driver.current_url != page.as_uri():
        open_page(driver, page)
    yield driver
    assert complaints(driver) == []


def by_id(driver, name):
    return driver.find_element("id", name)


def table(driver) -> dict[str, tuple[str, float, float, float]]:
    rows = driver.execute_script(
        "return [...document.querySelectorAll('#rows tr')].map(row => "
        "[row.dataset.node, ...[...row.cells].slice(2).map(cell => cell.textContent)])"
    )
    return {
        name: (edge, *(float(number.replace("\N{MINUS SIGN}", "-")) for number in rest)) for name, edge, *rest in rows
    }


def pick(driver, control: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(by_id(driver, control)).select_by_visible_text(value)


def click_node(driver, number: int) -> None:
    """Click where the node is, with the mouse."""
    from selenium.webdriver import ActionChains

    x, y = driver.execute_script(
        "const map = document.getElementById('map');"
        "map.scrollIntoView({block: 'center'});"
        "const layout = map._fullLayout, after = map.getBoundingClientRect();"
        "for (const trace of map.data) {"
        "  const place = (trace.customdata || []).indexOf(arguments[0]);"
        "  if (place >= 0) return [layout.xaxis._offset + layout.xaxis.l2p(trace.x[place]) - after.width / 2,"
        "    layout.yaxis._offset + layout.yaxis.l2p(trace.y[place]) - after.height / 2];"
        "}",
        number,
    )
    ActionChains(driver).move_to_element_with_offset(by_id(driver, "map"), round(x), round(y)).pause(
        0.3
    ).click().perform()


def expected(run, number: int, layer: int, rounds: int, head: int | None):
    inputs = run.inputs(run.problem.graph)
    rows = run.model.attention(*inputs, nodes=number, rounds=rounds)[layer]
    return tuple((values[0].mean(dim=0) if head is None else values[0, head]).tolist() for values in (rows.G, rows.S))


def compare(driver, run, number: int, layer: int, rounds: int, head: int | None) -> None:
    """Hold the numbers on the page to those of `CaGATConv.attention`."""
    names, shown = list(run.problem.graph.node_names), table(driver)
    G, S = expected(run, number, layer, rounds, head)
    sources, targets = run.problem.graph.edge_index
    neighbours = {number, *sources[targets == number].tolist()}
    assert {names[node] for node in neighbours} == {name for name, row in shown.items() if row[0] != "no"}
    for name, (_, before, after, difference) in shown.items():
        node = names.index(name)
        assert before == pytest.approx(G[node], abs=TOLERANCE)
        assert after == pytest.approx(S[node], abs=TOLERANCE)
        assert difference == pytest.approx(S[node] - G[node], abs=2 * TOLERANCE)
    others = sorted((value for node, value in enumerate(S) if node not in neighbours), reverse=True)
    strongest = sorted((row[2] for row in shown.values() if row[0] == "no"), reverse=True)
    count = 0 if rounds == 0 else STRONGEST
    assert strongest == pytest.approx(others[:count], abs=TOLERANCE)
    # The test would be empty if diffusion changed nothing.
    if rounds:
        assert max(abs(row[3]) for row in shown.values()) > 10 * TOLERANCE


def test_click_a_node_and_move_the_slider(laptop, run):
    from selenium.webdriver.common.keys import Keys

    number = int(torch.bincount(run.problem.graph.edge_index[1]).argmax())
    click_node(laptop, number)
    assert by_id(laptop, "node-heading").text == f"Node {run.problem.graph.node_names[number]}"
    slider = by_id(laptop, "round")
    for layer, heads in ((0, 3), (1, 1)):
        pick(laptop, "layer", str(layer + 1))
        slider.send_keys(Keys.HOME)
        for rounds in range(3):
            assert by_id(laptop, "round-value").text.startswith(f"{rounds} of 2")
            compare(laptop, run, number, layer, rounds, None)
            if heads > 1:
                pick(laptop, "head", "2")
                compare(laptop, run, number, layer, rounds, 1)
                pick(laptop, "head", "mean of all")
            slider.send_keys(Keys.ARROW_RIGHT)


def test_the_caption_says_what_rows_sum_to(laptop):
    assert "Rows of S need not sum to 1." in by_id(laptop, "ego-caption").text


def test_search_by_keyboard(laptop, run):
    from selenium.webdriver.common.keys import Keys

    search = by_id(laptop, "search")
    search.send_keys("node 11", Keys.ENTER)
    assert by_id(laptop, "node-heading").text == "Node node 11"
    search.clear()
    search.send_keys("nobody", Keys.ENTER)
    assert by_id(laptop, "node-heading").text == "Node node 11"
    assert "no node called nobody" in search.get_property("validationMessage")


def test_a_neighbour_in_the_table_leads_to_it(laptop):
    button = laptop.find_element("css selector", "#rows button")
    name = button.text
    button.send_keys("\n")
    assert by_id(laptop, "node-heading").text == f"Node {name}"
    # The keyboard goes on from there.
    assert laptop.execute_script("return document.activeElement.id") == "node-heading"


def test_colours_and_legend(laptop, run):
    count = len(run.problem.graph.y)
    for colouring in ("prediction", "confidence", "right or wrong", "split", "class"):
        pick(laptop, "colouring", colouring)
        buttons = laptop.find_elements("css selector", "#legend button")
        assert sum(int(button.text.rsplit("(", 1)[1].rstrip(")")) for button in buttons) == count
    buttons[0].send_keys("\n")
    pressed = [
        button.get_attribute("aria-pressed") for button in laptop.find_elements("css selector", "#legend button")
    ]
    assert pressed == ["false", *["true"] * (len(pressed) - 1)]
    assert laptop.execute_script("return document.getElementById('map').data[0].visible") is False


def test_reasons_lead_to_labelled_nodes(laptop, run):
    from selenium.webdriver.common.keys import Keys

    evidence, names = run.predict().evidence, list(run.problem.graph.node_names)
    node = next(node for node, found in enumerate(evidence.nodes.tolist()) if found[0] not in (-1, node))
    search = by_id(laptop, "search")
    search.clear()
    search.send_keys(names[node], Keys.ENTER)
    first = laptop.find_element("css selector", "#because button")
    assert first.text == names[int(evidence.nodes[node, 0])]
    assert "confidence" in by_id(laptop, "node-facts").text
    first.send_keys("\n")
    assert by_id(laptop, "node-heading").text == f"Node {names[int(evidence.nodes[node, 0])]}"
    # This run has no folds.
    assert not by_id(laptop, "doubts-card").is_displayed()
    assert not by_id(laptop, "doubt").is_displayed()


def test_the_header_explains_its_symbols(laptop):
    header = laptop.find_element("css selector", ".facts + p").text
    for symbol in ("K:", "T:", "alpha:", "lam:", "xi:"):
        assert symbol in header


@pytest.fixture(scope="module")
def few_labels(train, graph_folder, tmp_path_factory):
    """A run on a graph of which a third is labelled, with out-of-fold predictions that contradict two labels."""
    folder = tmp_path_factory.mktemp("few") / "graph"
    shutil.copytree(graph_folder, folder)
    lines = (folder / "labels.csv").read_text().splitlines()
    (folder / "labels.csv").write_text("\n".join(lines[:22]) + "\n")
    run = train(folder.parent / "run", folder, labels=3, val_labels=2, hidden=2, heads=1, rounds=1, epochs=2)
    graph, classes = run.problem.graph, run.description.classes
    nodes = (graph.y >= 0).nonzero().squeeze(1)
    shares = 0.8 * torch.nn.functional.one_hot(graph.y[nodes], 3).double() + 0.2 / 3
    shares[[0, 4]] = shares[[0, 4]].roll(1, dims=1)
    columns = {"node": [graph.node_names[node] for node in nodes], "label": [classes[kind] for kind in graph.y[nodes]]}
    columns["predicted"] = [classes[kind] for kind in shares.argmax(dim=1)]
    columns |= {f"probability_{name}": shares[:, kind].numpy() for kind, name in enumerate(classes)}
    write_table(pa.table(columns), run.directory.out_of_fold)
    return run, {columns["node"][0], columns["node"][4]}


def test_few_labels_and_doubts(few_labels, tmp_path, driver):
    run, doubted = few_labels
    write_page(run, tmp_path / "page.html")
    open_page(driver, tmp_path / "page.html")
    assert by_id(driver, "colouring").get_property("value") == "predicted"
    assert "unlabelled" not in by_id(driver, "legend").text
    listed = {button.text for button in driver.find_elements("css selector", "#doubts button")}
    assert listed == doubted
    by_id(driver, "doubt").click()
    assert by_id(driver, "node-heading").text.removeprefix("Node ") in doubted
    assert "Is its label right?" in by_id(driver, "because").text
    assert complaints(driver) == []


def test_names_are_text_and_nothing_comes_from_elsewhere(laptop, run):
    assert laptop.execute_script("return window.harmed") is None
    assert "<b>bold</b>" in by_id(laptop, "legend").text
    assert laptop.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)") == []
    for name in ("agreement", "entropy", "confusion", "training-curves"):
        assert laptop.execute_script(f"return document.querySelectorAll('#{name} .main-svg').length") > 0


def swipe_down(driver, x: float, y: float) -> None:
    for step in range(11):
        kind = "touchMove" if step else "touchStart"
        finger = {"x": x, "y": y + 15 * step}
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [finger]})
    driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_on_a_phone_a_swipe_on_a_picture_moves_the_page(page):
    with browser(PHONE) as driver:
        driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        open_page(driver, page)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]
        driver.execute_script(
            "window.prevented = [];"
            "for (const kind of ['touchstart', 'touchmove'])"
            "  window.addEventListener(kind, event => window.prevented.push(event.defaultPrevented), {passive: true})"
        )
        chosen = by_id(driver, "node-heading").text
        for name in ("map", "before", "after", "agreement", "entropy", "confusion", "training-curves"):
            x, y, before = driver.execute_script(
                "const box = document.getElementById(arguments[0]);"
                "window.prevented = [];"
                "box.scrollIntoView({block: 'center', behavior: 'instant'});"
                "const {left, top, width, height} = box.querySelector('.nsewdrag').getBoundingClientRect();"
                "return [left + width / 2, top + height / 2, window.scrollY]",
                name,
            )
            swipe_down(driver, x, y)
            assert driver.execute_script("return window.scrollY") < before, name
            prevented = driver.execute_script("return window.prevented")
            assert len(prevented) > 1, name
            assert not any(prevented), name
            # A swipe is no tap: it chooses no node.
            assert by_id(driver, "node-heading").text == chosen, name
        by_id(driver, "any").click()
        assert by_id(driver, "node-heading").text.startswith("Node ")
        assert complaints(driver) == []


def test_more_classes_than_colours(train, tmp_path, driver, monkeypatch):
    # By single products, which need no machine code for rows of 18 classes.
    monkeypatch.setattr("cagat.diffusion.operator.is_fused", lambda *_: False)
    graph = "synthetic:nodes=200,degree=4,classes=18,features=20,seed=0"
    run = train(tmp_path / "run", graph, labels=2, val_labels=2, hidden=2, heads=1, rounds=1, xi=0.05, epochs=1)
    write_page(run, tmp_path / "page.html")
    look = "const {backgroundColor, borderRadius, clipPath} = getComputedStyle(node);"
    look += "return [backgroundColor, borderRadius, clipPath].join();"
    open_page(driver, tmp_path / "page.html")
    marks = driver.execute_script(f"return [...document.querySelectorAll('#legend .swatch')].map(node => {{{look}}})")
    assert len(set(marks)) == len(marks) == 18
    shown = driver.execute_script(
        f"return [...document.querySelectorAll('#rows .kind .swatch')].map(node => {{{look}}})"
    )
    classes = [cell.text for cell in driver.find_elements("css selector", "#rows .kind")]
    names = [button.text.rsplit(" (", 1)[0] for button in driver.find_elements("css selector", "#legend button")]
    assert shown == [marks[names.index(name)] for name in classes]
    ego = driver.execute_script("return document.getElementById('after').data.at(-1)")
    labels, shapes = run.problem.graph.y.tolist(), ("circle", "square", "diamond")
    edges = {tuple(pair) for pair in run.problem.graph.edge_index.T.tolist()}
    centre = ego["customdata"][ego["marker"]["size"].index(24)]
    for node, symbol in zip(ego["customdata"], ego["marker"]["symbol"], strict=True):
        assert symbol == shapes[labels[node] // 8] + ("" if node == centre or (node, centre) in edges else "-open")
    assert complaints(driver) == []


@pytest.mark.parametrize("model", ["gat", "gcn"])
def test_models_without_context(model, request, tmp_path, driver):
    run = request.getfixturevalue(f"{model}_run")
    write_page(run, tmp_path / "page.html")
    open_page(driver, tmp_path / "page.html")
    if model == "gat":
        assert not by_id(driver, "round").is_displayed()
        assert "no S" in by_id(driver, "ego-caption").text
        assert len(table(driver)) > 1
        assert not driver.find_element("css selector", "#rows .context").is_displayed()
    else:
        assert "no attention" in by_id(driver, "node-facts").text
        assert not by_id(driver, "rows").is_displayed()
    assert complaints(driver) == []
