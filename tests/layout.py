"""What of a page is cut off, or lies on top of something else, as the browser laid it out."""

from __future__ import annotations

_FAULTS = """
() => {
  const faults = [], room = document.documentElement.clientWidth;
  const name = (one) => {
    const text = one.textContent.trim().slice(0, 50), inside = one.closest("[id]");
    return `${one.tagName.toLowerCase()} "${text}"` + (inside ? ` in #${inside.id}` : "");
  };
  const shown = (one) => {
    const box = one.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && one.checkVisibility({opacityProperty: true, visibilityProperty: true});
  };
  const over = (a, b) => Math.min(Math.min(a.right, b.right) - Math.max(a.left, b.left),
                                  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
  if (document.documentElement.scrollWidth > room) faults.push("the page is wider than its window");
  for (const one of document.querySelectorAll("main *:not(svg *)")) {
    if (!shown(one) || one.closest(".wide, .chart") !== null && !one.matches(".wide, .chart")) continue;
    const box = one.getBoundingClientRect(), style = getComputedStyle(one);
    if (box.right > room + 1 || box.left < -1) faults.push(`outside of the window: ${name(one)}`);
    if (style.overflowX === "hidden" && one.scrollWidth > one.clientWidth + 1) faults.push(`cut off: ${name(one)}`);
    if (style.overflowX === "visible" && style.display !== "inline" && one.scrollWidth > one.clientWidth + 1)
      faults.push(`wider than its place: ${name(one)}`);
  }
  const parts = [...document.querySelectorAll("main > *")].filter(shown);
  parts.forEach((one, at) => {
    const next = parts[at + 1];
    if (next && over(one.getBoundingClientRect(), next.getBoundingClientRect()) > 1)
      faults.push(`${name(one)} lies on ${name(next)}`);
  });
  for (const chart of document.querySelectorAll(".chart")) {
    const drawing = chart.querySelector("svg");
    if (chart.scrollWidth > chart.clientWidth + 1) faults.push(`wider than the page: #${chart.id}`);
    if (!drawing) continue;
    const edge = drawing.getBoundingClientRect();
    const texts = [...drawing.querySelectorAll("text")].filter((one) => one.textContent.trim() && shown(one));
    const boxes = texts.map((one) => one.getBoundingClientRect());
    texts.forEach((one, at) => {
      const box = boxes[at];
      if (box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1 || box.bottom > edge.bottom + 1)
        faults.push(`cut off: ${name(one)}`);
      for (let other = at + 1; other < texts.length; other += 1)
        if (over(box, boxes[other]) > 3) faults.push(`${name(one)} lies on ${name(texts[other])}`);
    });
  }
  return faults;
}
"""


def faults(page):
    """A line for each part that is wider than its place, cut off, or on top of another one; texts of charts included."""
    return page.evaluate(_FAULTS)
