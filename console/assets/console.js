// A second click sends nothing while the first request runs. The server does the same for
// everyone (the key of the form), but answers the second click, which may hide a secret. No event tells
// that someone has stopped the request, so the form can be sent again after ten seconds.
addEventListener("submit", function (event) {
  var form = event.target, button = event.submitter;
  if (form.method !== "post") return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(sendable, 10000, form);
  if (!button) return;
  button.dataset.shown = button.innerHTML;
  button.textContent = "Sending…";
});
function sendable(form) {
  delete form.dataset.sent;
  form.querySelectorAll("[data-shown]").forEach(function (button) {
    button.innerHTML = button.dataset.shown;
    delete button.dataset.shown;
  });
}
addEventListener("pageshow", function () { document.querySelectorAll("form[data-sent]").forEach(sendable); });
document.addEventListener("DOMContentLoaded", function () {
  document.querySelectorAll("input[name=zone]").forEach(function (input) { input.value = Intl.DateTimeFormat().resolvedOptions().timeZone || ""; });
});
// A button copies its value or, without one, the text before it. Without scripts it is not shown.
if (navigator.clipboard) document.documentElement.classList.add("copies");
addEventListener("click", function (event) {
  var button = event.target.closest("[data-copy]");
  if (!button) return;
  navigator.clipboard.writeText(button.dataset.copy || button.previousElementSibling.textContent).then(function () {
    button.querySelector("use").setAttribute("href", "#icon-check");
    button.ariaLabel = button.title = "Copied";
  });
});
// A menu closes when a click or the focus is elsewhere, and with Escape.
["click", "focusin"].forEach(function (type) {
  addEventListener(type, function (event) {
    document.querySelectorAll("details.drop[open]").forEach(function (menu) { if (!menu.contains(event.target)) menu.open = false; });
  });
});
addEventListener("keydown", function (event) {
  var menu = event.key === "Escape" && event.target.closest("details.drop[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
// The count of notices is loaded every ten seconds while the page is visible, until the session ends.
var counting = setInterval(function () {
  var counts = document.querySelectorAll("[data-load]");
  if (document.hidden || !counts.length) return;
  fetch(counts[0].dataset.load, {redirect: "manual"}).then(function (response) {
    if (response.type === "opaqueredirect") clearInterval(counting);
    if (!response.ok) return;
    return response.text().then(function (text) { counts.forEach(function (count) { count.innerHTML = text; }); });
  }).catch(function () {});
}, 10000);
// Keys that focus the search of everything: / and Ctrl-K (⌘K).
addEventListener("keydown", function (event) {
  var search = document.getElementById("search"), command = event.ctrlKey || event.metaKey;
  if (!search || event.altKey || !(command ? event.key === "k" : event.key === "/" && !event.target.closest("input, select, textarea"))) return;
  event.preventDefault();
  search.select();
});
// Keys in lists: J and K focus the next row and the one before, X selects the row, C opens the form
// of a new one. ? shows the keys.
addEventListener("keydown", function (event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, textarea, dialog, input:not([type=checkbox])")) return;
  if (event.key === "?") document.getElementById("keys")?.showModal();
  if (event.key === "c") document.querySelector('main a.primary[href*="/new"]')?.click();
  var rows = Array.from(document.querySelectorAll("main tbody tr")).filter(function (row) { return row.checkVisibility() && row.querySelector("a"); });
  var at = rows.indexOf(event.target.closest("tr")), step = {j: 1, k: -1}[event.key];
  if (step) rows[at < 0 ? 0 : at + step]?.querySelector("a").focus();
  if (event.key === "x") rows[at]?.querySelector("[type=checkbox]")?.click();
});
// The box in the heading selects all rows, and a click with Shift those since the one clicked before.
document.documentElement.classList.add("scripts");
var boxClicked;
addEventListener("click", function (event) {
  var box = event.target, table = box.type === "checkbox" && box.closest("table");
  if (!table) return;
  var boxes = Array.from(table.querySelectorAll("tbody [type=checkbox]")), ends = [boxes.indexOf(boxClicked), boxes.indexOf(box)].sort(function (a, b) { return a - b; });
  boxes.forEach(function (other, i) {
    if (box.closest("thead") || event.shiftKey && ends[0] >= 0 && i >= ends[0] && i <= ends[1]) other.checked = box.checked;
  });
  boxClicked = box;
  countSelected(table);
});
function countSelected(table) {
  var boxes = table.querySelectorAll("tbody [type=checkbox]"), n = table.querySelectorAll("tbody :checked").length;
  var all = table.querySelector("thead [type=checkbox]"), status = table.parentElement.querySelector(".selection [role=status]");
  if (all) { all.checked = n > 0 && n === boxes.length; all.indeterminate = n > 0 && n < boxes.length; }
  if (status) status.textContent = n + " selected";
}
addEventListener("pageshow", function () { document.querySelectorAll("table:has(thead .all)").forEach(countSelected); });
// A picker shows those with the letters while they are entered, and those who are chosen. The button finds
// others, who are not on the page.
addEventListener("input", function (event) {
  if (event.target.id !== "find") return;
  var letters = event.target.value.trim().toLowerCase();
  event.target.form.querySelectorAll("fieldset .box").forEach(function (box) {
    box.style.display = box.textContent.toLowerCase().includes(letters) || box.querySelector(":checked") ? "" : "none";
  });
});
