"use strict";
// The browser of sequences: a list to search, sort and page through, and one sequence in full.
const {tick, grid, list} = report.sequences;
const PAGE = 10;
const byId = (id) => document.getElementById(id);
const view = {found: [], page: 0, chosen: null, at: -1, points: []};

// ---------------------------------------------------------------------------------------------- reading a record

const since = (record, steps) => Array.from(d3.cumsum(steps), (k) => record.a + k * tick);

list.forEach((record, place) => {
  record.place = place;
  record.jumps = record.s.length - 1;
  record.key = record.id.toLowerCase();
  const starts = d3.cumsum(record.b);
  record.time = new Array(M).fill(0);
  record.s.forEach((m, k) => (record.time[m] += ((k < record.jumps ? starts[k + 1] : record.z) - starts[k]) * tick));
});

function unfold(record) {
  const end = record.a + record.z * tick;
  const starts = since(record, record.b);
  const dwells = record.s.map((m, k) => ({m, from: starts[k], to: k < record.jumps ? starts[k + 1] : end}));
  const stateAt = (t) => record.s[Math.max(0, d3.bisectRight(starts, t) - 1)];
  const rows = since(record, record.t).map((t, k) => ({t, x: record.x.map((column) => column[k]), row: true}));
  const even = d3.range(grid + 1).map((k) => ({t: record.a + (record.z * tick * k) / grid, x: null, row: false}));
  const all = record.p === null ? rows : rows.concat(even);
  all.forEach((point, k) => {
    point.m = stateAt(point.t);
    point.p = record.p === null ? null : d3.range(M).map((m) => LETTERS.indexOf(record.p[k * M + m]) / 63);
    // a row at the time of a jump may be the last of the state that is left
    const j = d3.bisectLeft(starts, point.t - tick / 2);
    const left = point.row && j > 0 && j < starts.length && Math.abs(starts[j] - point.t) < tick ? record.s[j - 1] : null;
    if (left !== null && point.p && point.p[left] > point.p[point.m]) point.m = left;
  });
  // an even time that is a row's time would hide the row from the hand that points at it
  const taken = rows.map((row) => row.t);
  const apart = (t) => {
    const k = d3.bisectCenter(taken, t);
    return k >= taken.length || Math.abs(taken[k] - t) > 2 * tick;
  };
  return {end, dwells, rows, points: d3.sort(all.filter((d) => d.row || apart(d.t)), (d) => d.t)};
}

const shown = (column, x) => {
  if (x === null || x === undefined) return null;
  const known = column.values && column.values.find(([key]) => key === x);
  return known ? known[2] : number(x);
};

function reading(point) {
  const parts = [`state ${report.states[point.m].label}`];
  if (point.p) {
    const likely = d3.range(M).filter((m) => point.p[m] >= 0.02).sort((a, b) => point.p[b] - point.p[a]).slice(0, 6);
    parts.push(`probability ${likely.map((m) => `${stateName(m)}: ${percent(point.p[m])}`).join(", ")}`);
  }
  if (point.x) {
    const seen = report.columns.map((column, d) => [column.name, shown(column, point.x[d])]).filter(([, x]) => x !== null);
    parts.push(seen.length ? seen.map(([name, x]) => `${short(name)} ${short(x, 40)}`).join(", ") : "no value");
  }
  return [timeText(point.t), ...parts];
}

// ----------------------------------------------------------------------------------------------------- one sequence

// all charts of a sequence have one margin, so that one time stands on one line
const MARGIN = d3.max(report.columns, (column) =>
  column.ticks ? Math.max(52, d3.max(column.ticks, ([, text]) => Math.min(text.length, 14)) * 7 + 14) : 52);

// dates have two lines of ticks
const BELOW = ORIGIN === null ? 36 : 50;

function columnChart(width, record, open, column, d, last) {
  const byLabel = column.ticks !== null;
  const heights = byLabel ? new Map(column.values.map(([key, y]) => [key, y])) : null;
  const place = (x) => (x === null ? null : byLabel ? heights.get(x) : x);
  const seen = open.rows.filter((row) => row.x[d] !== null);
  const dwells = open.dwells.filter((dwell) => column.levels[dwell.m] !== null);
  const jumps = d3.pairs(open.dwells);
  const tickName = byLabel ? new Map(column.ticks.map(([y, text]) => [y, short(text, 14)])) : null;
  const spots = open.points.map((point) => ({...point, y: (point.x && place(point.x[d])) ?? column.levels[point.m]}));
  const marks = [
    Plot.ruleX(jumps, {x: ([, next]) => when(next.from), stroke: "var(--line)", strokeWidth: jumps.length < 60 ? 1 : 0.4}),
    Plot.ruleX(jumps, {
      x: ([, next]) => when(next.from), y1: ([before]) => column.levels[before.m], y2: ([, next]) => column.levels[next.m],
      stroke: "currentColor", strokeOpacity: 0.55,
    }),
    Plot.ruleY(dwells, {x1: (q) => when(q.from), x2: (q) => when(q.to), y: (q) => column.levels[q.m], stroke: (q) => ink(q.m), strokeWidth: 4}),
    Plot.dot(seen, {
      x: (q) => when(q.t), y: (q) => place(q.x[d]), fill: (q) => ink(q.m), stroke: "var(--page)", strokeWidth: 1,
      r: seen.length > 300 ? 2 : seen.length > 80 ? 3 : 4.2,
    }),
    Plot.ruleX(spots, Plot.pointerX({x: (q) => when(q.t), stroke: "currentColor", strokeOpacity: 0.6, maxRadius: 1e4})),
    Plot.tip(spots, Plot.pointerX({x: (q) => when(q.t), y: "y", title: (q) => reading(q).map((s) => short(s, 60)).join("\n"), maxRadius: 1e4})),
  ];
  return Plot.plot({
    width, marginLeft: MARGIN, marginRight: 14, marginBottom: last ? BELOW : 12, style: FONT,
    height: byLabel ? Math.min(420, 64 + 30 * column.ticks.length) : report.columns.length > 1 ? 190 : 280,
    ariaLabel: `${short(column.name, 60)} of sequence ${short(record.id, 60)}: path and observations`,
    ariaDescription: `${plural(record.jumps, "jump")}; ` + open.dwells.slice(0, 30)
      .map((q) => `${stateName(q.m)} from ${timeText(q.from)}`).join(", "),
    x: {label: last ? timeLabel : null, domain: domain(record, open), type: ORIGIN === null ? "linear" : "utc", ...(last ? {} : {tickFormat: () => ""})},
    y: byLabel
      ? {label: null, domain: d3.extent(column.ticks, ([y]) => y).map((y, k) => y + (k ? 0.5 : -0.5)), ticks: column.ticks.map(([y]) => y), tickFormat: (y) => tickName.get(y)}
      : {label: short(column.name, 40), nice: true, zero: false, grid: true},
    marks,
  });
}

function bandChart(width, record, open) {
  const tops = open.points.map((point) => {
    const total = d3.sum(point.p) || 1;
    return d3.cumsum(point.p.map((p) => p / total));
  });
  const areas = d3.range(M).filter((m) => open.points.some((point) => point.p[m] > 0))
    .map((m) => [m, open.points.map((point, k) => ({t: point.t, y1: m ? tops[k][m - 1] : 0, y2: tops[k][m]}))]);
  return Plot.plot({
    width, height: 140, marginLeft: MARGIN, marginRight: 14, marginTop: 22, marginBottom: BELOW, style: FONT,
    ariaLabel: `Probability of each state over time, sequence ${short(record.id, 60)}`,
    ariaDescription: "The probabilities are read out as one moves through the chart above, and add up to one.",
    x: {label: timeLabel, domain: domain(record, open), type: ORIGIN === null ? "linear" : "utc"},
    y: {label: "probability", domain: [0, 1], ticks: [0, 0.5, 1], tickFormat: "%"},
    marks: [
      areas.map(([m, points]) => Plot.areaY(points, {x: (q) => when(q.t), y1: "y1", y2: "y2", fill: fill(m), stroke: "var(--page)", strokeWidth: 0.5})),
      Plot.tickX(open.rows.length > 150 ? [] : open.rows.filter((row) => row.x.some((x) => x !== null)), {
        x: (q) => when(q.t), stroke: "var(--page)", strokeWidth: 1.2, strokeOpacity: 0.7, insetTop: 76,
      }),
      Plot.ruleX(open.points, Plot.pointerX({x: (q) => when(q.t), stroke: "var(--text)", maxRadius: 1e4})),
      Plot.tip(open.points, Plot.pointerX({x: (q) => when(q.t), y: () => 0.5, title: (q) => reading(q).map((s) => short(s, 60)).join("\n"), maxRadius: 1e4})),
    ],
  });
}

function domain(record, open) {
  const room = (open.end - record.a) * 0.015 || 0.5;
  return [when(record.a - room), when(open.end + room)];
}

function show(record) {
  view.chosen = record;
  view.at = -1;
  byId("chosen").textContent = record ? record.id : "No sequence";
  byId("reading").textContent = "";
  byId("about").textContent = "";
  byId("dwells").replaceChildren();
  for (const row of document.querySelectorAll("#ids tbody tr")) {
    const own = record !== null && +row.dataset.place === record.place;
    row.classList.toggle("chosen", own);
    row.querySelector("button").setAttribute("aria-current", own);
    row.querySelector("button").tabIndex = own ? 0 : -1;
  }
  byId("chart").replaceChildren();
  if (!record) return;
  const open = unfold(record);
  const seen = open.rows.filter((row) => row.x.some((x) => x !== null)).length;
  byId("about").textContent = `${timeText(record.a)} to ${timeText(open.end)}${report.time.unit && ORIGIN === null ? ` ${report.time.unit}` : ""}: ${plural(seen, "observation")}, ` +
    `${plural(record.jumps, "jump")}, misfit ${number(record.m)}${record.cut ? "; the beginning of a longer sequence" : ""}.`;
  const charts = report.columns.map((column, d) => (width) =>
    columnChart(width, record, open, column, d, record.p === null && d === report.columns.length - 1));
  if (record.p !== null) charts.push((width) => bandChart(width, record, open));
  view.points = open.points.filter((point) => point.row);
  const draw = (width) => charts.map((chart) => {
    const svg = chart(width);
    svg.addEventListener("input", () => (byId("reading").textContent = svg.value ? reading(svg.value).join(" · ") : ""));
    return svg;
  });
  view.draw = draw;
  byId("chart").replaceChildren(...draw(chartWidth()));
  tabulate(open);
}

const chartWidth = () => Math.max(280, Math.min(byId("chart").clientWidth, 1100));
drawings.push({
  place: byId("chart"), width: byId("chart").clientWidth,
  draw: () => view.chosen && byId("chart").replaceChildren(...view.draw(chartWidth())),
});

function tabulate(open) {
  const table = d3.select("#dwells");
  table.append("thead").append("tr").selectAll("th").data(["From", "To", "State"]).join("th").attr("scope", "col").text(String);
  table.append("tbody").selectAll("tr").data(open.dwells.slice(0, 500)).join("tr").selectAll("td")
    .data((q) => [timeText(q.from), timeText(q.to), report.states[q.m].label]).join("td").append("bdi").text(String);
}

// Left and right move through the observations: the chart's own tip follows, as it follows a mouse.
byId("chart").addEventListener("keydown", (event) => {
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  if (!step || !view.points.length) return;
  event.preventDefault();
  view.at = Math.max(0, Math.min(view.points.length - 1, view.at + step));
  const svg = byId("chart").querySelector("svg");
  const box = svg.getBoundingClientRect();
  const x = box.left + (svg.scale("x").apply(when(view.points[view.at].t)) * box.width) / svg.viewBox.baseVal.width;
  svg.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, pointerType: "mouse", clientX: x, clientY: box.top + box.height / 2}));
});

// ---------------------------------------------------------------------------------------------------------- the list

const sorts = [
  {name: "order of the data", value: (r) => r.place},
  {name: "id", text: true, value: (r) => r.id},
  {name: "number of jumps", value: (r) => r.jumps, falls: true},
  {name: "misfit", value: (r) => r.m ?? NaN, falls: true},
  ...report.states.map((state, m) => ({
    name: `time in ${stateName(m, 30)}`, value: (r) => r.time[m], falls: true, extra: (r) => number(+r.time[m].toPrecision(3)), head: stateName(m, 10),
  })),
];
const collator = new Intl.Collator("en", {numeric: true});
sorts.forEach((sort, k) => byId("sort").add(new Option(sort.name, k)));

function strip(record) {
  const starts = d3.cumsum(record.b);
  const parts = record.s.map((m, k) => ({m, from: starts[k], to: k < record.jumps ? starts[k + 1] : record.z || 1}));
  return Plot.plot({
    width: 120, height: 14, margin: 0, axis: null, x: {domain: [0, record.z || 1]}, y: {domain: [0, 1]},
    ariaLabel: `Path of ${short(record.id, 60)}`, style: {background: "transparent"},
    marks: [Plot.rect(parts, {x1: "from", x2: "to", y1: 0, y2: 1, fill: (q) => fill(q.m), inset: 0})],
  });
}

function find() {
  const words = byId("search").value.trim().toLowerCase();
  const sort = sorts[+byId("sort").value];
  const falls = byId("direction").getAttribute("aria-pressed") === "true";
  const order = sort.text ? (a, b) => collator.compare(a.id, b.id) : (a, b) => d3.ascending(sort.value(a), sort.value(b));
  const known = (r) => sort.text || !Number.isNaN(sort.value(r));
  const found = list.filter((r) => r.key.includes(words));
  // what has no such number stands last, either way
  view.found = found.filter(known).sort((a, b) => (falls ? order(b, a) : order(a, b)) || a.place - b.place)
    .concat(found.filter((r) => !known(r)));
  byId("extra").hidden = !sort.extra;
  byId("extra").textContent = sort.extra ? `in ${sort.head}` : "";
  turn(0);
  show(view.found[0] ?? null);
}

function turn(page) {
  const pages = Math.max(1, Math.ceil(view.found.length / PAGE));
  view.page = Math.max(0, Math.min(pages - 1, page));
  const sort = sorts[+byId("sort").value];
  const part = view.found.slice(view.page * PAGE, (view.page + 1) * PAGE);
  byId("ids").tBodies[0].replaceChildren(...part.map((record) => {
    const row = document.createElement("tr");
    row.dataset.place = record.place;
    const cell = (className = "") => Object.assign(row.appendChild(document.createElement("td")), {className});
    const button = cell().appendChild(document.createElement("button"));
    button.type = "button";
    button.tabIndex = -1;
    button.title = record.id;
    button.appendChild(document.createElement("bdi")).textContent = record.id;
    cell().appendChild(strip(record));
    cell("n").textContent = record.jumps;
    cell("n").textContent = record.m === null ? "–" : String(+record.m.toPrecision(3));
    if (sort.extra) cell("n").textContent = sort.extra(record);
    row.addEventListener("click", () => show(record));
    return row;
  }));
  const first = view.page * PAGE + 1;
  byId("where").textContent = view.found.length
    ? `${first}–${first + part.length - 1} of ${view.found.length.toLocaleString("en")}` : "nothing found";
  byId("previous").disabled = view.page === 0;
  byId("next").disabled = view.page >= pages - 1;
}

function go(place, focus) {
  if (!view.found.length) return;
  place = Math.max(0, Math.min(view.found.length - 1, place));
  turn(Math.floor(place / PAGE));
  show(view.found[place]);
  if (focus) document.querySelector(`#ids tr[data-place="${view.found[place].place}"] button`).focus();
}

byId("ids").addEventListener("keydown", (event) => {
  const now = view.found.indexOf(view.chosen);
  const to = {ArrowDown: now + 1, ArrowUp: now - 1, PageDown: now + PAGE, PageUp: now - PAGE, Home: 0, End: view.found.length - 1}[event.key];
  if (to === undefined) return;
  event.preventDefault();
  go(to, true);
});
byId("search").addEventListener("input", find);
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") {
    event.preventDefault();
    go(view.page * PAGE, true);
  }
});
byId("sort").addEventListener("change", () => {
  direct(Boolean(sorts[+byId("sort").value].falls));
  find();
});
byId("direction").addEventListener("click", () => {
  direct(byId("direction").getAttribute("aria-pressed") !== "true");
  find();
});
const direct = (falls) => byId("direction").setAttribute("aria-pressed", falls);
byId("previous").addEventListener("click", () => go((view.page - 1) * PAGE));
byId("next").addEventListener("click", () => go((view.page + 1) * PAGE));
find();
