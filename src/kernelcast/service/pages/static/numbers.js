// Numbers as the pages write them.

const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "\u00b5s"], [1e-9, "ns"], [1e-12, "ps"]];
const RATES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];

function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value.toLocaleString("en");
  if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace("+", "");
  return size >= 100 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

function scaled(value, scales, ending = "") {
  const [scale, letter] = scales.find(([one]) => Math.abs(value) >= one * 0.9995) || scales.at(-1);
  return `${digits(value / scale)} ${letter}${ending}`;
}

export function write(value, unit) {
  if (value == null) return "";
  switch (unit) {
    case "s": return value === 0 ? "0" : scaled(value, TIMES);
    case "B": return scaled(value, SIZES);
    case "B/s": case "op/s": return scaled(value, RATES, unit);
    case "share": return `${digits(value * 100)} %`;
    case "points": return digits(value);
    case "moment": return new Date(value * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
    default: return digits(value);
  }
}

export function writePair(told, point) {
  const of = (axis, value) => (axis.names.length ? axis.names[Math.round(value)] ?? "" : write(value, axis.unit));
  return { x: of(told.x, point.x), y: of(told.y, point.y) };
}
