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

const zoned = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

function here(part) {
  for (const time of part.querySelectorAll("time")) {
    time.textContent = zoned.format(new Date(time.dateTime)).replace(",", "");
  }
}

here(document);
for (const zone of document.querySelectorAll("#zone")) zone.textContent = zoned.resolvedOptions().timeZone;

if (results && field) {
  let waiting = 0;
  let asked = 0;
  field.addEventListener("input", () => {
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

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && field && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});

for (const part of document.querySelectorAll("[data-live]")) {
  setInterval(async () => {
    if (document.hidden) return;
    const text = await fetched(part.dataset.live);
    if (text !== null) put(part, text);
  }, 2000);
}

// The timeline: Ctrl with the wheel, and + -, look closer or wider; dragging and the arrows move it.
const work = document.getElementById("timeline-of-work");
if (work) {
  const project = new URLSearchParams(location.search).get("project");
  let soon = 0;
  let asked = 0;
  const lanes = () => work.querySelector(".lanes");
  const range = () => [Number(lanes().dataset.since), Number(lanes().dataset.before)];

  function look(since, before) {
    const longest = 12 * 366 * 86400;
    if (before - since < 600 || before - since > longest) return;
    lanes().dataset.since = Math.max(0, Math.round(since));
    lanes().dataset.before = Math.round(before);
    clearTimeout(soon);
    soon = setTimeout(async () => {
      const mine = ++asked;
      const query = new URLSearchParams({ since: lanes().dataset.since, before: lanes().dataset.before });
      if (project) query.set("project", project);
      history.replaceState(null, "", "/?" + query);
      query.set("part", "timeline");
      const text = await fetched("/?" + query);
      if (text !== null && mine === asked) put(work, text);
    }, 90);
  }

  function zoom(by, around) {
    const [since, before] = range();
    const at = since + (before - since) * around;
    look(at - (at - since) * by, at + (before - at) * by);
  }

  function move(share) {
    const [since, before] = range();
    look(since + (before - since) * share, before + (before - since) * share);
  }

  work.addEventListener("wheel", (event) => {
    if (!event.target.closest(".lanes") || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const box = lanes().getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
  }, { passive: false });

  let from = null;
  work.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.target.closest(".lanes")) from = event.clientX;
  });
  addEventListener("pointermove", (event) => {
    if (from === null || !(event.buttons & 1)) return;
    for (const svg of work.querySelectorAll(".lanes svg")) svg.style.transform = `translateX(${event.clientX - from}px)`;
  });
  addEventListener("pointerup", (event) => {
    if (from === null) return;
    const far = event.clientX - from;
    from = null;
    if (Math.abs(far) < 5) return;
    addEventListener("click", (click) => click.preventDefault(), { once: true, capture: true });
    move(-far / lanes().getBoundingClientRect().width);
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
