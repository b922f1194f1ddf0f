// Forms that are answered by a part of a page: <form data-into="ID"> puts the answer into #ID.
// Without this script the same form gets a whole page.

const FRAGMENT = { "x-fragment": "1" };

export function announce(text) {
  const place = document.getElementById("announcer");
  if (place) place.textContent = text;
}

// Sends the fields of a form, as its button asks.
export function send(address, form, button, signal) {
  const fields = new URLSearchParams(new FormData(form, button));
  return fetch(address, {
    method: "POST", body: fields, headers: FRAGMENT, credentials: "same-origin", signal,
  });
}

// Loads a part of a page into an element; tells whether all went well.
export async function load(address, options, target) {
  const answer = await fetch(address, {
    credentials: "same-origin",
    ...options,
    headers: { ...FRAGMENT, ...(options.headers || {}) },
  });
  return show(answer, target);
}

async function show(answer, target) {
  const kind = answer.headers.get("content-type") || "";
  if (kind.startsWith("text/html")) {
    target.innerHTML = await answer.text();
  } else {
    let message = `The service answered with status ${answer.status}.`;
    if (kind.startsWith("application/json")) message = (await answer.json()).error.message;
    showFailure(target, message);
  }
  return answer.ok;
}

export function showFailure(target, message) {
  const box = document.createElement("div");
  box.className = "error";
  box.setAttribute("role", "alert");
  box.tabIndex = -1;
  const words = document.createElement("p");
  words.className = "error-text";
  words.textContent = message;
  box.append(words);
  target.replaceChildren(box);
}

// Moves errors that name a field to that field; gives the first such field.
export function placeFieldErrors(form, parts) {
  for (const one of form.querySelectorAll(".field-errors")) one.replaceChildren();
  for (const one of form.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  let first = null;
  for (const one of parts.querySelectorAll("[data-field]")) {
    const field = document.getElementById(one.dataset.field);
    const place = document.getElementById(`${one.dataset.field}-errors`);
    if (!field || !place) continue;
    one.classList.add("mono");
    place.append(one);
    field.setAttribute("aria-invalid", "true");
    first ??= field.matches("input, select, textarea") ? field : field.querySelector("input");
  }
  return first;
}

const running = new WeakMap();

async function submit(event) {
  const form = event.target.closest("form[data-into]");
  if (!form || event.defaultPrevented) return;
  const button = event.submitter;
  const target = document.getElementById(button?.dataset.into || form.dataset.into);
  if (!target) return;
  event.preventDefault();
  running.get(target)?.abort();
  const controller = new AbortController();
  running.set(target, controller);
  const address = button?.hasAttribute("formaction") ? button.formAction : form.action;
  target.setAttribute("aria-busy", "true");
  announce(button?.dataset.busy || "Working");
  form.classList.add("busy");
  const stop = showElapsed(form);
  try {
    const isGood = await show(await send(address, form, button, controller.signal), target);
    announce(isGood ? "Ready" : "That did not work");
  } catch (error) {
    if (error.name === "AbortError") return stop(false);
    showFailure(target, `The service cannot be reached (${error.message}).`);
    announce("That did not work");
  }
  running.delete(target);
  target.removeAttribute("aria-busy");
  form.classList.remove("busy");
  stop();
  const errors = placeFieldErrors(form, target);
  target.dispatchEvent(new CustomEvent("answered", { bubbles: true }));
  target.dispatchEvent(new CustomEvent("shown", { bubbles: true }));
  lead(errors || target.querySelector("[role=alert], h2, h3"));
}

// Counts the seconds of an answer beside the button; gives what ends it.
function showElapsed(form) {
  const place = form.querySelector("[data-elapsed]");
  if (!place) return () => {};
  const began = performance.now();
  const words = place.querySelector("[data-seconds-gone]");
  const bar = place.querySelector("progress");
  const tick = () => { words.textContent = `${((performance.now() - began) / 1000).toFixed(1)} s`; };
  const timer = setInterval(tick, 100);
  tick();
  place.hidden = bar.hidden = false;
  return (isAnswered = true) => {
    clearInterval(timer);
    if (!isAnswered) return; // the next question counts on
    tick();
    bar.hidden = true;
    words.textContent = `answered after ${words.textContent}`;
  };
}

function lead(place) {
  if (!place) return;
  if (!place.matches("input, select, textarea, [tabindex]")) place.tabIndex = -1;
  place.focus({ preventScroll: true });
  place.scrollIntoView({ block: "nearest" });
}

document.addEventListener("submit", submit);

// Moments in the reader's own time; the server writes UTC.
function writeMoments(within = document) {
  for (const one of within.querySelectorAll("time[datetime]:not([data-is-local])")) {
    const when = new Date(one.dateTime);
    if (Number.isNaN(when.valueOf())) continue;
    one.title = one.textContent.trim() || one.dateTime;
    one.textContent = when.toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
    one.dataset.isLocal = "yes";
  }
}

// Names for the cells of tables whose rows become blocks on a telephone. What is no table to the
// eye stays one to screen readers, by its roles.
function nameCells(within = document) {
  for (const table of within.querySelectorAll("table.stacked, table.annotated")) {
    const names = [...table.tHead.rows[0].cells].map((head) => (head.querySelector(".unseen") ? "" : head.textContent.trim()));
    table.setAttribute("role", "table");
    for (const part of [table.tHead, ...table.tBodies]) {
      part.setAttribute("role", "rowgroup");
      for (const row of part.rows) {
        row.setAttribute("role", "row");
        [...row.cells].forEach((cell, place) => {
          const head = cell.scope === "col" ? "columnheader" : "rowheader";
          cell.setAttribute("role", cell.tagName === "TH" ? head : "cell");
          if (cell.tagName === "TD" && !cell.querySelector(":scope > .cell")) {
            const box = document.createElement("div");
            box.className = "cell";
            box.append(...cell.childNodes);
            cell.append(box);
            cell.dataset.label = names[place];
            cell.classList.toggle("nothing", !cell.textContent.trim());
          }
        });
      }
    }
  }
}

// What a part of a page needs once it is there.
export function finish(within) {
  writeMoments(within);
  nameCells(within);
}

finish(document);
document.addEventListener("shown", (event) => finish(event.target));
