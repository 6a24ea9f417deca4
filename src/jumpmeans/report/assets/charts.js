"use strict";
// The fit, the moves between states, and their prevalence.

draws("history", () => report.overview.history.terms.map((term) => {
  const points = d3.zip(report.overview.history.iterations, term.values).map(([i, y]) => ({i, y}));
  const [first, last] = [points[0], points[points.length - 1]];
  const figure = document.createElement("figure");
  const caption = figure.appendChild(document.createElement("figcaption"));
  caption.textContent = `${term.name}: ${number(last.y)}`;
  figure.appendChild(Plot.plot({
    width: 216, height: 122, marginLeft: 52, marginRight: 8, marginTop: 8, marginBottom: 36, style: {...FONT, fontSize: "11px"},
    ariaLabel: `${term.name} after each iteration`,
    ariaDescription: `from ${number(first.y)} after the first to ${number(last.y)} after iteration ${last.i}`,
    x: {label: "iteration", ticks: d3.ticks(first.i, Math.max(last.i, first.i + 1), 4).filter(Number.isInteger), tickFormat: "d"},
    y: {label: null, ticks: 3, nice: true, zero: false, tickFormat: (y) => number(y)},
    marks: [
      Plot.lineY(points, {x: "i", y: "y", stroke: "currentColor", strokeWidth: 1.5}),
      Plot.dot(points.length > 40 ? [last] : points, {x: "i", y: "y", r: 2, fill: "currentColor"}),
      Plot.tip(points, Plot.pointerX({x: "i", y: "y", title: (d) => `${d.i}: ${number(d.y)}`, maxRadius: 1e4})),
    ],
  }));
  return figure;
}));

draws("diagram", (width) => {
  const most = 12;
  if (M > most) {
    const note = document.createElement("p");
    note.textContent = `A diagram of ${M} states would not be legible; it is drawn for ${most} or fewer.`;
    return note;
  }
  const margin = Math.min(110, width / 5);
  const radius = (m) => 9 + 17 * Math.sqrt(report.states[m].share);
  const angle = (m) => (M === 2 ? Math.PI * (1 - m) : Math.PI / 2 - (2 * Math.PI * m) / M);
  const at = report.states.map((_, m) => (M === 1 ? [0, 0] : [Math.cos(angle(m)), Math.sin(angle(m))]));
  const moves = [];
  report.moves.probs.forEach((row, a) => row.forEach((p, b) => {
    if (a !== b && p >= 0.01) moves.push({a, b, p});
  }));
  const BEND = 26;
  const scale = Math.min(160, (width - 2 * margin) / 2);
  const [low, high] = M <= 2 ? [-0.3, 0.3] : d3.extent(at, ([, y]) => y);
  // where the arc of a move is farthest from its chord
  const middle = (d) => {
    const [[x1, y1], [x2, y2]] = [at[d.a], at[d.b]];
    const sag = 0.5 * Math.tan((BEND * Math.PI) / 360);
    return [(x1 + x2) / 2 - (y2 - y1) * sag, (y1 + y2) / 2 + (x2 - x1) * sag];
  };
  const labelled = moves.filter((d) => d.p >= 0.05 && moves.length <= 20);
  const side = (m) => (M === 1 || Math.abs(at[m][0]) < 0.3 ? "middle" : at[m][0] > 0 ? "start" : "end");
  return Plot.plot({
    width: 2 * (margin + scale), height: 100 + scale * (high - low), margin, marginTop: 50, marginBottom: 50, style: FONT, axis: null,
    ariaLabel: "Diagram of the moves between states",
    ariaDescription: moves.map((d) => `${stateName(d.a)} to ${stateName(d.b)} ${percent(d.p)}`).slice(0, 40).join("; "),
    x: {domain: [-1, 1]}, y: {domain: [low, high]},
    marks: [
      moves.map((d) => Plot.arrow([d], {
        x1: at[d.a][0], y1: at[d.a][1], x2: at[d.b][0], y2: at[d.b][1], bend: BEND, strokeWidth: 0.8 + 4.5 * d.p,
        headLength: d.p > 0.3 ? 5 : 9, insetStart: radius(d.a) + 2, insetEnd: radius(d.b) + 3, stroke: "currentColor",
        strokeOpacity: 0.35 + 0.5 * d.p,
      })),
      Plot.dot(d3.range(M), {
        x: (m) => at[m][0], y: (m) => at[m][1], r: radius, fill, stroke: "currentColor", strokeOpacity: 0.5,
        symbol: "circle",
      }),
      d3.range(M).map((m) => Plot.text([m], {
        x: at[m][0], y: at[m][1], text: (s) => stateName(s, 16), textAnchor: side(m), fontWeight: 600,
        dx: side(m) === "start" ? radius(m) + 7 : side(m) === "end" ? -radius(m) - 7 : 0,
        dy: side(m) !== "middle" ? 0 : (at[m][1] >= 0 ? -1 : 1) * (radius(m) + 10),
        title: (s) => report.states[s].label,
      })),
      Plot.text(labelled, {
        x: (d) => middle(d)[0], y: (d) => middle(d)[1], text: (d) => percent(d.p), fill: "currentColor",
        stroke: "var(--page)", strokeWidth: 8, strokeLinejoin: "round",
      }),
    ],
    r: {type: "identity"},
  });
});

draws("shares", (width) => {
  const {times, shares, expected, n} = report.prevalence;
  const stack = (rows) => rows.map((row) => d3.cumsum(row));
  const tops = stack(shares);
  const edges = stack(expected);
  const areas = d3.range(M).map((m) => times.map((t, k) => ({t, m, y1: m ? tops[k][m - 1] : 0, y2: tops[k][m], n: n[k]})));
  const dashed = d3.range(M - 1).map((m) => times.map((t, k) => ({t, y: edges[k][m]})));
  // where few are left, a veil: what they do is no longer what all do
  const few = times.findIndex((_, k) => n[k] < 0.05 * d3.max(n));
  const veil = few > 0 ? [{from: times[few - 1], to: times[times.length - 1]}] : [];
  const label = `time since the start of a sequence${report.time.unit ? ` (${report.time.unit})` : ""}`;
  const last = shares.length - 1;
  const list = (k) => d3.range(M).map((m) => `${stateName(m)} ${percent(shares[k][m])}`).slice(0, 40).join(", ");
  const seen = times.map((t, k) => ({t, k}));
  const tip = (d) => [
    `${label.split(" ")[0]} ${number(d.t)}, ${plural(Math.round(n[d.k]), "sequence")}`,
    ...d3.range(M).filter((m) => M <= 12 || shares[d.k][m] >= 0.02)
      .map((m) => `${stateName(m)}: ${percent(shares[d.k][m])}, expected ${percent(expected[d.k][m])}`),
  ].join("\n");
  const common = {width, marginLeft: 48, marginRight: 12, style: FONT, x: {label: null, domain: d3.extent(times)}};
  return [
    Plot.plot({
      ...common, height: 300, ariaLabel: "Share of sequences in each state over time",
      ariaDescription: `at the start ${list(0)}; at ${number(times[last])} ${list(last)}`,
      y: {label: "share of sequences", domain: [0, 1], tickFormat: "%", percent: false},
      marks: [
        areas.map((points, m) => Plot.areaY(points, {x: "t", y1: "y1", y2: "y2", fill: fill(m), stroke: "var(--page)", strokeWidth: 0.6})),
        dashed.map((points) => [
          Plot.lineY(points, {x: "t", y: "y", stroke: "var(--page)", strokeWidth: 3.2, strokeOpacity: 0.6}),
          Plot.lineY(points, {x: "t", y: "y", stroke: "var(--text)", strokeWidth: 1.6, strokeDasharray: "5,4"}),
        ]),
        Plot.rect(veil, {x1: "from", x2: "to", y1: 0, y2: 1, fill: "var(--page)", fillOpacity: 0.65}),
        Plot.ruleX(seen, Plot.pointerX({x: "t", stroke: "var(--text)", maxRadius: 1e4})),
        Plot.tip(seen, Plot.pointerX({x: "t", y: () => 0.5, title: tip, maxRadius: 1e4})),
      ],
    }),
    Plot.plot({
      ...common, height: 104, marginTop: 24, marginBottom: 34, x: {...common.x, label},
      ariaLabel: "Number of sequences under observation over time",
      ariaDescription: `${number(n[0])} at the start, ${number(n[last])} at ${number(times[last])}`,
      y: {label: "sequences", domain: [0, d3.max(n) || 1], ticks: 2},
      marks: [Plot.areaY(seen, {x: "t", y: (d) => n[d.k], fill: "currentColor", fillOpacity: 0.25, curve: "step-after"}), Plot.ruleY([0])],
    }),
  ];
});
