// The Lab: names of kernels while the source is typed, and arguments filled in from the source.

import { announce, placeFieldErrors, send } from "/assets/frame.js";

const form = document.getElementById("lab-form");
const code = document.getElementById("code");
const names = document.getElementById("kernel-names");
const KERNEL = /\b(?:__)?kernel\b[^;{}()]*?(?:__attribute__\s*\(\(.*?\)\)\s*)*void\s+(\w+)/g;

function listKernels() {
  const found = [...new Set([...code.value.matchAll(KERNEL)].map((match) => match[1]))];
  names.replaceChildren(
    ...found.map((name) => {
      const option = document.createElement("option");
      option.value = name;
      return option;
    }),
  );
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
      announce("Arguments are filled in");
      document.getElementById("args").focus();
    } else {
      const parts = document.createElement("div");
      parts.innerHTML = await answer.text();
      placeFieldErrors(form, parts);
      announce("That did not work");
    }
  } catch (error) {
    announce(`The service cannot be reached (${error.message}).`);
  }
  event.submitter.disabled = false;
}

// Tab leaves the field, as everywhere; nothing here takes keys away.
form.addEventListener("submit", fillIn, { capture: true });
code.addEventListener("input", listKernels);
listKernels();
