// Tables that are sorted and searched; a row whose number is not known is the last.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const numbers = head.classList.contains("number");
      const down = head.ariaSort ? head.ariaSort === "ascending" : numbers;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const known = [...body.rows].some((row) => row.cells[at].dataset.value !== undefined);
      const value = ({cells}) => known ? Number(cells[at].dataset.value) : cells[at].textContent;
      const rows = [...body.rows].sort((one, two) => {
        const a = value(one), b = value(two);
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
      });
      body.append(...rows);
    });
  });
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "search";
  label.append("search ", input);
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    let shown = 0;
    for (const row of body.rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = ` ${shown} of ${body.rows.length} rows`;
  });
  const line = document.createElement("p");
  line.className = "search";
  line.append(label, count);
  table.closest(".wide").before(line);
}
