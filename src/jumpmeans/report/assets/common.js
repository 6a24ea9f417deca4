"use strict";
// What all charts share: the data, names, numbers, times, and one colour for each state.
const report = JSON.parse(document.getElementById("data").textContent);
const M = report.states.length;
const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
const FONT = {fontFamily: "inherit", fontSize: "12px", background: "transparent"};

const short = (text, most = 18) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
const stateName = (m, most = 18) => short(report.states[m].label, most);
const ink = (m) => `var(--s${m})`;
const fill = (m) => `url(#fill-${m})`;
const number = (x) => (x === null || x === undefined ? "–" : String(+x.toPrecision(5)));
const percent = (p) => (p > 0 && p < 0.005 ? "< 1 %" : `${Math.round(100 * p)} %`);
const plural = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

// Times are numbers of the caller's unit, or days since an origin, shown as dates in UTC.
const ORIGIN = report.time.origin === null ? null : Date.parse(report.time.origin + "Z");
const when = (t) => (ORIGIN === null ? t : new Date(ORIGIN + 864e5 * t));
function timeText(t) {
  if (ORIGIN === null) return String(+t.toFixed(Math.min(report.sequences.decimals, 12)));
  const text = new Date(ORIGIN + 6e4 * Math.round(1440 * t)).toISOString();
  return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
}
const unit = report.time.unit && ORIGIN === null ? ` (${report.time.unit})` : "";
const timeLabel = ORIGIN === null ? `time${unit}` : report.time.zone ? "date (UTC)" : "date";

// Colours: the palette of the other plots; beyond it, shades that every eye can order.
function paint() {
  const dark = matchMedia("screen and (prefers-color-scheme: dark)").matches;
  for (let m = 0; m < M; ++m) {
    const shade = M === 1 ? 0 : m / (M - 1);
    const colour = report.palette ? report.palette[m] : d3.interpolateViridis(dark ? 0.25 + 0.75 * shade : 0.95 * shade);
    document.documentElement.style.setProperty(`--s${m}`, colour === "#000000" ? "var(--black)" : colour);
  }
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
paint();

// Each state also has a pattern: seen in print, and on the screen when asked for.
// Those of neighbours differ in more than their slant.
const HATCHES = ["", "M0,8L8,0", "M4,3.9V4.1", "M0,4H8", "M0,8L8,0M0,0L8,8", "M4,0V8", "M4,0V8M0,4H8", "M0,0L8,8"];
const defs = d3.select("body").append("svg").attr("width", 0).attr("height", 0).attr("aria-hidden", "true")
  .style("position", "absolute").append("defs");
for (let m = 0; m < M; ++m) {
  const pattern = defs.append("pattern").attr("id", `fill-${m}`).attr("patternUnits", "userSpaceOnUse")
    .attr("width", 8).attr("height", 8);
  pattern.append("rect").attr("width", 8).attr("height", 8).style("fill", ink(m));
  pattern.append("path").attr("d", HATCHES[m % HATCHES.length]).style("stroke", "var(--hatch)")
    .attr("stroke-width", m % HATCHES.length === 2 ? 4 : 1.8).attr("stroke-linecap", "round");
}
document.getElementById("patterns").addEventListener("change", (event) => {
  document.documentElement.classList.toggle("patterns", event.target.checked);
});

function swatch(parent, m) {
  d3.select(parent).selectAll("svg").data([m]).join("svg").attr("viewBox", "0 0 16 16").append("rect")
    .attr("width", 16).attr("height", 16).style("fill", fill(m));
}
for (const span of document.querySelectorAll(".swatch")) swatch(span, +span.dataset.state);
// what states show stands beside their names if it is short for all of them
const inLegend = d3.max(report.states, (state) => state.shows.length) < 24;
for (const legend of document.querySelectorAll("[data-legend]")) {
  report.states.slice(0, 24).forEach((state, m) => {
    const item = legend.appendChild(document.createElement("span"));
    const mark = item.appendChild(document.createElement("span"));
    mark.className = "swatch";
    swatch(mark, m);
    const label = item.appendChild(document.createElement("bdi"));
    label.textContent = state.shows && inLegend ? `${state.label} (${state.shows})` : state.label;
    item.title = label.textContent;
  });
}

// A chart that fills its place, and is drawn again when that place changes its width.
const drawings = [];
function draws(id, chart) {
  const place = document.getElementById(id);
  if (!place) return;
  const draw = () => place.replaceChildren(...[chart(Math.max(260, Math.min(place.clientWidth, 1200)))].flat());
  drawings.push({place, draw, width: place.clientWidth});
  draw();
}
const widths = new ResizeObserver(() => requestAnimationFrame(() => {
  for (const drawing of drawings) {
    if (Math.abs(drawing.place.clientWidth - drawing.width) > 8) {
      drawing.width = drawing.place.clientWidth;
      drawing.draw();
    }
  }
}));
widths.observe(document.querySelector("main"));
