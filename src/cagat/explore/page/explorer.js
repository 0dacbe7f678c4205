(function () {
"use strict";
const $ = id => document.getElementById(id);
// Arrays come as base64 of whole numbers and a scale.
const data = JSON.parse($("data").textContent, (_, field) => {
  if (typeof field?.kind !== "string") return field;
  const bytes = Uint8Array.from(atob(field.data), letter => letter.charCodeAt(0));
  const whole = new window[field.kind + "Array"](bytes.buffer);
  return field.scale === 1 ? whole : Float32Array.from(whole, value => value * field.scale);
});
const {x: X, y: Y, label, predicted, probability, part, degree, shown, offsets, neighbours, layers} = data;

// Plotly takes tags for markup; names from files are shown as they are.
const plain = text => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const short = (text, length = 14) => text.length <= length ? text : text.slice(0, length - 1) + "…";
const count = data.names.length, unlabelled = data.classes.length - 1;
const placeOf = new Map(Array.from(shown, (node, place) => [node, place]));
const numberOf = new Map(data.names.map((name, node) => [name, node]));
const colour = number => number === unlabelled ? "#9aa2ad" : data.colours[number % data.colours.length];
const symbol = number => data.symbols[Math.floor(number / data.colours.length) % data.symbols.length];
const config = {displaylogo: false, responsive: true, displayModeBar: false};
const font = {family: "system-ui, 'Segoe UI', 'Liberation Sans', sans-serif", size: 13, color: "#222"};
// Where there is little room, a swipe that begins on a picture moves the page.
const isNarrow = () => window.innerWidth < 560;
// Nodes without a label are shown as what they are predicted to be.
const kindOf = node => label[node] === unlabelled ? predicted[node] : label[node];
const kindName = node => data.classes[kindOf(node)] + (label[node] === unlabelled ? " (predicted)" : "");
const doubtOf = new Map(data.doubts.map(doubt => [doubt.node, doubt]));
const isRight = node => label[node] === unlabelled ? 2 : label[node] === predicted[node] ? 0 : 1;

const COLOURINGS = {
  class: {of: node => label[node], names: data.classes, colour, symbol},
  predicted: {of: node => predicted[node], names: data.classes, colour, symbol},
  confidence: {of: node => [50, 70, 90].filter(bound => probability[node] >= bound).length,
    names: ["below 50 %", "50 to 69 %", "70 to 89 %", "90 % and more"],
    colour: kind => ["#D55E00", "#E69F00", "#56B4E9", "#0072B2"][kind], symbol: kind => ["x", "diamond", "circle", "circle"][kind]},
  right: {of: isRight, names: ["right", "wrong", "unlabelled"], colour: kind => ["#56B4E9", "#D55E00", "#9aa2ad"][kind],
    symbol: kind => ["circle", "x", "circle"][kind]},
  split: {of: node => part[node], names: ["train", "val", "test", "no part"],
    colour: kind => ["#222222", "#D55E00", "#56B4E9", "#9aa2ad"][kind], symbol: kind => ["square", "diamond", "circle", "circle"][kind]},
};
const state = {node: 0, layer: 0, head: 0, round: 0, hidden: new Set()};

const scatter = count > 4000 && document.createElement("canvas").getContext("webgl") ? "scattergl" : "scatter";

function element(tag, className, ...content) {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content);
  return made;
}

function button(press, ...content) {
  const made = element("button", "", ...content);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

// The mark that stands for a thing on the map, in its shape and colour.
function mark(shape, tint) {
  const swatch = element("span", `swatch ${shape}`);
  swatch.style.background = tint;
  return swatch;
}

const classMark = node => mark(symbol(kindOf(node)), colour(kindOf(node)));

// ---- all nodes

function drawMap() {
  const chosen = COLOURINGS[$("colouring").value];
  const groups = chosen.names.map(() => []);
  for (let node = 0; node < count; node++) groups[chosen.of(node)].push(node);
  const traces = groups.map((nodes, kind) => ({
    type: scatter, mode: "markers", x: nodes.map(node => X[node]), y: nodes.map(node => Y[node]), customdata: nodes,
    text: nodes.map(node => plain(short(data.names[node], 30)) + "<br>class " + plain(data.classes[label[node]])
      + `<br>predicted ${plain(data.classes[predicted[node]])}, ${probability[node]} %`), name: plain(chosen.names[kind]),
    hovertemplate: "%{text}<extra></extra>", visible: !state.hidden.has(kind),
    marker: {color: chosen.colour(kind), symbol: chosen.symbol(kind), size: count > 4000 ? 4 : 6, opacity: .8},
  }));
  traces.push({type: scatter, mode: "markers", x: [X[state.node]], y: [Y[state.node]], hoverinfo: "skip",
    marker: {size: 18, symbol: "circle-open", color: "#222", line: {width: 3}}});
  const narrow = isNarrow(), axis = {visible: false, fixedrange: narrow};
  const layout = {height: narrow ? 360 : 500, margin: {l: 4, r: 4, t: 4, b: 4}, showlegend: false, font,
    hovermode: "closest", dragmode: narrow ? false : "pan", xaxis: axis, yaxis: {...axis, scaleanchor: "x"}, uirevision: "keep"};
  const drawn = Plotly.react("map", traces, layout, {...config, scrollZoom: !narrow});
  drawLegend(chosen, groups);
  return drawn;
}

function drawLegend(chosen, groups) {
  const legend = $("legend"), kinds = groups.map((_, kind) => kind).filter(kind => groups[kind].length);
  legend.replaceChildren(...kinds.map((kind, place) => {
    const toggle = button(() => {
      if (!state.hidden.delete(kind)) state.hidden.add(kind);
      drawMap();
      legend.children[place].focus();
    }, mark(chosen.symbol(kind), chosen.colour(kind)), `${chosen.names[kind]} (${groups[kind].length})`);
    toggle.setAttribute("aria-pressed", String(!state.hidden.has(kind)));
    return toggle;
  }));
}

// ---- one node

function choose(node, scroll) {
  state.node = node;
  Plotly.restyle("map", {x: [[X[node]]], y: [[Y[node]]]}, [COLOURINGS[$("colouring").value].names.length]);
  drawNode();
  if (scroll && window.innerWidth < 960) $("node-heading").scrollIntoView({behavior: "smooth"});
}

// The rows of the table: the neighbours, then the strongest pairs without an edge of this head and round.
function pairs() {
  const place = placeOf.get(state.node), layer = layers[state.layer], heads = layer.heads, found = [];
  const value = (round, entry) => {
    const start = (round * neighbours.length + entry) * heads, all = layer.onEdges.subarray(start, start + heads);
    return state.head === heads ? all.reduce((sum, one) => sum + one) / heads : all[state.head];
  };
  for (let entry = offsets[place]; entry < offsets[place + 1]; entry++)
    found.push({node: neighbours[entry], edge: true, G: value(0, entry), S: value(state.round, entry)});
  if (state.round > 0) {
    const columns = heads + (heads > 1 ? 1 : 0);
    const start = (((state.round - 1) * columns + state.head) * shown.length + place) * layer.strongest;
    for (let rank = 0; rank < layer.strongest; rank++) {
      const node = layer.others[start + rank];
      if (node >= 0) found.push({node, edge: false, G: 0, S: layer.otherValues[start + rank]});
    }
  }
  return found.sort((one, other) => other.S - one.S);
}

const MOST = 24;

// Neighbours keep their places while head and round change; pairs without an edge stand outside.
function places(found) {
  const layer = layers[state.layer], place = placeOf.get(state.node), weight = new Map();
  for (let entry = offsets[place]; entry < offsets[place + 1]; entry++) {
    let most = 0;
    for (let round = 0; round <= layer.rounds; round += Math.max(layer.rounds, 1))
      for (let head = 0; head < layer.heads; head++)
        most = Math.max(most, layer.onEdges[(round * neighbours.length + entry) * layer.heads + head]);
    if (neighbours[entry] !== state.node) weight.set(neighbours[entry], most);
  }
  const kept = [...weight.keys()].sort((one, other) => weight.get(other) - weight.get(one)).slice(0, MOST)
    .sort((one, other) => kindOf(one) - kindOf(other) || one - other);
  const at = new Map([[state.node, [0, 0]]]);
  // Every one has a direction of its own, whether the outer ones are there or not.
  const outer = layer.rounds ? layer.strongest : 0, all = kept.length + outer;
  const far = found.filter(pair => !pair.edge);
  for (let slot = 0, near = 0, number = 0; slot < all; slot++) {
    const angle = 2 * Math.PI * slot / all + Math.PI / 2;
    if (number < outer && slot >= Math.floor((number + .5) * all / outer)) {
      if (number < far.length) at.set(far[number].node, [1.5 * Math.cos(angle), 1.5 * Math.sin(angle)]);
      number++;
    } else if (near < kept.length) at.set(kept[near++], [Math.cos(angle), Math.sin(angle)]);
  }
  return at;
}

function drawEgo(target, key, found, at, largest) {
  const visible = found.filter(pair => at.has(pair.node) && (pair.edge || key === "S")), traces = [];
  for (const pair of visible) {
    if (pair.node === state.node || pair[key] <= 0) continue;
    const [x, y] = at.get(pair.node);
    traces.push({type: "scatter", mode: "lines", x: [0, x], y: [0, y], hoverinfo: "skip",
      line: {width: .6 + 12 * pair[key] / largest, color: pair.edge ? "#aeb6c2" : "#e8a77c", dash: pair.edge ? "solid" : "dot"}});
  }
  const few = visible.length <= 18;
  traces.push({type: "scatter", mode: few ? "markers+text" : "markers", x: visible.map(pair => at.get(pair.node)[0]),
    y: visible.map(pair => at.get(pair.node)[1]), customdata: visible.map(pair => pair.node),
    text: visible.map(pair => pair.node === state.node || few ? plain(short(data.names[pair.node], 10)) : ""),
    textposition: visible.map(pair => at.get(pair.node)[1] < -.1 ? "bottom center" : "top center"), textfont: {size: 11},
    hovertext: visible.map(pair => `${plain(short(data.names[pair.node], 30))}<br>${plain(kindName(pair.node))}<br>${key} = ${pair[key].toFixed(3)}`
      + (pair.edge ? "" : "<br>no edge")),
    hovertemplate: "%{hovertext}<extra></extra>", cliponaxis: false,
    marker: {size: visible.map(pair => pair.node === state.node ? 24 : 14), color: visible.map(pair => colour(kindOf(pair.node))),
      symbol: visible.map(pair => symbol(kindOf(pair.node)) + (pair.edge ? "" : "-open")),
      line: {width: visible.map(pair => pair.node === state.node ? 3 : 1.5), color: visible.map(pair => pair.node === state.node ? "#222" : "#fff")}}});
  const axis = {visible: false, range: [-1.85, 1.85], fixedrange: true};
  const layout = {height: 300, margin: {l: 2, r: 2, t: 2, b: 2}, showlegend: false, font, hovermode: "closest", dragmode: false,
    xaxis: axis, yaxis: {...axis, scaleanchor: "x"}};
  return Plotly.react(target, traces, layout, config);
}

function tableRow(pair, largest) {
  const itself = pair.node === state.node, name = short(data.names[pair.node], 24);
  const row = element("tr", pair.edge ? "" : "off"), difference = pair.S - pair.G;
  row.dataset.node = data.names[pair.node];
  const open = () => {
    choose(pair.node, false);
    // The row is gone, and the keyboard would start from the top of the page.
    $("node-heading").focus();
  };
  const bars = [["G", "#0072B2", "bar"], ["S", "#D55E00", "bar context"]].map(([key, tint, className]) => {
    const bar = element("td", className, pair[key].toFixed(3));
    bar.style.backgroundImage = `linear-gradient(${tint}, ${tint})`;
    bar.style.setProperty("--part", `${Math.max(0, 90 * pair[key] / largest).toFixed(1)}%`);
    return bar;
  });
  row.append(element("td", "word", placeOf.has(pair.node) && !itself ? button(open, name) : name),
    element("td", "word kind", classMark(pair.node), short(kindName(pair.node), 24)),
    element("td", "word", itself ? "itself" : pair.edge ? "yes" : "no"), ...bars,
    element("td", "context", `${difference < 0 ? "−" : "+"}${Math.abs(difference).toFixed(3)}`));
  return row;
}

const tag = text => element("span", "tag", text);

// The labelled nodes that the prediction rests on, and whether the node's own label is in doubt.
function drawBecause() {
  const node = state.node, because = data.because, parts = [], doubt = doubtOf.get(node);
  if (because) {
    for (let place = node * because.count; place < (node + 1) * because.count; place++) {
      const other = because.nodes[place], share = 100 * because.shares[place];
      if (other < 0) continue;
      const percent = share >= 9.5 ? share.toFixed(0) : share >= .05 ? share.toFixed(1) : "<0.1", name = short(data.names[other], 24);
      parts.push(parts.length ? " · " : "Because of ", classMark(other), other === node ? "itself" : button(() => {
        choose(other, false);
        $("node-heading").focus();
      }, name), ` ${percent} %`);
    }
    parts.push(element("span", "soft", parts.length ? ": labelled nodes, with their share of all that speaks for this class." : "No labelled node speaks for this class."));
  }
  if (doubt) parts.push(...parts.length ? [element("br", "")] : [], element("span", "wrong", "Is its label right? "),
    "Models that were not trained on it take it for ", tag(data.classes[doubt.predicted]), ` (${doubt.ofPredicted} %; its label: ${doubt.ofLabel} %).`);
  $("because").replaceChildren(...parts);
  $("because").hidden = !parts.length;
}

const MOST_DOUBTS = 50;

function drawDoubts() {
  const doubts = data.doubts.slice(0, MOST_DOUBTS), kind = number => [mark(symbol(number), colour(number)), short(data.classes[number], 24)];
  $("doubts-card").hidden = $("doubt").hidden = !doubts.length;
  $("doubts-caption").textContent = `${data.doubts.length} labels are contradicted by models that were not trained on them, the gravest first`
    + (doubts.length < data.doubts.length ? `; here are ${MOST_DOUBTS}.` : ".");
  $("doubts").replaceChildren(...doubts.map(({node, predicted, ofLabel, ofPredicted}) => {
    const row = element("tr", "");
    row.append(element("td", "word", button(() => choose(node, true), short(data.names[node], 24))), element("td", "word kind", ...kind(label[node])),
      element("td", "", `${ofLabel} %`), element("td", "word kind", ...kind(predicted)), element("td", "", `${ofPredicted} %`));
    return row;
  }));
}

function drawNode() {
  const node = state.node;
  $("node-heading").textContent = `Node ${data.names[node]}`;
  $("node-facts").replaceChildren("class ", tag(data.classes[label[node]]), " predicted ", tag(data.classes[predicted[node]]),
    `, confidence ${probability[node]} % `, ["right ", element("span", "wrong", "wrong "), ""][isRight(node)],
    `· ${COLOURINGS.split.names[part[node]]} · ${degree[node]} neighbour${degree[node] === 1 ? "" : "s"}`);
  drawBecause();
  const known = placeOf.has(state.node);
  $("attention").hidden = !known;
  if (!known) {
    const why = layers.length ? `The attention of ${shown.length} of the ${count} nodes is on this page, and this node is not among them. To have it: cagat explore RUN --node '${data.names[state.node]}'` : data.note;
    $("node-facts").append(element("br", ""), element("span", "soft", why));
    return;
  }
  const layer = layers[state.layer], found = pairs(), at = places(found);
  const largest = Math.max(1e-9, ...found.map(pair => Math.max(pair.G, pair.S)));
  $("round-value").textContent = state.round === 0 ? `0 of ${layer.rounds}: G` : `${state.round} of ${layer.rounds}`;
  $("after-round").textContent = state.round === 0 ? "which starts as G" : `after round ${state.round}`;
  drawEgo("before", "G", found, at, largest);
  if (layer.rounds) drawEgo("after", "S", found, at, largest);
  $("rows").replaceChildren(...found.map(pair => tableRow(pair, largest)));
  const hidden = found.filter(pair => !at.has(pair.node)).length;
  $("ego-caption").textContent = (layer.rounds
    ? "The thicker a line, the more attention. Dotted lines and hollow marks are the strongest pairs without an edge, which only context reaches; colours and shapes are classes, predicted ones where there is no label. Rows of S need not sum to 1."
    : "The thicker a line, the more attention; colours and shapes are classes, predicted ones where there is no label. This model has no context, so there is no S.")
    + (hidden ? ` The ${MOST} strongest neighbours are drawn; the table has all.` : "");
}

function fillControls() {
  const layer = layers[state.layer], head = $("head");
  head.replaceChildren(...Array.from({length: layer.heads}, (_, number) => new Option(number + 1, number)));
  if (layer.heads > 1) head.add(new Option("mean of all", layer.heads));
  state.head = layer.heads > 1 ? layer.heads : 0;
  head.value = state.head;
  state.round = $("round").max = layer.rounds;
  $("round").value = layer.rounds;
  $("round-label").hidden = $("after-figure").hidden = layer.rounds === 0;
  $("attention").classList.toggle("plain", layer.rounds === 0);
}

// ---- begin

// Plotly takes the end of a swipe for a tap where it does not drag.
let touched = null, swiped = false;
function listen() {
  const at = event => [event.touches[0].clientX, event.touches[0].clientY], passive = {passive: true, capture: true};
  window.addEventListener("touchstart", event => { touched = at(event); swiped = false; }, passive);
  window.addEventListener("touchmove", event => {
    const [x, y] = at(event);
    if (touched && Math.hypot(x - touched[0], y - touched[1]) > 8) swiped = true;
  }, passive);
  window.addEventListener("mousedown", () => { swiped = false; }, {capture: true});
  $("colouring").addEventListener("change", () => { state.hidden.clear(); drawMap(); });
  $("search").addEventListener("input", () => {
    const typed = $("search").value.trim().toLowerCase();
    const matches = data.names.filter(name => typed && name.toLowerCase().includes(typed)).slice(0, 20);
    $("matches").replaceChildren(...matches.map(name => new Option(name, name)));
    $("search").setCustomValidity("");
  });
  $("search-form").addEventListener("submit", event => {
    event.preventDefault();
    const typed = $("search").value.trim(), node = numberOf.get(typed);
    $("search").setCustomValidity(node === undefined ? `There is no node called ${typed}` : "");
    if (node === undefined) $("search").reportValidity();
    else choose(node, true);
  });
  const pool = shown.length ? Array.from(shown) : data.names.map((_, node) => node);
  const draw = nodes => { if (nodes.length) choose(nodes[Math.floor(Math.random() * nodes.length)], true); };
  $("any").addEventListener("click", () => draw(pool));
  $("mistake").addEventListener("click", () => draw(pool.filter(node => isRight(node) === 1)));
  let next = 0;
  $("doubt").addEventListener("click", () => choose(data.doubts[next++ % data.doubts.length].node, true));
  $("layer").addEventListener("change", () => { state.layer = Number($("layer").value); fillControls(); drawNode(); });
  $("head").addEventListener("change", () => { state.head = Number($("head").value); drawNode(); });
  $("round").addEventListener("input", () => { state.round = Number($("round").value); drawNode(); });
  for (const id of ["map", "before", "after"]) if ($(id).on) $(id).on("plotly_click", event => {
    const node = event.points[0].customdata;
    if (node !== undefined && (id === "map" || node !== state.node) && !swiped) choose(node, id === "map");
  });
}

if (layers.length) {
  if (shown.length < count)
    $("sampled").textContent = `The attention of ${shown.length} of the ${count} nodes is on this page; press Any for one of them.`;
  layers.forEach((layer, place) => $("layer").add(new Option(layer.number, place)));
  fillControls();
}
// A test node with a handful of neighbours shows most.
const telling = shown.filter(node => degree[node] >= 4 && degree[node] <= 9);
state.node = telling.find(node => part[node] === 2) ?? telling[0] ?? shown[0] ?? 0;
$("colouring").value = data.colouring;
drawDoubts();
drawMap().then(() => {
  drawNode();
  listen();
  for (const [id, {data: traces, layout}] of Object.entries(data.figures)) {
    if (isNarrow()) {
      layout.margin = {...layout.margin, l: 48, r: 6};
      layout.dragmode = false;
      for (const key of Object.keys(layout)) if (/^[xy]axis/.test(key)) layout[key].fixedrange = true;
    }
    Plotly.newPlot(id, traces, layout, config);
  }
  document.body.dataset.ready = "yes";
});
}());
