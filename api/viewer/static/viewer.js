// Search as you type, keys, and what is watched live. Every page works without it.
"use strict";

const results = document.getElementById("results");
const field = document.getElementById("q");

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
    const answer = await fetch("/search?" + query);
    if (!answer.ok || mine !== asked) return; // a later question was asked meanwhile
    results.innerHTML = await answer.text(); // rendered by memctl, every value escaped
    history.replaceState(null, "", shown);
  }
}

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && field && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});

for (const part of document.querySelectorAll("[data-live]")) {
  setInterval(async () => {
    if (document.hidden) return;
    const answer = await fetch(part.dataset.live).catch(() => null);
    if (answer && answer.ok) part.innerHTML = await answer.text();
  }, 2000);
}
