// A row per argument of the kernel, named as its signature names it; the lines of text below stay what
// is sent, and whoever prefers them writes them.

const ELEMENTS = {
  char: "int8", uchar: "uint8", short: "int16", ushort: "uint16", int: "int32", uint: "uint32",
  long: "int64", ulong: "uint64", half: "float16", float: "float32", double: "float64", size_t: "uint64",
};
const QUALIFIERS = /\b(?:const|volatile|restrict|__restrict|(?:__)?(?:global|local|constant|private))\b/g;
const PARTS = { buffer: ["buffer", "count", "init"], scalar: ["scalar", "value"], local: ["local"] };
const LABELS = { buffer: "elements", count: "count", init: "begins as", scalar: "type", value: "value", local: "bytes" };

// Reads the parameters of a kernel: { name, type, kind, element }.
export function readSignature(source, kernel) {
  const plain = source.replace(/\/\/.*$/gm, "").replace(/\/\*[\s\S]*?\*\//g, "");
  const name = kernel || "\\w+";
  if (!/^[\w\\+]+$/.test(name)) return [];
  const found = plain.match(new RegExp(`\\b(?:__)?kernel\\b[^;{}()]*?(?:__attribute__\\s*\\(\\(.*?\\)\\)\\s*)*void\\s+${name}\\s*\\(([^)]*)\\)`));
  if (!found || !found[1].trim() || found[1].trim() === "void") return [];
  return found[1].split(",").map((text) => {
    const words = text.trim().replace(/\[\s*\]$/, " *");
    const own = words.match(/(\w+)\s*\*?\s*$/);
    const isPointer = words.includes("*");
    const bare = words.slice(0, own ? own.index : undefined).replace(QUALIFIERS, " ").replace(/[*\s]+/g, " ").trim();
    const lanes = bare.match(/^([a-z_]+?)(2|3|4|8|16)?$/) || [];
    const element = (ELEMENTS[lanes[1]] || "float32") + (lanes[2] ? `x${lanes[2]}` : "");
    const kind = !isPointer ? "scalar" : /\b(?:__)?local\b/.test(words) ? "local" : "buffer";
    return { name: own ? own[1] : "?", type: text.trim().replace(/\s+/g, " "), kind, element };
  });
}

// Reads a line into its parts, in order: { buffer: "float32", count: "\"{N}\"" }.
function readLine(line) {
  const parts = {};
  let depth = 0, quote = "", from = 0;
  const cut = (to) => {
    const [, key, value] = line.slice(from, to).match(/^\s*([\w]+)\s*:\s*([\s\S]*?)\s*$/) || [];
    if (key) parts[key] = value;
    from = to + 1;
  };
  for (let at = 0; at < line.length; at += 1) {
    const one = line[at];
    if (quote) quote = one === quote ? "" : quote;
    else if (one === '"' || one === "'") quote = one;
    else if ("[{".includes(one)) depth += 1;
    else if ("]}".includes(one)) depth -= 1;
    else if (one === "," && depth === 0) cut(at);
  }
  cut(line.length);
  return parts;
}

const unquote = (text = "") => text.replace(/^(["'])([\s\S]*)\1$/, "$2");
const requote = (text) => (/[{}[\],:#"'&*!|>%@`]/.test(text) ? JSON.stringify(text) : text);

function propose(parameter, items) {
  if (parameter.kind === "local") return { local: "4096" };
  if (parameter.kind === "scalar") {
    return { scalar: parameter.element, value: parameter.element.startsWith("float") ? "1.0" : items };
  }
  return { buffer: parameter.element, count: items, init: "uniform" };
}

export class ArgumentRows {
  constructor(place, field, ask) {
    this.place = place;
    this.field = field;
    this.ask = ask; // gives { code, kernel, items }
    field.addEventListener("input", () => this.refresh());
  }

  refresh() {
    const { code, kernel, items } = this.ask();
    const parameters = readSignature(code, kernel);
    const lines = this.field.value.split("\n").filter((line) => line.trim());
    const isKept = this.place.contains(document.activeElement);
    const kinds = parameters.map((one) => `${one.type}`).join();
    if (isKept && this.kinds === kinds) return;
    this.kinds = kinds;
    this.place.replaceChildren();
    if (!parameters.length) return;
    const table = document.createElement("table");
    table.className = "argument-rows";
    const body = table.createTBody();
    this.rows = parameters.map((parameter, number) => {
      const held = lines[number] === undefined ? propose(parameter, items) : readLine(lines[number]);
      const kind = ["buffer", "scalar", "local"].find((one) => one in held) || parameter.kind;
      return this.addRow(body, parameter, kind, held, number);
    });
    this.place.append(table);
    if (lines.length > parameters.length) {
      const told = document.createElement("p");
      told.className = "warn";
      told.textContent = `There are ${lines.length} lines for ${parameters.length} arguments.`;
      this.place.append(told);
    }
    if (lines.length < parameters.length && !lines.length) this.write();
  }

  addRow(body, parameter, kind, held, number) {
    const row = body.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = parameter.name;
    head.title = parameter.type;
    row.append(head);
    const wanted = PARTS[kind];
    const inputs = {};
    for (const name of wanted) {
      const cell = row.insertCell();
      const input = document.createElement("input");
      input.type = "text";
      input.className = "mono";
      input.value = unquote(held[name]);
      input.spellcheck = false;
      input.setAttribute("aria-label", `${parameter.name}: ${LABELS[name]}`);
      input.placeholder = name === "init" ? "zeros" : LABELS[name];
      if (name === "init") input.setAttribute("list", "inits");
      input.addEventListener("input", () => this.write());
      cell.append(input);
      inputs[name] = input;
    }
    for (let more = wanted.length; more < 3; more += 1) row.insertCell();
    const rest = Object.fromEntries(Object.entries(held).filter(([name]) => !wanted.includes(name)));
    return { inputs, rest, number };
  }

  write() {
    const lines = this.rows.map(({ inputs, rest }) => [
      ...Object.entries(inputs).filter(([, input]) => input.value.trim()).map(([name, input]) => `${name}: ${requote(input.value.trim())}`),
      ...Object.entries(rest).map(([name, text]) => `${name}: ${text}`),
    ].join(", "));
    this.field.value = lines.join("\n");
  }
}
