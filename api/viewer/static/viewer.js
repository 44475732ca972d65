// Search as you type, keys, what is watched live, and times of where you are. Every page works without it.
"use strict";

const results = document.getElementById("results");
const field = document.getElementById("q");

// A part of a page as it is now; null where there is none, which is said on the page until there is one again.
async function fetched(url) {
  const answer = await fetch(url).catch(() => null);
  if (answer && answer.status === 401) location.assign("/sign-in"); // signed in too long ago
  document.getElementById("unanswered").hidden = Boolean(answer && answer.ok);
  return answer && answer.ok ? answer.text() : null;
}

// The text is rendered by memctl, every value in it escaped.
function put(part, text) {
  part.innerHTML = text;
  here(part);
}

const minutes = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" };
const zoned = new Intl.DateTimeFormat("en-GB", minutes);
const exact = new Intl.DateTimeFormat("en-GB", { ...minutes, second: "2-digit" });

function here(part) {
  for (const time of part.querySelectorAll("time")) {
    time.textContent = (time.className === "exact" ? exact : zoned).format(new Date(time.dateTime)).replace(",", "");
  }
}

here(document);
document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
if (matchMedia("(max-width: 40rem)").matches) for (const fold of document.querySelectorAll(".fold:not([data-kept])")) fold.open = false;
for (const zone of document.querySelectorAll("#zone")) zone.textContent = zoned.resolvedOptions().timeZone;

if (results && field) {
  let waiting = 0;
  let asked = 0;
  field.form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, 160);
  });

  async function look() {
    const mine = ++asked;
    const query = new URLSearchParams(new FormData(field.form));
    const shown = "?" + query;
    query.set("part", "results");
    const text = await fetched("/search?" + query);
    if (text === null || mine !== asked) return; // a later question was asked meanwhile
    put(results, text);
    history.replaceState(null, "", shown);
  }
}

// Keys: / to search, j and k from one result to the next, Ctrl K to go anywhere.
const palette = document.getElementById("palette");
const wanted = document.getElementById("wanted");
for (const part of document.querySelectorAll(".keys, #go-to")) part.hidden = !palette;

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k" && palette) {
    event.preventDefault();
    openPalette();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  if (event.key === "/" && (field || palette)) {
    event.preventDefault();
    if (!field) return openPalette();
    field.focus();
    field.select();
  }
  const step = { j: 1, k: -1 }[event.key];
  if (!step) return;
  const items = [...document.querySelectorAll("main .results > li, main .list > li, main .rows tbody tr, main .turn, main .timeline > li")].map((item) => item.querySelector("a")).filter(Boolean);
  const at = items.indexOf(document.activeElement);
  items[Math.min(Math.max(at + step, 0), items.length - 1)]?.focus();
});

function openPalette() {
  palette.showModal();
  if (!projects) {
    projects = [];
    fetched("/projects").then(named);
  }
  wanted.select();
  offer();
}

// The pages of projects, asked for once.
let projects = null;
function named(text) {
  if (text === null) return;
  projects = [...new DOMParser().parseFromString(text, "text/html").querySelectorAll("main .list > li > a[href^='/projects/']")];
  offer();
}

// The pages whose names have what was written, at once, and what memory has on it, in a moment.
let soonSearched = 0;
function offer() {
  const text = wanted.value.trim();
  const pages = [...document.querySelectorAll(".top nav a"), ...(text ? projects : [])].filter((link) => link.textContent.toLowerCase().includes(text.toLowerCase()));
  palette.querySelector("ul").replaceChildren(...pages.map((link) => offered(link, "page", link.closest("nav") ? "page" : "project")));
  clearTimeout(soonSearched);
  if (text.length > 2) soonSearched = setTimeout(searched, 160, text);
}

async function searched(text) {
  const answer = await fetched("/search?" + new URLSearchParams({ q: text, part: "results" }));
  if (answer === null || text !== wanted.value.trim()) return;
  const found = new DOMParser().parseFromString(answer, "text/html").querySelectorAll(".results > li:not(.none) > .head a");
  const unlike = new Map([...found].reverse().map((link) => [link.textContent, link])); // an episode and its turn may have one title
  palette.querySelector("ul").append(...[...unlike.values()].reverse().slice(0, 6).map((link) => offered(link, "result", link.closest("li").querySelector(".meta").textContent.split("·")[0].trim())));
}

function offered(from, name, kind) {
  const item = document.createElement("li");
  const link = item.appendChild(document.createElement("a"));
  link.href = from.getAttribute("href");
  link.className = name;
  link.append(from.textContent.trim(), " ");
  const what = link.appendChild(document.createElement("span"));
  what.className = "meta";
  what.textContent = kind;
  return item;
}

if (palette) {
  document.getElementById("go-to").addEventListener("click", openPalette);
  wanted.addEventListener("input", offer);
  palette.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...palette.querySelectorAll("li a")];
    const at = links.indexOf(document.activeElement);
    if (step) {
      event.preventDefault();
      (links[at + step] ?? (step < 0 ? wanted : links.at(-1)))?.focus();
    }
    const page = palette.querySelector("li a.page");
    if (event.key === "Enter" && event.target === wanted && page) {
      event.preventDefault();
      page.click();
    }
  });
}

for (const part of document.querySelectorAll("[data-live]")) {
  setInterval(async () => {
    if (document.hidden) return;
    const text = await fetched(part.dataset.live);
    if (text !== null) put(part, text);
  }, 2000);
}

// The timeline: Ctrl with the wheel, a double click, + and - look closer or wider; dragging and the arrows move it.
const work = document.getElementById("timeline-of-work");
if (work) {
  const project = new URLSearchParams(location.search).get("project");
  let soon = 0;
  let asked = 0;
  const lanes = () => work.querySelector(".lanes");
  const range = () => [Number(lanes().dataset.since), Number(lanes().dataset.before)];

  function look(since, before) {
    const longest = 12 * 366 * 86400;
    if (before - since < 600 || before - since > longest) return drawnAs("none", 0);
    lanes().dataset.since = Math.max(0, Math.round(since));
    lanes().dataset.before = Math.round(before);
    const query = new URLSearchParams({ since: lanes().dataset.since, before: lanes().dataset.before });
    asked++; // an answer that is on its way is of another time
    clearTimeout(soon);
    soon = setTimeout(() => {
      if (project) query.set("project", project);
      history.replaceState(null, "", "/?" + query);
      shown(query);
    }, 30);
  }

  async function shown(query) {
    const mine = ++asked;
    query.set("part", "timeline");
    const text = await fetched("/?" + query);
    if (text === null || mine !== asked) return;
    const at = [...work.querySelectorAll("a")].indexOf(document.activeElement);
    put(work, text);
    if (at >= 0) (work.querySelectorAll(".lanes svg a")[0] ?? work.querySelector("a")).focus({ preventScroll: true }); // keys go on
  }

  function zoom(by, around) {
    const [since, before] = range();
    drawnAs(`scaleX(${1 / by})`, around);
    const at = since + (before - since) * around;
    look(at - (at - since) * by, at + (before - at) * by);
  }

  function move(share) {
    const [since, before] = range();
    drawnAs(`translateX(${-share * 100}%)`, 0);
    look(since + (before - since) * share, before + (before - since) * share);
  }

  // At once, until what is there then has been asked for.
  function drawnAs(transform, around) {
    for (const svg of work.querySelectorAll(".lanes svg")) {
      svg.style.transformOrigin = `${around * 100}% 0`;
      svg.style.transform = transform;
    }
  }

  const drawing = () => work.querySelector(".lanes .drawing")?.getBoundingClientRect();
  const along = (event) => (event.clientX - drawing().left) / drawing().width;

  work.addEventListener("wheel", (event) => {
    const across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.target.closest(".lanes svg") || !(event.ctrlKey || event.metaKey || across)) return;
    event.preventDefault();
    if (across) move(event.deltaX / drawing().width);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, along(event));
  }, { passive: false });
  work.addEventListener("dblclick", (event) => {
    if (event.target.closest(".lanes svg") && !event.target.closest("a")) zoom(0.5, along(event));
  });
  setInterval(() => {
    const asked = new URLSearchParams(location.search); // a time that somebody chose stays
    if (!document.hidden && !asked.has("since") && !work.contains(document.activeElement)) shown(asked);
  }, 15_000);

  let from = null;
  work.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.target.closest(".lanes svg")) from = event.clientX;
  });
  addEventListener("pointermove", (event) => {
    if (from === null || !(event.buttons & 1)) return;
    drawnAs(`translateX(${event.clientX - from}px)`, 0);
  });
  addEventListener("pointerup", (event) => {
    if (from === null) return;
    const far = event.clientX - from;
    from = null;
    if (Math.abs(far) < 5) return;
    addEventListener("click", (click) => click.preventDefault(), { once: true, capture: true });
    move(-far / drawing().width);
  });
  work.addEventListener("dragstart", (event) => event.preventDefault());
  work.addEventListener("keydown", (event) => {
    const done = { "+": () => zoom(0.5, 0.5), "-": () => zoom(2, 0.5), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25) }[event.key];
    if (done) {
      event.preventDefault();
      done();
    }
  });
}
