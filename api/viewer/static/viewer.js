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
