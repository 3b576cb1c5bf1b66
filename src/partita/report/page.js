"use strict";
// Tooltips, highlighting of one cluster in all figures, sorting of tables, and the slider over levels of the grain.
// The script reads only the page and uses no network; without it the page has the same content.
(() => {
  const body = document.body;
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  body.append(tip);

  // ---- tooltips ------------------------------------------------------------------------------------------
  const decoded = new WeakMap();

  function heatData(place) {
    if (!decoded.has(place)) {
      const rows = JSON.parse(place.dataset.rows);
      const columns = place.dataset.columns ? JSON.parse(place.dataset.columns) : rows;
      decoded.set(place, { rows, columns, bytes: atob(place.dataset.values) });
    }
    return decoded.get(place);
  }

  function heatText(place, event) {
    const { rows, columns, bytes } = heatData(place);
    const box = place.getBoundingClientRect();
    const at = (from, size, n) => Math.min(n - 1, Math.max(0, Math.floor((from / size) * n)));
    const r = at(event.clientY - box.top, box.height, rows.length);
    const c = at(event.clientX - box.left, box.width, columns.length);
    const byte = bytes.charCodeAt(r * columns.length + c);
    const low = Number(place.dataset.low), high = Number(place.dataset.high);
    const value = low + (byte / 254) * (high - low);
    const text = byte === 255 ? "unknown" : "percent" in place.dataset ? Math.round(100 * value) + "%" : value.toFixed(2);
    return rows[r] + "\n" + columns[c] + "\n" + place.dataset.what + ": " + text;
  }

  function show(text, event) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect(), gap = 14;
    const left = Math.min(event.clientX + gap, document.documentElement.clientWidth - box.width - 4);
    const above = event.clientY + gap + box.height > window.innerHeight;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = (above ? event.clientY - gap - box.height : event.clientY + gap) + "px";
  }

  function point(event) {
    const target = event.target instanceof Element ? event.target : null;
    const heat = target && target.closest("[data-values]");
    const described = target && target.closest("[data-tip]");
    if (heat) show(heatText(heat, event), event);
    else if (described) show(described.dataset.tip, event);
    else tip.hidden = true;
  }

  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
  window.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // ---- highlighting ------------------------------------------------------------------------------------------
  let picked = null;

  function mark() {
    for (const element of document.querySelectorAll("[data-k]")) element.classList.toggle("on", element.dataset.k === picked);
    for (const button of document.querySelectorAll("button.pick")) {
      button.setAttribute("aria-pressed", String(button.dataset.k === picked));
    }
  }

  function pick(k) {
    picked = k === picked ? null : k;
    body.classList.toggle("picking", picked !== null);
    mark();
  }

  document.addEventListener("click", event => {
    const chosen = event.target instanceof Element && event.target.closest(".pick");
    if (chosen) pick(chosen.dataset.k);
  });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && picked !== null) pick(picked);
  });

  // ---- sorting -----------------------------------------------------------------------------------------------
  const valueOf = cell => {
    const text = cell ? cell.dataset.v ?? cell.textContent : "";
    const number = Number(text.replaceAll(",", "").replace("%", ""));
    return text.trim() === "" || Number.isNaN(number) ? text : number;
  };

  function order(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === typeof b) return a.localeCompare(b);
    return typeof a === "number" ? -1 : 1;
  }

  function sort(head) {
    const table = head.closest("table"), at = head.cellIndex;
    const rows = [...table.rows].filter(row => !row.contains(head));
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((a, b) => (down ? -1 : 1) * order(valueOf(a.cells[at]), valueOf(b.cells[at])));
    rows[0]?.parentNode.append(...rows);
  }

  function letSort(place) {
    for (const head of place.querySelectorAll("table.sort th")) {
      if (!head.textContent.trim()) continue;
      head.tabIndex = 0;
      head.classList.add("sorts");
      head.addEventListener("click", () => sort(head));
      head.addEventListener("keydown", event => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(head); }
      });
    }
  }
  letSort(document);

  // ---- levels ------------------------------------------------------------------------------------------------
  const grain = document.querySelector(".grain");

  function startGrain() {
    const levels = JSON.parse(grain.dataset.levels);
    const range = grain.querySelector("input"), told = grain.querySelector("output");
    const places = [...document.querySelectorAll("div[data-part]")];
    const first = range.defaultValue, kept = new Map(places.map(place => [place, [...place.childNodes]]));
    const painted = [...document.querySelectorAll("[data-g]")];
    const original = new Map(painted.map(e => [e, [e.dataset.k, e.getAttribute("class"), e.dataset.tip]]));
    let now = first;

    function paint(element, groups) {
      const [k, names, text] = original.get(element);
      const to = groups === null ? k : element.dataset.g === "-1" ? "-1" : String(groups[element.dataset.g]);
      element.dataset.k = to;
      element.setAttribute("class", to === k ? names : names.replace(/\b(k\d|out)\b/, to === "-1" ? "out" : "k" + to % 10));
      if (text) element.dataset.tip = to === k ? text : text.replace(/group \d+|outliers/, to === "-1" ? "outliers" : "group " + (Number(to) + 1));
    }

    function fill(place) {
      if (now === first) place.replaceChildren(...kept.get(place));
      else {
        const found = document.querySelector(`template[data-part="${place.dataset.part}"][data-at="${now}"]`);
        place.replaceChildren(...(found ? [found.content.cloneNode(true)] : []));
        letSort(place);
      }
    }

    function move(to) {
      if (to === now) return;
      now = to;
      const level = levels[now];
      range.value = now;
      range.setAttribute("aria-valuetext", level.title);
      told.textContent = level.title;
      places.forEach(fill);
      for (const element of painted) paint(element, now === first ? null : level.groups);
      if (picked !== null) pick(picked); else mark();
      showLine();
    }

    function showLine() {
      for (const line of document.querySelectorAll("g.line")) line.classList.toggle("here", line.dataset.to === now);
      for (const jump of grain.querySelectorAll(".jump")) jump.setAttribute("aria-pressed", String(jump.dataset.to === now));
    }

    range.value = first;  // a browser may restore the position of an earlier visit
    range.addEventListener("input", () => move(range.value));
    document.addEventListener("click", event => {
      const jump = event.target instanceof Element && event.target.closest(".jump, g.line");
      if (jump) move(jump.dataset.to);
    });
    showLine();
    grain.hidden = false;
  }
  if (grain) startGrain();
  body.classList.add("live");
})();
