// What the keyboard and a page's texts offer: keys that lead to pages, copying, and times in the viewer's zone. Nothing needs it.
(() => {
  "use strict";
  const keys = document.getElementById("keys");
  const shown = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

  // Times say on hover when that was here, besides the exact one.
  const tell = (time) => {
    const at = new Date(time.dateTime);
    if (!isNaN(at)) time.title = shown.format(at) + "\n" + time.dateTime;
  };

  // What is worth copying has a button beside it, where the browser lets a page copy.
  const copyable = (text) => {
    if (!navigator.clipboard || text.nextElementSibling && text.nextElementSibling.matches(".copy")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy " + (text.dataset.copy || text.textContent).slice(0, 60));
    text.after(button);
  };

  const dress = () => {
    document.querySelectorAll("main time").forEach(tell);
    document.querySelectorAll("main [data-copy]").forEach(copyable);
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const text = button.previousElementSibling;
    navigator.clipboard.writeText(text.dataset.copy || text.textContent).then(
      () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); },
      () => { button.textContent = "Not allowed"; });
  });

  // g and a letter lead to a page; / goes to the filter; ? shows the keys.
  let going = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    if (event.key === "?" && keys) { event.preventDefault(); if (keys.open) keys.close(); else keys.showModal(); return; }
    if (keys && keys.open) return;
    const filter = document.querySelector("main .filter input:not([type=hidden], [type=range])");
    if (event.key === "/" && filter) { event.preventDefault(); filter.focus(); return; }
    if (Date.now() - going < 1500) {
      const to = document.querySelector("nav a[data-key='" + CSS.escape(event.key) + "']");
      going = 0;
      if (to) to.click();
      return;
    }
    if (event.key === "g") going = Date.now();
  });

  document.addEventListener("htmx:afterSettle", dress);
  dress();
})();
