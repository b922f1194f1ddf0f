// The Lab: the source with lines and colours, a row per argument, tabs of answers, errors at their
// lines, and the address of what was asked.

import { announce, placeFieldErrors, send } from "/assets/frame.js";
import { ArgumentRows } from "/assets/arguments.js";
import { Editor } from "/assets/editor.js";
import { makeTabs } from "/assets/tabs.js";

const form = document.getElementById("lab-form");
const code = document.getElementById("code");
const kernel = document.getElementById("kernel");
const KERNEL = /\b(?:__)?kernel\b[^;{}()]*?(?:__attribute__\s*\(\(.*?\)\)\s*)*void\s+(\w+)/g;
const ERROR = /^line (\d+): (.*)\n.*\n( *)\^$/gm;
const TABS = { "lab-estimate": "tab-estimate", "lab-source": "tab-source", "lab-model": "tab-limiters",
  "lab-local-sizes": "tab-local-sizes", "lab-sizes": "tab-sizes" };
const value = (name) => document.getElementById(name).value;

function fillList(id, names) {
  document.getElementById(id).replaceChildren(...names.map((name) => {
    const option = document.createElement("option");
    option.value = name;
    return option;
  }));
}

function listNames() {
  fillList("kernel-names", [...new Set([...code.value.matchAll(KERNEL)].map((match) => match[1]))]);
  fillList("varied-names", [...value("parameters").matchAll(/([A-Za-z_]\w*)\s*=/g)].map((match) => match[1]));
}

const editor = new Editor(code);
const rows = new ArgumentRows(
  document.getElementById("argument-rows"), document.getElementById("args"),
  () => ({ code: code.value, kernel: kernel.value.trim(), items: value("global_size").replaceAll(",", " *") || "1048576" }),
);
const openTab = makeTabs(document.getElementById("lab-result"));
document.getElementById("args-text").open = false;

let pause = 0;
function refreshRows() {
  clearTimeout(pause);
  pause = setTimeout(() => { rows.refresh(); listNames(); }, 300);
}

function showErrors() {
  const place = document.getElementById("code-errors");
  const errors = [...place.textContent.matchAll(ERROR)].map(([, line, message, blanks]) => ({
    line: Number(line), message, column: blanks.length + 1,
  }));
  editor.mark(errors);
  // Told once: at the line where there is one, else below the source.
  place.classList.toggle("at-lines", errors.length > 0);
  if (document.getElementById("args-errors").childElementCount) document.getElementById("args-text").open = true;
}

async function fillIn(event) {
  if (event.submitter?.id !== "fill-in") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  announce("Reading the source");
  event.submitter.disabled = true;
  try {
    const answer = await send(event.submitter.formAction, form, event.submitter);
    if ((answer.headers.get("content-type") || "").startsWith("application/json") && answer.ok) {
      const held = await answer.json();
      for (const [name, text] of Object.entries(held)) document.getElementById(name).value = text;
      placeFieldErrors(form, document.createElement("div"));
      rows.refresh();
      announce("Arguments are filled in");
      (document.querySelector("#argument-rows input") || document.getElementById("args")).focus();
    } else {
      const parts = document.createElement("div");
      parts.innerHTML = await answer.text();
      placeFieldErrors(form, parts)?.focus();
      announce("That did not work");
    }
    showErrors();
  } catch (error) {
    announce(`The service cannot be reached (${error.message}).`);
  }
  event.submitter.disabled = false;
}

// Parts of an answer go to the tabs that they are of.
function deal(target) {
  for (const part of target.querySelectorAll("[data-for]")) {
    document.getElementById(part.dataset.for).replaceChildren(...part.childNodes);
    part.remove();
  }
  const shared = target.querySelector("[data-share]");
  if (shared) history.replaceState(null, "", shared.dataset.share);
}

async function copy(event) {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  const from = document.getElementById(button.dataset.copyFrom);
  const text = from ? from.textContent : new URL(button.dataset.copy, window.location).href;
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied");
    button.dataset.isCopied = "yes";
  } catch {
    // Without a secure connection browsers let nobody copy; what is marked can be copied by hand.
    if (from) window.getSelection().selectAllChildren(from);
    announce("Marked, to be copied by hand");
  }
}

form.addEventListener("submit", fillIn, { capture: true });
form.addEventListener("click", copy);
form.addEventListener("submit", (event) => {
  const id = event.submitter?.dataset.into || form.dataset.into;
  if (TABS[id] && event.submitter?.id !== "fill-in") openTab(TABS[id]);
});
form.addEventListener("answered", (event) => { deal(event.target); showErrors(); });
for (const one of [code, kernel, document.getElementById("global_size"), document.getElementById("parameters")]) {
  one.addEventListener("input", refreshRows);
}
// Ctrl and Enter asks, wherever one is; Tab leaves the field, as everywhere.
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(document.getElementById("ask"));
});

const whole = document.querySelector(".whole-answer");
if (whole) {
  const place = document.getElementById(whole.querySelector("#estimate-title") ? "lab-estimate" : "lab-source");
  place.replaceChildren(...whole.childNodes);
  whole.remove();
  deal(place);
}
listNames();
rows.refresh();
showErrors();
