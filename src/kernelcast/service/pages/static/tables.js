// Tables to sort and search, <table id data-sortable>; order and words stay in the address.

const address = new URL(window.location);

function remember(name, value) {
  if (value) address.searchParams.set(name, value);
  else address.searchParams.delete(name);
  window.history.replaceState(null, "", address);
}

function valueOf(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value === undefined) return cell.textContent.trim().toLowerCase();
  return cell.dataset.value === "" ? null : Number(cell.dataset.value);
}

function sort(table, column, isDown) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row, column) }));
  rows.sort((one, other) => {
    if (one.value === null || other.value === null) return (one.value === null) - (other.value === null);
    const order = typeof one.value === "number" ? one.value - other.value : one.value.localeCompare(other.value);
    return isDown ? -order : order;
  });
  body.append(...rows.map(({ row }) => row));
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    if (place === column) head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isNumber = table.tBodies[0].rows[0]?.cells[column].dataset.value !== undefined;
      const before = head.getAttribute("aria-sort");
      const isDown = before ? before === "ascending" : isNumber;
      sort(table, column, isDown);
      remember(`${table.id}-sort`, `${isDown ? "-" : ""}${column}`);
    });
  });
  const kept = address.searchParams.get(`${table.id}-sort`);
  const column = Math.abs(Number.parseInt(kept, 10));
  if (column < table.tHead.rows[0].cells.length) sort(table, column, kept.startsWith("-"));
}

function makeSearch(place) {
  const table = document.getElementById(place.dataset.search);
  const field = place.querySelector("input");
  const find = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    remember(`${table.id}-search`, field.value);
  };
  place.hidden = false;
  field.value = address.searchParams.get(`${table.id}-search`) || "";
  field.addEventListener("input", find);
  if (field.value) find();
}

document.querySelectorAll("table[data-sortable]").forEach(makeSortable);
document.querySelectorAll("[data-search]").forEach(makeSearch);
