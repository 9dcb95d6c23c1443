// Keeps the page up to date while blocks come. Without this script the same page is complete, and still.
"use strict";
(() => {
  const { body } = document;
  const changing = ["/", "/blocks"].includes(location.pathname) || location.pathname.startsWith("/studies/");
  if (!body.hasAttribute("data-live") || !changing || location.search) return;
  let busy = false;

  async function renew() {
    if (busy || document.hidden) return;
    busy = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
      const main = document.querySelector("main");
      tell("");
      if (!next || main.innerHTML === next.innerHTML) return;
      for (const details of main.querySelectorAll("details[open]")) {
        const same = details.id && next.querySelector(`#${CSS.escape(details.id)}`);
        if (same) same.open = true;
      }
      for (const arrow of main.querySelectorAll(".arrow")) {
        const same = next.querySelector(`${arrow.localName}.arrow[data-step="${CSS.escape(arrow.dataset.step)}"]`);
        if (same && Number(same.dataset.last) > Number(arrow.dataset.last)) same.classList.add("new");
      }
      const active = document.activeElement;
      const focused = main.contains(active) ? active.getAttribute("href") : null;
      main.replaceChildren(...next.childNodes);
      if (focused) main.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    } catch {
      // The node is away; the next block tells.
    } finally {
      busy = false;
    }
  }

  // When the next block is due, by when the last one came: clocks need not agree.
  function tell(words) {
    for (const place of document.querySelectorAll(".next")) place.textContent = words;
  }

  const seconds = Math.max(1, Number(body.dataset.seconds) || 5);
  let due = 0;
  setInterval(() => {
    const left = Math.ceil((due - performance.now()) / 1000);
    if (due && seconds >= 3) tell(left > 0 ? `; the next in about ${left} s` : "; the next is due");
  }, 1000);
  const poll = () => setInterval(renew, seconds * 1000);
  if (body.hasAttribute("data-events")) {
    const events = new EventSource("/v1/events");
    let polls = false;
    events.addEventListener("block", () => {
      due = performance.now() + seconds * 1000;
      renew();
    });
    events.onerror = () => {
      if (events.readyState !== EventSource.CLOSED || polls) return;
      polls = true;
      poll();
    };
  } else poll();
  document.addEventListener("visibilitychange", renew);
})();
