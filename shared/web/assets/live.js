// Keeps a page up to date: it asks for itself again when the journal has grown, and every few seconds where nobody tells it of that. Where the
// server does not keep the connection, the browser asks it again every few seconds. A tab that is not seen asks for nothing: browsers open few
// connections to a server at a time.
(() => {
  "use strict";
  const page = () => document.querySelector("main[data-after]");
  if (!page()) return;
  let source = null, asked = Date.now(), heard = 0;
  const refresh = () => { if (page()) { asked = Date.now(); htmx.trigger(page(), "changed"); } };
  const listen = () => {
    if (document.hidden) { if (source) { source.close(); source = null; } return; }
    if (source && source.readyState !== EventSource.CLOSED || !page()) return;
    source = new EventSource("/live?after=" + encodeURIComponent(page().dataset.after));
    source.onopen = () => { heard = Date.now(); };
    source.onmessage = refresh;
  };
  document.addEventListener("visibilitychange", () => { listen(); if (!document.hidden) refresh(); });
  setInterval(() => {
    if (document.hidden) return;
    listen();
    const told = source && (source.readyState === EventSource.OPEN || Date.now() - heard < 10000);
    const each = page() ? Number(page().dataset.each) : 15; // seconds, for what the journal does not tell
    if (Date.now() - asked >= 1000 * (told ? each : Math.min(each, 3))) refresh();
  }, 1000);
  listen();
})();
