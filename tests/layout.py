"""What of a page is cut off, broken, empty, or on top of something else, as the browser laid it out; what no key reaches."""

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
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let count = 0; count < MOST_TEXTS && texts.nextNode(); count += 1) {
    const text = texts.currentNode;
    if (text.parentElement.closest("svg, script") || !shown(text.parentElement)) continue;
    for (const {0: word, index} of text.data.matchAll(/\\S{6,}/g)) {
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const lines = new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size;
      if (lines > 2 && word.length / lines < 8) faults.push(`broken letter by letter: ${word}`);
    }
  }
  for (const one of document.querySelectorAll("main section, main table, main figure")) {
    if (!shown(one)) continue;
    const said = one.cloneNode(true);
    said.querySelectorAll("h2, h3, thead, figcaption, script").forEach((part) => part.remove());
    if (!said.textContent.trim() && !said.querySelector("svg")) faults.push(`empty: ${name(one)}`);
  }
  return faults;
}
""".replace("MOST_TEXTS", "5000")
_UNREACHED = """
() => [...document.querySelectorAll("a[href], button:enabled, input, select, summary, [tabindex='0']")]
  .filter((one) => one.checkVisibility({opacityProperty: true, visibilityProperty: true}) && !one.dataset.reached)
  .map((one) => one.outerHTML.slice(0, 100))
"""


def faults(page):
    """A line for each part that is wider than its place, cut off, empty, or on top of another one, texts of charts
    included, and for each word that is broken letter by letter.
    """
    return page.evaluate(_FAULTS)


def unreached(page):
    """What can be used with the mouse, and is not reached with the Tab key: a line for each."""
    page.evaluate("document.addEventListener('focusin', ({target}) => { target.dataset.reached = 'yes' })")
    page.evaluate("document.activeElement.blur()")
    for _ in range(1 + len(page.evaluate(_UNREACHED))):
        page.keyboard.press("Tab")
    return page.evaluate(_UNREACHED)
