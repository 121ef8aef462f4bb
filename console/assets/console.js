// A second click sends nothing while the first request runs. The server does the same for
// everyone (the key of the form), but answers the second click, which may hide a secret.
addEventListener("submit", function (event) {
  var form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
addEventListener("pageshow", function () {
  document.querySelectorAll("form[data-sent]").forEach(function (form) { delete form.dataset.sent; });
});
