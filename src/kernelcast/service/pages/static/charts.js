// Draws <div class="chart" data-chart="ADDRESS"> or data-content="JSON" by Chart.js, which is loaded
// where there is a chart. What a point says is read out when arrow keys reach it; Enter follows it.

import { NARROW_PIXELS, colour, makeAxis } from "/assets/chart-axes.js";
import { canZoom, listen, makeZoom } from "/assets/chart-zoom.js";
import { announce } from "/assets/frame.js";
import { write, writePair } from "/assets/numbers.js";

const SERIES = ["--chart-1", "--chart-2", "--chart-3", "--chart-4", "--chart-5", "--chart-6"];
const MANY = 300;
const drawn = new Map();
let library = null;

function fade(hex, share) {
  return hex + Math.round(share * 255).toString(16).padStart(2, "0");
}

async function loadLibrary() {
  await import("/assets/chart.min.js");
  await import("/assets/chart-zoom.min.js"); // looks for the library when it is loaded
  return globalThis.Chart;
}

async function open(place) {
  const address = place.dataset.chart;
  try {
    library ??= loadLibrary();
    const [Chart, told] = await Promise.all([
      library, address ? fetch(address).then((answer) => answer.json()) : JSON.parse(place.dataset.content),
    ]);
    draw(Chart, place, told);
  } catch (error) {
    // The picture that others see says as much.
    const kept = place.parentElement.querySelector("noscript");
    if (kept) place.innerHTML = kept.textContent;
    console.error(error);
  }
}

function read(point) {
  const [x, y, low, high, label, link] = point;
  return { x, y, low, high, label, link };
}

// Intervals of points, drawn by hand: the library has none.
const intervals = {
  id: "intervals",
  // Behind points, which say more than their intervals; in front of bars, which would cover them.
  beforeDatasetDraw(chart, args) { if (args.meta.type !== "bar") drawIntervals(chart, args); },
  afterDatasetDraw(chart, args) { if (args.meta.type === "bar") drawIntervals(chart, args); },
};

function drawIntervals(chart, args) {
  const set = chart.data.datasets[args.index];
  if (!set.hasIntervals || args.meta.hidden) return;
  const { ctx, scales, chartArea } = chart;
  const along = set.isUpright ? scales.y : scales.x;
  ctx.save();
  ctx.beginPath();
  ctx.rect(chartArea.left, chartArea.top, chartArea.width, chartArea.height);
  ctx.clip();
  ctx.strokeStyle = set.intervalColour;
  ctx.lineWidth = set.data.length > 60 ? 0.8 : 1.6;
  ctx.beginPath();
  args.meta.data.forEach((element, place) => {
    const { low, high } = set.data[place];
    if (low == null || high == null) return;
    const from = along.getPixelForValue(low), to = along.getPixelForValue(high);
    if (set.isUpright) { ctx.moveTo(element.x, from); ctx.lineTo(element.x, to); }
    else { ctx.moveTo(from, element.y); ctx.lineTo(to, element.y); }
  });
  ctx.stroke();
  ctx.restore();
}

function makeSet(one, number, told) {
  const hue = colour(one.kind === "guide" ? "--soft" : SERIES[number % SERIES.length]);
  const points = one.points.map(read);
  const isLine = one.kind === "line" || one.kind === "guide";
  const isMany = points.length > MANY;
  const turned = told.isUpright ? points : points.map((p) => ({ ...p, x: p.y, y: p.x }));
  return {
    label: one.name, data: turned, type: one.kind === "bars" ? "bar" : "scatter",
    showLine: isLine, isGuide: one.kind === "guide", isUpright: told.isUpright,
    hasIntervals: points.some((p) => p.low != null), order: one.kind === "bars" ? 2 : 1,
    intervalColour: one.kind === "bars" ? colour("--ink") : fade(hue, isMany ? 0.25 : 0.6),
    borderColor: hue, borderWidth: one.kind === "guide" ? 1 : 2,
    borderDash: one.kind === "guide" ? [5, 4] : [],
    backgroundColor: one.kind === "bars" ? fade(hue, 0.75) : fade(hue, isMany ? 0.5 : 0.8),
    pointRadius: one.kind === "guide" || (isLine && points.length > 40) ? 0 : isLine ? 3 : isMany ? 2.5 : 4,
    pointHoverRadius: one.kind === "guide" ? 0 : 7, pointBorderWidth: one.kind === "guide" ? 1.5 : 0,
    pointHitRadius: one.kind === "guide" ? 0 : 6,
    pointStyle: one.kind === "guide" ? "line" : ["circle", "rect", "triangle", "rectRot", "rectRounded"][number % 5],
    maxBarThickness: 26,
  };
}

function say(told, name, raw) {
  const point = told.isUpright ? raw : { ...raw, x: raw.y, y: raw.x };
  const { x, y } = writePair(told, point);
  const words = [name, point.label, x && `${told.x.title || "x"}: ${x}`, `${told.y.title || "y"}: ${y}`];
  if (point.low != null) words.push(`${write(point.low, told.y.unit)} to ${write(point.high, told.y.unit)}`);
  return words.filter(Boolean);
}

// On a telephone each name of the legend takes a line, which the picture must not pay for.
function heightBelowLegend(place, told) {
  const lines = new Set(told.series.map((one) => one.name)).size;
  if (place.clientWidth >= NARROW_PIXELS || lines < 4) return "";
  return `${(told.isSquare ? place.clientWidth : 280) + 18 * lines}px`;
}

function draw(Chart, place, told) {
  drawn.get(place)?.destroy();
  let canvas = place.querySelector("canvas");
  if (!canvas) {
    canvas = document.createElement("canvas");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${place.dataset.words} Arrow keys go from point to point${canZoom(told) ? "; plus and minus zoom, 0 shows all" : ""}.`);
    place.replaceChildren(canvas);
    place.after(makeTable(told, place.dataset.words));
    place.classList.toggle("square", Boolean(told.isSquare));
    if (canZoom(told)) listen(place, canvas, () => drawn.get(place));
    walk(canvas, place, told);
  }
  const values = makeAxis(told, "y", !told.isUpright);
  // Intervals of bars belong into the picture; those of points may reach beyond it.
  const ends = told.series.filter((one) => one.kind === "bars").flatMap((one) => one.points.map(read))
    .flatMap((point) => [point.low, point.high]).filter((end) => end != null);
  if (ends.length) Object.assign(values, { suggestedMin: Math.min(...ends), suggestedMax: Math.max(...ends) });
  const bars = told.isUpright ? 0 : Math.max(told.x.names.length, 1);
  place.style.setProperty("height", bars ? `${Math.min(110 + 24 * bars, 900)}px` : heightBelowLegend(place, told));
  const follow = (event, elements, chart) => {
    const link = elements.length && chart.data.datasets[elements[0].datasetIndex].data[elements[0].index].link;
    if (link) window.location.assign(link);
  };
  const chart = new Chart(canvas, {
    data: { datasets: told.series.map((one, number) => makeSet(one, number, told)) },
    plugins: [intervals],
    options: {
      animation: false, maintainAspectRatio: false, indexAxis: told.isUpright ? "x" : "y",
      interaction: { mode: "nearest", intersect: true },
      onClick: follow,
      onHover(event, elements) {
        const found = elements[0];
        const link = found && chart.data.datasets[found.datasetIndex].data[found.index].link;
        canvas.style.cursor = link ? "pointer" : "";
      },
      scales: told.isUpright
        ? { x: makeAxis(told, "x", true), y: values }
        : { x: values, y: makeAxis(told, "x", false) },
      plugins: {
        zoom: makeZoom(told, canvas, colour("--mark")),
        legend: {
          display: told.series.length > 1,
          labels: {
            color: colour("--ink"), usePointStyle: true, boxHeight: 7,
            filter: (item, data) => data.datasets.findIndex((set) => set.label === item.text) === item.datasetIndex,
          },
        },
        tooltip: {
          filter: (item) => !item.dataset.isGuide,
          callbacks: { title: () => "", label: (item) => say(told, item.dataset.label, item.raw) },
        },
      },
    },
  });
  drawn.set(place, chart);
  place.dataset.isDrawn = "yes";
}

// Arrow keys go through the points from left to right; Escape lets go, Enter follows a link.
function walk(canvas, place, told) {
  let at = -1;
  canvas.addEventListener("keydown", (event) => {
    const chart = drawn.get(place);
    const points = chart.data.datasets.flatMap((set, series) => (
      set.isGuide || !chart.isDatasetVisible(series) ? [] : set.data.map((point, index) => ({ point, series, index }))
    ));
    points.sort((one, other) => (told.isUpright ? one.point.x - other.point.x : one.point.y - other.point.y));
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && points[at]?.point.link) window.location.assign(points[at].point.link);
    if (event.key === "Home") at = 0;
    else if (event.key === "End") at = points.length - 1;
    else if (step) at = Math.min(Math.max(at + step, 0), points.length - 1);
    else if (event.key === "Escape") at = -1;
    else return;
    event.preventDefault();
    const chosen = points[at];
    const active = chosen ? [{ datasetIndex: chosen.series, index: chosen.index }] : [];
    chart.setActiveElements(active);
    chart.tooltip.setActiveElements(active, { x: 0, y: 0 });
    chart.update("none");
    if (chosen) announce(say(told, chart.data.datasets[chosen.series].label, chosen.point).join(", "));
  });
}

// The numbers for those who do not see the chart; made when it is opened.
function makeTable(told, words) {
  const box = document.createElement("details");
  box.className = "numbers";
  const title = document.createElement("summary");
  title.textContent = "Numbers";
  box.append(title);
  box.addEventListener("toggle", () => {
    if (box.querySelector("table")) return;
    const wide = document.createElement("div");
    wide.className = "wide";
    wide.tabIndex = 0;
    wide.setAttribute("role", "region");
    wide.setAttribute("aria-label", `Numbers: ${words}`);
    const table = document.createElement("table");
    addRow(table.createTHead(), "th", ["series", "name", told.x.title || "x", told.y.title || "y", "from", "to"]);
    const body = table.createTBody();
    for (const one of told.series.filter((each) => each.kind !== "guide")) {
      for (const point of one.points.slice(0, 1000).map(read)) {
        const { x, y } = writePair(told, point);
        const ends = [point.low, point.high].map((end) => (end == null ? "" : write(end, told.y.unit)));
        addRow(body, "td", [one.name, point.label || "", x, y, ...ends]);
      }
    }
    wide.append(table);
    box.append(wide);
  });
  return box;
}

function addRow(part, kind, texts) {
  const row = part.insertRow();
  for (const text of texts) {
    const cell = document.createElement(kind);
    if (kind === "th") cell.scope = "col";
    cell.textContent = text;
    row.append(cell);
  }
}

export function openCharts(within = document) {
  for (const [place, chart] of drawn) {
    if (!place.isConnected) { chart.destroy(); drawn.delete(place); }
  }
  for (const place of within.querySelectorAll(".chart:not([data-is-drawn])")) {
    // A chart in a part that is hidden has no size yet.
    if (!place.closest("[hidden]")) open(place);
  }
}

function redraw() {
  for (const place of drawn.keys()) {
    delete place.dataset.isDrawn;
    open(place);
  }
}

openCharts();
document.addEventListener("shown", (event) => openCharts(event.target));
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
