// The answer is painted first, then a chart at a time, so that the first can be used while the others are drawn.
// Nothing is compiled from text (`ast`), nothing fetched (the loader refuses), and no style is added, so that the page's
// policy need allow nothing but this script.
const refused = {load: () => Promise.reject("offline"), sanitize: () => Promise.reject("offline")};
const options = {ast: true, actions: false, defaultStyle: false, tooltip: false, renderer: "svg", loader: refused};
const LEGEND_WIDTH = 240; // px of an entry with a long label
const LETTER = 6.8; // px of a title
const lines = (text, width) => text.split(" ").reduce((all, word) => {
  const longer = `${all.at(-1)} ${word}`;
  return longer.length * LETTER > width ? [...all, word] : [...all.slice(0, -1), longer.trim()];
}, [""]).filter(Boolean);
const widen = (part, width) => {
  if (typeof part.width === "number") part.width = width;
  if (typeof part.title === "string") part.title = lines(part.title, width);
  for (const inner of [...(part.vconcat || []), ...(part.layer || [])]) widen(inner, width);
};
const unlabelled = (place) => {
  for (const bound of place.querySelectorAll(".vega-bind")) {
    const input = bound.querySelector("input, select");
    const name = bound.querySelector(".vega-bind-name");
    if (input && name) input.setAttribute("aria-label", name.textContent.trim());
  }
  for (const mark of place.querySelectorAll("[role='graphics-symbol']:not([aria-label])")) {
    mark.setAttribute("aria-hidden", "true");
  }
};
const frames = (place) => [...place.querySelectorAll("[aria-roledescription='frame']")];
const reachable = (place) => frames(place).forEach((mark, at) => {
  mark.setAttribute("role", "button");
  mark.setAttribute("tabindex", at ? -1 : 0);
});
const byKeyboard = (place) => {
  const seen = (mark) => {
    const [box, all] = [mark, place.querySelector("path.background")].map((one) => one.getBoundingClientRect());
    return box.right > all.left + 1 && box.left < all.right - 1;
  };
  const steps = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
  place.addEventListener("keydown", (event) => {
    const marks = frames(place), mark = event.target;
    if (!marks.includes(mark)) return;
    const does = {Enter: "click", " ": "click", Escape: "dblclick"}[event.key];
    let next = marks[marks.indexOf(mark) + steps[event.key]];
    while (next && !seen(next)) next = marks[marks.indexOf(next) + steps[event.key]];
    if (!does && !next) return;
    event.preventDefault();
    if (does) return mark.dispatchEvent(new MouseEvent(does, {bubbles: true}));
    mark.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  });
};
const waiting = [...document.querySelectorAll("script[type='application/json']")];
const drawNext = () => {
  const data = waiting.shift();
  const place = document.getElementById(data.dataset.chart);
  const fitted = (width) => {
    const spec = JSON.parse(data.textContent);
    widen(spec, width);
    spec.config.legend.columns = Math.min(spec.config.legend.columns, Math.max(Math.floor(width / LEGEND_WIDTH), 1));
    spec.config.legend.labelLimit = Math.min(300, place.clientWidth - 80);
    return vegaEmbed(place, spec, options);
  };
  const width = Math.max(place.clientWidth - (Number(data.dataset.margin) || 70), 120);
  return fitted(width).then(() => {
    const over = place.scrollWidth - place.clientWidth; // the labels of its axis are longer than usual
    return over > 0 ? fitted(width - over) : null;
  }).then(() => {
    unlabelled(place);
    if (frames(place).length) {
      reachable(place);
      byKeyboard(place);
      const anew = () => frames(place).some((mark) => !mark.hasAttribute("tabindex")) && reachable(place);
      new MutationObserver(anew).observe(place, {childList: true, subtree: true}); // a switch draws other frames
    }
    place.dataset.drawn = "yes";
  });
};
const later = window.requestIdleCallback || setTimeout;
const drawAll = () => {
  if (waiting.length) drawNext().finally(() => later(drawAll));
};
addEventListener("beforeprint", () => { while (waiting.length) drawNext(); });
requestAnimationFrame(() => setTimeout(drawAll));
