// Axes of charts: their ranges, where their ticks are and what these say.

import { write } from "/assets/numbers.js";

// A logarithmic axis of less than this factor has room for few words: round values, evenly apart.
const NARROW = 5;
export const NARROW_PIXELS = 500;
// Intervals of few points belong into the picture; those of many would leave no room for the points.
const FEW = 60;
const MARGIN = 0.03;
const DAY_S = 86400;
const MOMENT_STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  DAY_S, 2 * DAY_S, 7 * DAY_S, 14 * DAY_S, 30 * DAY_S, 91 * DAY_S, 365 * DAY_S,
];

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Has an axis reach to the ends of intervals, which the library does not know.
function holdIntervals(told, side) {
  if (side !== (told.y.names.length ? "x" : "y")) return null;
  const ends = told.series.flatMap((one) => one.points.flatMap(([, , low, high]) => [low, high]))
    .filter((one) => one != null);
  if (!ends.length || ends.length > 2 * FEW) return null;
  return { suggestedMin: Math.min(...ends), suggestedMax: Math.max(...ends) };
}

// Ends of an axis of numbers, with a margin, so that no point lies on the frame; none if the library's will do.
function rangeOf(told, side) {
  const axis = told[side];
  if (axis.names.length) return null;
  if (!(axis.is_log || axis.unit === "moment")) return holdIntervals(told, side);
  const sides = told.isSquare ? ["x", "y"] : [side];
  const count = told.series.reduce((sum, one) => sum + one.points.length, 0);
  const values = told.series.flatMap((one) => one.points.flatMap(([x, y, low, high]) => [
    ...sides.map((each) => (each === "x" ? x : y)),
    ...(sides.includes("y") && count <= FEW ? [low, high] : []),
  ])).filter((one) => one != null && (!axis.is_log || one > 0));
  if (!values.length) return null;
  const least = values.reduce((one, other) => Math.min(one, other));
  const most = values.reduce((one, other) => Math.max(one, other));
  if (axis.is_log) {
    const margin = Math.max((most / least) ** MARGIN, 1.02);
    return { min: least / margin, max: most * margin };
  }
  const margin = Math.max((most - least) * MARGIN, 1);
  return { min: least - margin, max: most + margin };
}

export function makeAxis(told, side, isX) {
  const axis = told[side];
  const scale = {
    type: axis.is_log ? "logarithmic" : "linear",
    title: { display: Boolean(axis.title), text: axis.title, color: colour("--ink") },
    grid: { color: colour("--line") },
    border: { color: colour("--soft") },
    ticks: { color: colour("--soft"), maxRotation: isX && axis.names.length ? 60 : 0 },
    ...rangeOf(told, side),
  };
  if (axis.names.length) return Object.assign(scale, nameTicks(axis, scale, isX));
  if (axis.unit === "moment") return Object.assign(scale, momentTicks(axis, scale));
  if (axis.is_log) {
    scale.afterBuildTicks = (one) => {
      if (axis.unit === "B") one.ticks = powersOfTwo(one.min, one.max);
      else if (one.max / one.min < NARROW) one.ticks = roundValues(one.min, one.max, isCramped(one) ? 3 : 5);
    };
  }
  scale.ticks.callback = function callback(value, place, ticks) {
    if (axis.is_log && axis.unit !== "B" && !isDecade(value, ticks, isCramped(this))) return null;
    const told = write(value, axis.unit);
    // Close values may read alike.
    return place && write(ticks[place - 1].value, axis.unit) === told ? null : told;
  };
  if (axis.unit === "share" && !axis.is_log) scale.beginAtZero = true;
  return scale;
}

function nameTicks(axis, scale, isX) {
  return {
    min: -0.5, max: axis.names.length - 0.5, grid: { display: false }, reverse: !isX,
    afterBuildTicks: (one) => { one.ticks = axis.names.map((_, value) => ({ value })); },
    ticks: {
      ...scale.ticks, autoSkip: axis.names.length > 40,
      callback: (value) => {
        const name = axis.names[value] ?? "";
        return name.length > 24 ? `${name.slice(0, 23)}\u2026` : name;
      },
    },
  };
}

// Ticks at round times of the reader's day; the day itself stands once, in the title.
function momentTicks(axis, scale) {
  const stepOf = (one) => MOMENT_STEPS_S.find((step) => (one.max - one.min) / step <= 6) ?? MOMENT_STEPS_S.at(-1);
  return {
    afterBuildTicks: (one) => {
      const step = stepOf(one);
      const shift = new Date(one.min * 1000).getTimezoneOffset() * 60;
      const found = [];
      for (let value = Math.ceil((one.min - shift) / step) * step + shift; value <= one.max; value += step) {
        found.push({ value });
      }
      one.ticks = found;
      const first = new Date(one.min * 1000).toLocaleDateString([], { dateStyle: "medium" });
      one.options.title.text = step < DAY_S ? `${axis.title}, ${first}` : axis.title;
    },
    ticks: {
      ...scale.ticks,
      callback(value) {
        const when = new Date(value * 1000), step = stepOf(this);
        const isMidnight = when.getHours() + when.getMinutes() + when.getSeconds() === 0;
        if (step < DAY_S && !isMidnight) {
          return when.toLocaleTimeString([], { timeStyle: step < 60 ? "medium" : "short" });
        }
        const year = this.max - this.min > 300 * DAY_S ? { year: "numeric" } : {};
        return when.toLocaleDateString([], { month: "short", day: "numeric", ...year });
      },
    },
  };
}

// Whether words stand side by side in little room.
function isCramped(scale) {
  return scale.isHorizontal() && scale.chart.width < NARROW_PIXELS;
}

function roundValues(least, most, count) {
  const raw = (most - least) / count;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * [1, 2, 5, 10].find((one) => one * size >= raw);
  const found = [];
  for (let number = Math.ceil(least / step); number * step <= most; number++) found.push({ value: number * step });
  return found;
}

function powersOfTwo(least, most) {
  const first = Math.ceil(Math.log2(least)), last = Math.floor(Math.log2(most));
  const step = Math.max(1, Math.ceil((last - first + 1) / 8));
  const found = [];
  for (let power = first; power <= last; power += step) found.push({ value: 2 ** power });
  return found;
}

// Powers of ten have words; where there are few, 2 and 5 of them too.
function isDecade(value, ticks, isCrampedHere) {
  const lead = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
  const range = ticks.at(-1).value / ticks[0].value;
  return range < NARROW || Math.abs(lead - 1) < 1e-6 || (range < (isCrampedHere ? 30 : 300) && [2, 5].some((one) => Math.abs(lead - one) < 1e-6));
}
