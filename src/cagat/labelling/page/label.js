"use strict";
// The page of `cagat label`. It asks its own server and nobody else; names and texts are only ever put in as text.
const $ = (id) => document.getElementById(id);
const SHAPES = ["circle", "square", "diamond", "triangle"];
const dark = window.matchMedia("(prefers-color-scheme: dark)");
let state = null, shown = null, map = null, pending = false, mapOf = "", offered = null;

// Of several windows with this page the server lets one label.
const WINDOW = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16)).join("");

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ ...body, window: WINDOW }) };
  let reply;
  try { reply = await fetch(path, options); } catch { throw new Error("The server does not answer. Is cagat label still running? All labels that were confirmed are on disk."); }
  const found = await reply.json();
  if (!reply.ok) throw new Error(found.error);
  return found;
}

function make(tag, text, parent, kind) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  if (parent) parent.append(node);
  return node;
}

function colour(number) {
  const found = state.colours[number % state.colours.length];
  return dark.matches && found === "#222222" ? "#EEEEEE" : found;
}
const shape = (number) => SHAPES[Math.floor(number / state.colours.length) % SHAPES.length];
const percent = (share) => `${Math.round(100 * share)} %`;
const classNumber = (name) => state.classes.findIndex((one) => one.name === name);

function swatch(number, parent) {
  const mark = make("span", "", parent, `swatch ${shape(number)}`);
  mark.style.background = colour(number);
}

function say(text, wrong) {
  $("said").textContent = text;
  $("said").className = wrong ? "wrong" : "";
}

// Labels, skips and so on: one at a time, and the page says so only after the server did.
async function act(path, body) {
  if (pending) return null;
  pending = true;
  try {
    const found = await ask(path, body);
    take(found.state);
    say(found.said);
    return found;
  } catch (error) {
    say(error.message, true);
    return null;
  } finally {
    pending = false;
    document.body.dataset.acts = Number(document.body.dataset.acts || 0) + 1;
  }
}

async function label(number) {
  const one = state.classes[number];
  if (!one || !shown || state.readOnly) return;
  if (await act("label", { node: shown.index, label: one.name })) showSuggested();
}
async function skip() {
  if (shown && !state.readOnly && (await act("skip", { node: shown.index }))) showSuggested();
}
async function undo() {
  const found = await act("undo", {});
  if (found && found.node) show(found.node);
}

function showSuggested() {
  offered = state.suggested && state.suggested.index;
  show(state.suggested);
}

function show(node) {
  shown = node;
  document.body.dataset.node = node ? node.index : "";
  // What was suggested stays so, though the model may know better by now.
  $("back").hidden = !state.suggested || Boolean(node && node.index === offered);
  $("node-heading").textContent = node ? `Node ${node.name}` : "Every node is labelled or skipped";
  drawNode();
}

function drawNode() {
  const node = shown;
  drawClasses();
  for (const id of ["columns", "neighbours", "because", "guess", "reason"]) $(id).replaceChildren();
  $("skip").disabled = !node || Boolean(state.readOnly);
  $("neighbours-heading").hidden = !node;
  if (!node) return;
  $("reason").textContent = node.label ? `Its label is ${node.label}. Choose another to change it.`
    : node.reason && `${node.index === offered ? "Why this one? " : ""}${node.reason}`;
  if (node.guess && state.model) {  // A model may be gone while a node that it knew is on its way.
    const kind = state.model.calibrated ? "calibrated probability" : "probability, not calibrated yet";
    $("guess").textContent = `The model's guess: ${node.guess.map((one) => `${one.class} ${percent(one.probability)}`).join(", ")} (${kind}).`;
  }
  if (node.because.length) {
    $("because").append("Because of ");
    node.because.forEach((one, place) => {
      if (place) $("because").append("; ");
      link(one, $("because"));
      $("because").append(` (${one.label ?? "no label"}) ${one.share}`);
    });
  }
  for (const one of node.columns) { make("dt", one.name, $("columns")); make("dd", one.value, $("columns")); }
  $("neighbours-heading").textContent = node.neighbours.length < node.neighbourCount
    ? `Neighbours (${node.neighbours.length} of ${node.neighbourCount})` : `Neighbours (${node.neighbourCount})`;
  for (const one of node.neighbours) {
    const row = make("li", undefined, $("neighbours"));
    const name = one.label ?? (one.guess && one.guess.class);
    if (name && classNumber(name) >= 0) swatch(classNumber(name), row);
    link(one, row);
    row.append(one.label ? ` labelled ${one.label}` : one.guess ? ` predicted ${one.guess.class} ${percent(one.guess.probability)}` : " no label");
  }
}

function link(one, parent) {
  const button = make("button", one.name, parent);
  button.type = "button";
  button.addEventListener("click", () => visit(one.index));
}

async function visit(index) {
  try {
    show(await ask(`node?index=${index}`));
    $("node-heading").focus();
  } catch (error) { say(error.message, true); }
}

function drawClasses() {
  const box = $("classes"), focused = document.activeElement && document.activeElement.dataset.number;
  box.replaceChildren();
  state.classes.forEach((one, number) => {
    const button = make("button", undefined, box);
    button.type = "button";
    button.dataset.number = number;
    button.disabled = !shown || Boolean(state.readOnly);
    if (number < 9) { make("kbd", String(number + 1), button); button.append(" "); }
    swatch(number, button);
    button.append(`${one.name} `);
    make("small", `${one.labels}`, button).title = "labels so far";
    button.style.borderColor = colour(number);
    if (shown && shown.label === one.name) button.classList.add("given");
    button.addEventListener("click", () => label(number));
    if (focused === String(number)) button.focus();
  });
  if (!state.classes.length) make("span", "There is no class yet. Press n to add one.", box, "soft");
}

function take(found) {
  state = found;
  $("graph").textContent = state.graph;
  document.title = `Label ${state.graph}`;
  $("counts").textContent = `${state.labelled} of ${state.nodes} nodes labelled${state.skipped ? `, ${state.skipped} skipped` : ""}.`;
  $("status").textContent = state.status;
  $("read-only").hidden = !state.readOnly;
  $("read-only").textContent = state.readOnly;
  for (const id of ["undo", "new", "finish"]) $(id).disabled = Boolean(state.readOnly);
  $("file").textContent = state.file;
  const legend = $("legend");
  legend.replaceChildren();
  state.classes.forEach((one, number) => {
    const entry = make("span", undefined, legend);
    swatch(number, entry);
    entry.append(one.predicted === null ? one.name : `${one.name} (${one.predicted})`);
  });
  drawEstimate();
  drawFinish();
  document.body.dataset.labelled = state.labelled;
  document.body.dataset.model = state.model ? state.model.labels : "";
  const key = JSON.stringify([state.model, state.labelled, state.classes.length]);
  if (key !== mapOf) { mapOf = key; loadMap(); }
}

function drawFinish() {
  const done = state.finish, box = $("finished");
  box.replaceChildren();
  if (!done) return;
  if (done.running) box.textContent = "Fitting the final model ...";
  else if (done.error) box.textContent = done.error;
  else {
    box.append(`Written from ${done.labels} labels: ${done.files.join(", ")}. The same from the command line: `);
    make("code", done.command, box);
  }
  document.body.dataset.finished = done.running ? "" : done.labels ?? "error";
}

function drawEstimate() {
  const last = state.curve.at(-1), canvas = $("curve");
  canvas.hidden = !last;
  if (!last) {
    $("estimate").textContent = "Too few labels to estimate: that takes five labels in half of the classes.";
    return;
  }
  $("estimate").textContent = `With ${last.labels} labels about ${percent(last.accuracy)} right (95 % interval ${percent(last.low)} to ${percent(last.high)}), `
    + "on labelled nodes, each predicted by a model that had not seen its label. They were chosen, not drawn at random, so the rest of the graph may be easier or harder.";
  const points = (share) => (100 * share).toFixed(1);
  const gain = state.gain;
  $("gain").textContent = gain
    ? `Label ${gain.labels} more to gain about ${Math.round(100 * gain.share)} point${gain.share < 0.015 ? "" : "s"} (95 % interval ${points(gain.low)} to ${points(gain.high)}).` : "";
  const pen = canvas.getContext("2d"), { width, height } = canvas, style = getComputedStyle(document.body);
  const ink = style.getPropertyValue("--soft"), line = style.getPropertyValue("--blue");
  pen.clearRect(0, 0, width, height);
  const most = Math.max(...state.curve.map((one) => one.labels)), least = Math.min(...state.curve.map((one) => one.labels));
  const x = (labels) => (most === least ? width / 2 : 50 + ((labels - least) / (most - least)) * (width - 80));
  const y = (share) => height - 30 - share * (height - 45);
  pen.font = "15px system-ui, sans-serif"; pen.fillStyle = ink; pen.strokeStyle = ink; pen.lineWidth = 1;
  for (const share of [0, 0.5, 1]) { pen.globalAlpha = 0.35; pen.beginPath(); pen.moveTo(45, y(share)); pen.lineTo(width - 10, y(share)); pen.stroke(); pen.globalAlpha = 1; pen.fillText(`${100 * share}`, 8, y(share) + 5); }
  pen.fillText(`${least}`, x(least) - 8, height - 8);
  if (most !== least) pen.fillText(`${most} labels`, width - 80, height - 8);
  pen.strokeStyle = line; pen.fillStyle = line; pen.lineWidth = 2;
  pen.beginPath();
  state.curve.forEach((one, place) => (place ? pen.lineTo(x(one.labels), y(one.accuracy)) : pen.moveTo(x(one.labels), y(one.accuracy))));
  pen.stroke();
  for (const one of state.curve) {
    pen.beginPath(); pen.moveTo(x(one.labels), y(one.low)); pen.lineTo(x(one.labels), y(one.high)); pen.stroke();
    pen.beginPath(); pen.arc(x(one.labels), y(one.accuracy), 4, 0, 7); pen.fill();
  }
}

async function loadMap() {
  try { map = await ask("map"); drawMap(); } catch (error) { say(error.message, true); }
}

const spot = (place, canvas) => [12 + map.x[place] * (canvas.width - 24), canvas.height - 12 - map.y[place] * (canvas.height - 24)];

function drawMap() {
  if (!map || !state) return;
  const canvas = $("map"), pen = canvas.getContext("2d"), ink = getComputedStyle(document.body).getPropertyValue("--ink");
  const size = map.index.length > 5000 ? 2 : map.index.length > 800 ? 3.5 : 5;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  for (let place = 0; place < map.index.length; place++) {
    const [x, y] = spot(place, canvas), number = map.predicted[place];
    pen.globalAlpha = number < 0 ? 0.5 : 0.15 + 0.85 * (map.sure[place] / 100) ** 2;
    pen.fillStyle = number < 0 ? "#8a929d" : colour(number);
    mark(pen, x, y, map.labelled[place] ? size + 2 : size, number < 0 ? "circle" : shape(number));
    pen.fill();
    if (map.labelled[place]) { pen.globalAlpha = 1; pen.strokeStyle = ink; pen.lineWidth = 2; pen.stroke(); }
  }
  pen.globalAlpha = 1;
}

function mark(pen, x, y, size, kind) {
  pen.beginPath();
  if (kind === "circle") pen.arc(x, y, size, 0, 7);
  else if (kind === "square") pen.rect(x - size, y - size, 2 * size, 2 * size);
  else {
    const corners = kind === "diamond" ? [[0, -1], [1, 0], [0, 1], [-1, 0]] : [[0, -1], [1, 1], [-1, 1]];
    corners.forEach(([a, b], place) => (place ? pen.lineTo(x + a * size, y + b * size) : pen.moveTo(x + a * size, y + b * size)));
    pen.closePath();
  }
}

$("map").addEventListener("click", (event) => {
  if (!map) return;
  const canvas = $("map"), box = canvas.getBoundingClientRect();
  const at = [(event.clientX - box.left) * canvas.width / box.width, (event.clientY - box.top) * canvas.height / box.height];
  let best = -1, nearest = 400;
  for (let place = 0; place < map.index.length; place++) {
    const [x, y] = spot(place, canvas), distance = (x - at[0]) ** 2 + (y - at[1]) ** 2;
    if (distance < nearest) { nearest = distance; best = place; }
  }
  if (best >= 0) visit(map.index[best]);
});

$("skip").addEventListener("click", skip);
$("undo").addEventListener("click", undo);
$("back").addEventListener("click", showSuggested);
$("finish").addEventListener("click", () => act("finish", {}));
$("new").addEventListener("click", askClass);

function askClass() {
  if (state.readOnly) return;
  $("new-class").hidden = false;
  $("new-class-name").value = "";
  $("new-class-name").focus();
}
$("new-class").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await act("class", { name: $("new-class-name").value })) { $("new-class").hidden = true; drawClasses(); $("node-heading").focus(); }
});

let searched = [];
$("search").addEventListener("input", async () => {
  try { searched = (await ask(`search?q=${encodeURIComponent($("search").value)}`)).nodes; } catch (error) { say(error.message, true); return; }
  $("found").replaceChildren(...searched.map((one) => { const option = make("option"); option.value = one.name; return option; }));
});
$("search-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = $("search").value;
  let found;
  try { found = (await ask(`search?q=${encodeURIComponent(text)}`)).nodes; } catch (error) { say(error.message, true); return; }
  if (!found.length) { say(`There is no node called ${text}.`, true); return; }
  say("");
  visit((found.find((one) => one.name === text) ?? found[0]).index);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { $("new-class").hidden = true; $("node-heading").focus(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "INPUT" || !state) return;
  if (event.key >= "1" && event.key <= "9") label(Number(event.key) - 1);
  else if (event.key === "s") skip();
  else if (event.key === "u") { if (!state.readOnly) undo(); }
  else if (event.key === "n") { event.preventDefault(); askClass(); }
  else if (event.key === "/") { event.preventDefault(); $("search").focus(); $("search").select(); }
});

dark.addEventListener("change", () => { drawNode(); take(state); drawMap(); });

// News of the model. What is in front of the user stays, and only what is known of it changes.
let asking = false, again = false;
async function news() {
  if (asking) { again = true; return; }
  asking = true;
  try {
    do {
      again = false;
      const found = await ask(`state?window=${WINDOW}`);
      if (pending) { setTimeout(news, 150); continue; }
      if (state && found.version < state.version) continue;
      const before = state;
      take(found);
      if (before && before.readOnly !== state.readOnly) drawNode();
      const follows = state.readOnly && shown && shown.index === offered && state.suggested && state.suggested.index !== offered;
      if (!shown || follows || (shown.label === null && state.suggested && document.body.dataset.ready !== "yes")) showSuggested();
      else if (JSON.stringify(before && before.model) !== JSON.stringify(state.model)) {
        const index = shown.index, node = await ask(`node?index=${index}`);
        if (shown && shown.index === index && !pending) { shown = node; drawNode(); }
      }
      document.body.dataset.ready = "yes";
    } while (again);
  } catch (error) { say(error.message, true); } finally { asking = false; }
}

const stream = new EventSource(`events?window=${WINDOW}`);
stream.addEventListener("message", news);
stream.addEventListener("error", () => { $("status").textContent = "The server does not answer; trying again ..."; });
news();
