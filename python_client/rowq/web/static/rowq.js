// Live updates, charts, filters and confirmations.
"use strict";

// A hidden page receives no events.
const address = document.body.dataset.events;
const state = document.getElementById("state");
let source = null;

function follow() {
  if (!address || source || document.hidden) return;
  source = new EventSource(address);
  for (const region of ["queues", "health", "claims"]) {
    source.addEventListener(region, () => document.body.dispatchEvent(new CustomEvent(region)));
  }
  source.onopen = () => { state.textContent = ""; };
  source.onerror = () => { state.textContent = "disconnected"; };
}

function leave() {
  if (source) source.close();
  source = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? leave() : follow()));
window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", follow);
follow();

// Show times in the browser's time zone, except those of schedules.
const two = (number) => String(number).padStart(2, "0");

function clock(date) {
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
}

function localize() {
  for (const one of document.querySelectorAll("time:not([data-zone])")) {
    const date = new Date(one.dateTime);
    const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
    one.textContent = `${day} ${clock(date)}`;
  }
}

document.getElementById("zone").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;

// Filter the rows of a list, also after a refresh. The rows of a worker stay together.
function filterRows() {
  for (const field of document.querySelectorAll("input[data-filter]")) {
    const wanted = field.value.trim().toLowerCase();
    const list = document.getElementById(field.dataset.filter);
    const bodies = list.querySelectorAll("tbody");
    const rows = bodies.length > 1 ? bodies : list.querySelectorAll("tbody > tr");
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  }
}

function refine() {
  localize();
  filterRows();
}

document.addEventListener("input", (event) => { if (event.target.dataset.filter) filterRows(); });
document.body.addEventListener("htmx:afterSwap", refine);
refine();

// Confirm before discarding. The checkbox in the header of a table selects all rows.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
}, true);

document.body.addEventListener("htmx:responseError", () => { state.textContent = "request failed, retry"; });
document.body.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful) state.textContent = "";
});

document.addEventListener("change", (event) => {
  const name = event.target.dataset.all;
  if (!name) return;
  for (const box of event.target.form.querySelectorAll(`input[name="${name}"]`)) {
    box.checked = event.target.checked;
  }
});

// Points: the first line is the time, the last one the age of the oldest message.
const LINES = [["ready", "--ready"], ["delayed", "--delayed"], ["leased", "--leased"], ["dead", "--dead"]];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function widthIn(element) {
  const style = getComputedStyle(element);
  return element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
}

function options(element, series) {
  const timeOf = (time) => (time == null ? "-" : clock(new Date(time * 1000)));
  const axis = { stroke: () => colour("--quiet"), grid: { stroke: () => colour("--line"), width: 1 } };
  return {
    title: element.dataset.title,
    width: widthIn(element),
    height: 200,
    series: [{ value: (_, time) => timeOf(time) }, ...series.map(([label, name]) => (
      { label, stroke: () => colour(name), width: 1.5, spanGaps: false }
    ))],
    axes: [{ ...axis, values: (_, times) => times.map(timeOf), space: 80 }, { ...axis, size: 60 }],
    scales: { y: { range: (_, least, most) => [0, Math.max(most, 1)] } },
    cursor: { points: { size: 6 } },
  };
}

async function draw() {
  const counts = document.querySelector('.chart[data-what="counts"]');
  const age = document.querySelector('.chart[data-what="age"]');
  if (!counts) return;
  // An empty element is hidden and has no width: show it before drawing.
  for (const element of [counts, age]) element.classList.add("drawn");
  let points = [[], [], [], [], [], []];
  const charts = [
    [new uPlot(options(counts, LINES), points.slice(0, 5), counts), (all) => all.slice(0, 5)],
    [new uPlot(options(age, [["oldest", "--ready"]]), [[], []], age), (all) => [all[0], all[5]]],
  ];

  async function update() {
    const last = points[0].at(-1) ?? 0;
    const url = new URL(counts.dataset.points, location.href);
    url.searchParams.set("after", last);
    const answer = await fetch(url);
    if (!answer.ok) return;
    const more = await answer.json();
    if (more.length === 0) return;
    points = points.map((line, n) => [...line, ...more[n]].slice(-1800));
    for (const [chart, part] of charts) chart.setData(part(points));
  }

  await update();
  document.body.addEventListener("queues", update);
  window.addEventListener("resize", () => {
    for (const [chart] of charts) {
      chart.setSize({ width: widthIn(chart.root.parentElement), height: 200 });
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const [chart] of charts) chart.redraw();
  });
}

draw();
