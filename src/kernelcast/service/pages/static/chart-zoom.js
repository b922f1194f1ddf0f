// A closer look at a chart: by dragging a rectangle, by the wheel once the chart has the focus (or with Ctrl),
// by the keys + and -, moved by Shift and arrows; 0 or the button shows all again.

import { announce } from "/assets/frame.js";

const STEP = 1.4;
const SHIFT_PIXELS = 60;

// Charts of bars are there to be compared from their zero.
export function canZoom(told) {
  return !told.series.some((one) => one.kind === "bars");
}

export function makeZoom(told, canvas, hue) {
  if (!canZoom(told)) return {};
  const mode = ["x", "y"].filter((side) => !told[side].names.length).join("");
  const whole = { min: "original", max: "original" };
  return {
    limits: { x: whole, y: whole },
    pan: { enabled: false, mode },
    zoom: {
      mode,
      drag: { enabled: true, threshold: 8, backgroundColor: `${hue}33`, borderColor: hue, borderWidth: 1 },
      wheel: { enabled: true, speed: 0.15 },
      // A page that is scrolled past a chart must not stop at it.
      onZoomStart: ({ event }) => event.type !== "wheel" || event.ctrlKey || document.activeElement === canvas,
      onZoom: ({ chart }) => tell(chart),
    },
  };
}

function tell(chart) {
  const button = chart.canvas.parentElement.querySelector("[data-show-all]");
  if (button) button.hidden = !chart.isZoomedOrPanned();
}

function showAll(chart) {
  chart.resetZoom();
  tell(chart);
  announce("All is shown");
}

// Adds the button that shows all again, and the keys.
export function listen(place, canvas, chartOf) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small show-all";
  button.textContent = "Show all";
  button.dataset.showAll = "";
  button.hidden = true;
  button.addEventListener("click", () => { showAll(chartOf()); canvas.focus(); });
  place.append(button);
  canvas.addEventListener("keydown", (event) => {
    const chart = chartOf();
    const [across, upward] = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] || [];
    if (event.shiftKey && across !== undefined) chart.pan({ x: across * SHIFT_PIXELS, y: upward * SHIFT_PIXELS }, undefined, "none");
    else if (event.key === "+" || event.key === "=") { chart.zoom(STEP); announce("Closer"); }
    else if (event.key === "-") { chart.zoom(1 / STEP); announce("Farther"); }
    else if (event.key === "0") showAll(chart);
    else return;
    tell(chart);
    event.preventDefault();
    event.stopImmediatePropagation();
  });
}
