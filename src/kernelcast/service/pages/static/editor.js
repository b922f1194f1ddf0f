// Lines, colours and marks of errors for <textarea>s: the field itself stays what is typed into, on top
// of a painted copy of its text. Colours are classes of Highlight.js.

import hljs from "/assets/highlight.min.js";
import c from "/assets/highlight-c.min.js";

const SPACES = ["kernel", "global", "local", "constant", "private"].flatMap((one) => [one, `__${one}`]);
const TYPES = ["char", "short", "int", "long", "float", "double", "half"].flatMap(
  (one) => ["", "u"].flatMap((sign) => ["", 2, 3, 4, 8, 16].map((lanes) => `${sign}${one}${lanes}`)),
);

function opencl(library) {
  const grammar = c(library);
  // Parts of the grammar share these lists.
  grammar.keywords.keyword.push(...SPACES);
  grammar.keywords.type.push("size_t", ...TYPES);
  return { ...grammar, name: "OpenCL C" };
}

hljs.registerLanguage("opencl", opencl);

export class Editor {
  constructor(field) {
    this.field = field;
    this.box = make("div", "editor");
    this.gutter = make("div", "editor-lines");
    this.body = make("div", "editor-body");
    this.paint = make("pre", "editor-paint");
    this.marks = make("div", "editor-marks");
    for (const one of [this.gutter, this.paint, this.marks]) one.setAttribute("aria-hidden", "true");
    field.before(this.box);
    this.body.append(this.paint, this.marks, field);
    this.box.append(this.gutter, this.body);
    field.addEventListener("input", () => { this.mark([]); this.refresh(); });
    this.refresh();
  }

  set text(value) {
    this.field.value = value;
    this.refresh();
  }

  refresh() {
    const text = this.field.value;
    this.paint.innerHTML = `${hljs.highlight(text, { language: "opencl" }).value}\n`;
    const count = text.split("\n").length;
    if (this.count !== count) {
      this.count = count;
      this.gutter.textContent = Array.from({ length: count }, (_, one) => one + 1).join("\n");
    }
  }

  // Shows errors, each { line, column, message }, beside their lines.
  mark(errors) {
    const lines = this.field.value.split("\n");
    this.marks.replaceChildren(...errors.map(({ line, column, message }) => {
      const row = make("div", "editor-mark");
      row.style.setProperty("--line", line - 1);
      const words = make("span", "editor-message");
      words.textContent = message;
      words.style.setProperty("--column", Math.max((lines[line - 1] || "").length + 2, column));
      row.append(words);
      return row;
    }));
    if (errors.length) {
      const height = parseFloat(getComputedStyle(this.field).lineHeight);
      this.box.scrollLeft = 0;
      this.box.scrollTop = Math.max(0, (errors[0].line - 4) * height);
    }
  }
}

function make(tag, name) {
  const one = document.createElement(tag);
  one.className = name;
  return one;
}
