// What is recorded now is asked for again and again; the page begins anew when the list has changed and nothing is ticked.
const shown = document.querySelector("[data-live]");
const LOOK_MS = 2000, SHARE = 20; // between two looks at least, and times as long as the last one took
const look = async () => {
  const began = performance.now();
  try {
    const answer = document.hidden ? null : await fetch(shown.dataset.live);
    if (answer && answer.ok) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-live]");
      const isIdle = !document.querySelector("input:checked") && document.activeElement?.type !== "search";
      if (fresh.dataset.mark !== shown.dataset.mark && isIdle) return location.reload();
      const focus = shown.contains(document.activeElement) && document.activeElement.getAttribute("href");
      shown.replaceChildren(...fresh.childNodes);
      shown.hidden = !shown.children.length;
      if (focus) shown.querySelector(`a[href="${CSS.escape(focus)}"]`)?.focus();
    }
    shown.classList.toggle("lost", Boolean(answer) && !answer.ok);
  } catch {
    shown.classList.add("lost");
  }
  setTimeout(look, Math.max(LOOK_MS, SHARE * (performance.now() - began)));
};
if (shown) setTimeout(look, LOOK_MS);
