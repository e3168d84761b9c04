// The part of the page that is looked at is marked in its contents.
const entries = new Map([...document.querySelectorAll(".contents a")].map((one) => [one.hash.slice(1), one]));
const seen = new Set();
const watch = new IntersectionObserver((changes) => {
  for (const {target, isIntersecting} of changes) isIntersecting ? seen.add(target.id) : seen.delete(target.id);
  const here = [...entries.keys()].find((id) => seen.has(id));
  for (const [id, link] of entries) id === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
}, {rootMargin: "-10% 0px -60% 0px"});
for (const id of entries.keys()) watch.observe(document.getElementById(id));
// Tables that are sorted and searched; a row whose number is not known is the last. On a site both are kept in the address.
const asked = new URLSearchParams(location.search);
const keep = (names) => {
  if (!location.protocol.startsWith("http")) return;
  for (const [name, value] of Object.entries(names)) value ? asked.set(name, value) : asked.delete(name);
  const query = asked.toString();
  history.replaceState(null, "", location.pathname + (query && `?${query}`));
};
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    if (body.querySelector(`td:nth-child(${at + 1}) input`)) return;  // boxes to tick have no order
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    const title = button.textContent;
    button.addEventListener("click", () => {
      const numbers = head.classList.contains("number");
      const down = head.ariaSort ? head.ariaSort === "ascending" : numbers;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      keep({sort: title, order: head.ariaSort});
      const known = [...body.rows].some((row) => row.cells[at].dataset.value !== undefined);
      const value = ({cells}) => known ? Number(cells[at].dataset.value) : cells[at].textContent;
      const rows = [...body.rows].sort((one, two) => {
        const a = value(one), b = value(two);
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
      });
      body.append(...rows);
    });
    if (asked.get("sort") === title) {
      const order = asked.get("order");
      button.click();
      if (order && head.ariaSort !== order) button.click();
    }
  });
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  label.append("search ", input);
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  const line = document.createElement("p");
  line.className = "search";
  line.append(label);
  const choices = (table.dataset.choices || "").split(" ").filter(Boolean).map((title) => {
    const at = heads.findIndex((head) => head.textContent === title);
    const box = document.createElement("select");
    const texts = [...new Set([...body.rows].map(({cells}) => cells[at].textContent))].filter(Boolean).sort();
    box.append(new Option("all", ""), ...texts.map((text) => new Option(text)));
    if (texts.includes(asked.get(title))) box.value = asked.get(title);
    const named = document.createElement("label");
    named.append(`${title} `, box);
    line.append(named);
    box.addEventListener("change", () => search());
    return {title, at, box};
  });
  const search = () => {
    const wanted = input.value.toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      const whole = [...row.querySelectorAll("[title]")].map((one) => one.title).join(" ");
      const chosen = choices.every(({at, box}) => !box.value || row.cells[at].textContent === box.value);
      row.hidden = !(chosen && `${row.textContent} ${whole}`.toLowerCase().includes(wanted));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = ` ${shown} of ${body.rows.length} rows`;
    keep(Object.fromEntries([["search", input.value], ...choices.map(({title, box}) => [title, box.value])]));
  };
  input.addEventListener("input", search);
  input.value = asked.get("search") || "";
  if (input.value || choices.some(({box}) => box.value)) search();
  line.append(count);
  table.closest(".wide").before(line);
}
// A form that takes so many ticks says how many are there, and can be sent with neither fewer nor more.
for (const form of document.querySelectorAll("form[data-ticks]")) {
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  const send = form.querySelector("[type=submit]");
  const count = () => {
    const ticked = form.querySelectorAll("input:checked").length;
    send.disabled = ticked !== Number(form.dataset.ticks);
    said.textContent = ` ${ticked} of ${form.dataset.ticks} ticked.`;
  };
  send.after(said);
  form.addEventListener("change", count);
  addEventListener("pageshow", count);
}
// What is to be pasted elsewhere has a button that copies it; where that is refused it is selected.
for (const text of document.querySelectorAll("pre[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", () => {
    const select = () => {
      getSelection().selectAllChildren(text);
      return "Selected";
    };
    const done = navigator.clipboard ? navigator.clipboard.writeText(text.textContent).then(() => "Copied", select) : Promise.resolve(select());
    done.then((said) => { button.textContent = said; });
  });
  text.before(button);
}
