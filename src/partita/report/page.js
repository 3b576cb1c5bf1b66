"use strict";
// Tooltips, highlighting of one cluster in all figures, and sorting of tables.
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
  const marked = [...document.querySelectorAll("[data-k]")];
  const buttons = [...document.querySelectorAll("button.pick")];
  let picked = null;

  function pick(k) {
    picked = k === picked ? null : k;
    body.classList.toggle("picking", picked !== null);
    for (const element of marked) element.classList.toggle("on", element.dataset.k === picked);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.k === picked));
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

  for (const head of document.querySelectorAll("table.sort th")) {
    if (!head.textContent.trim()) continue;
    head.tabIndex = 0;
    head.classList.add("sorts");
    head.addEventListener("click", () => sort(head));
    head.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(head); }
    });
  }
  body.classList.add("live");
})();
