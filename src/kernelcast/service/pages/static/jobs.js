// Keeps jobs fresh: follows those that are not over by server-sent events, and the list itself now
// and then. Without this script the same page shows how things stood when it was loaded.

import { announce, finish, load } from "/assets/frame.js";

// Browsers open six connections to a host; pages and pictures need some of them.
const MOST_FOLLOWED = 3;
const REFRESH_MS = 15000;
const FINAL = new Set(["done", "failed", "cancelled"]);
const TONES = { done: "good", failed: "bad", running: "warn" };

const streams = new Map();
let isRefreshing = false;

function part(place, name) {
  const own = place.querySelector(`[data-part="${name}"]`);
  return own || (place.hasAttribute("data-alone") ? document.querySelector(`[data-part="${name}"]`) : null);
}

function sayDuration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole} s`;
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours} h ${minutes} min` : `${minutes} min`;
}

function show(place, job) {
  const { progress } = job;
  const state = part(place, "state");
  const isEnding = job.is_cancel_wanted && !FINAL.has(job.state);
  if (state) {
    state.textContent = isEnding ? "ends soon" : job.state;
    state.className = `tag ${TONES[job.state] || ""}`;
  }
  const bar = place.querySelector("progress");
  if (bar && progress.total) {
    bar.max = progress.total;
    bar.value = progress.done || 0;
  } else if (bar && job.state === "running") {
    bar.removeAttribute("value");
  }
  const parts = part(place, "parts");
  if (parts && progress.total) parts.textContent = `${progress.done || 0} of ${progress.total}`;
  else if (parts) parts.textContent = job.state === "queued" ? "waits for its turn" : "";
  const remaining = part(place, "remaining");
  const isKnown = job.state === "running" && typeof progress.remaining_seconds === "number";
  if (remaining) {
    remaining.textContent = isKnown ? `about ${sayDuration(progress.remaining_seconds)} left` : "";
  }
  const stage = part(place, "stage");
  if (stage && !FINAL.has(job.state)) stage.textContent = (job.state === "running" && progress.stage) || "";
  if (job.is_cancel_wanted) part(place, "cancel")?.remove();
  if (place.hasAttribute("data-alone")) showLog(progress.log || []);
  place.dataset.state = job.state;
}

function showLog(lines) {
  const list = document.querySelector('[data-part="log"]');
  if (!list) return;
  const last = list.querySelector("li:last-child time")?.dateTime || "";
  const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 5;
  for (const [when, text] of lines) {
    if (Date.parse(when) <= (Date.parse(last) || 0)) continue;
    const line = document.createElement("li");
    const time = document.createElement("time");
    time.dateTime = when;
    time.textContent = `${when.slice(0, 10)} ${when.slice(11, 19)} UTC`;
    line.append(time, text);
    list.append(line);
  }
  finish(list);
  if (isAtEnd) list.scrollTop = list.scrollHeight;
}

function follow(place) {
  const id = place.dataset.job;
  const stream = new EventSource(`/jobs/${encodeURIComponent(id)}/events`);
  streams.set(id, stream);
  const find = () => document.querySelector(`[data-job="${CSS.escape(id)}"]`);
  stream.addEventListener("job", (event) => {
    const own = find();
    if (own) show(own, JSON.parse(event.data));
  });
  stream.addEventListener("end", (event) => {
    stop(id);
    const job = JSON.parse(event.data);
    const own = find();
    if (!own) return;
    show(own, job);
    announce(`${own.dataset.title}: ${job.state}`);
    if (own.hasAttribute("data-alone")) window.location.reload();
    else refresh();
  });
  // What the service says of itself; a connection that breaks is opened again by the browser.
  stream.addEventListener("error", (event) => {
    if (event.data || stream.readyState === EventSource.CLOSED) stop(id);
  });
}

function stop(id) {
  streams.get(id)?.close();
  streams.delete(id);
}

function followAll() {
  const places = [...document.querySelectorAll("[data-job]")];
  const open = places.filter((one) => !FINAL.has(one.dataset.state));
  // Those at work first, then those that wait, the oldest of them first.
  open.sort((a, b) => (b.dataset.state === "running") - (a.dataset.state === "running"));
  const wanted = new Set(open.slice(0, MOST_FOLLOWED).map((one) => one.dataset.job));
  for (const id of [...streams.keys()]) if (!wanted.has(id)) stop(id);
  for (const one of open) {
    if (wanted.has(one.dataset.job) && !streams.has(one.dataset.job)) follow(one);
  }
}

async function refresh() {
  const list = document.getElementById("jobs-list");
  if (!list || isRefreshing) return;
  isRefreshing = true;
  const fresh = document.createElement("div");
  try {
    const isGood = await load(list.dataset.refresh, {}, fresh);
    // Nobody's focus is taken away: who has reached into the list keeps it as it is.
    if (isGood && !list.contains(document.activeElement)) {
      list.replaceChildren(...fresh.childNodes);
      finish(list);
    }
  } catch {
    // The service is away; the next time tells.
  } finally {
    isRefreshing = false;
  }
  followAll();
}

followAll();
if (document.getElementById("jobs-list")) {
  setInterval(() => {
    if (!document.hidden) refresh();
  }, REFRESH_MS);
}
// A page that is left must not hold connections that the next one needs.
window.addEventListener("pagehide", () => [...streams.keys()].forEach(stop));
window.addEventListener("pageshow", (event) => {
  if (event.persisted) followAll();
});
