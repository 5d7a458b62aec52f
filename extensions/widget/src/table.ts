/** A table whose rows can be chosen, as an anywidget: rows in, the chosen one out. */

interface Cell {
  readonly text: string;
  readonly tone?: string;
  readonly title?: string;
}

interface Row {
  readonly id: string;
  readonly cells: readonly Cell[];
  readonly tone?: string;
}

interface Column {
  readonly name: string;
  readonly number?: boolean;
}

interface Traits {
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  readonly empty: string;
  /** Ids of the rows to mark. */
  readonly marked: readonly string[];
}

/** The part of anywidget's model that is used. */
export interface TableModel {
  get<Name extends keyof Traits>(name: Name): Traits[Name];
  send(message: { readonly type: "choose"; readonly id: string }): void;
  on(event: string, callback: () => void): void;
  off(event: string, callback: () => void): void;
}

const EVENTS = ["change:rows", "change:marked", "change:caption"];

function render({ model, el }: { model: TableModel; el: HTMLElement }): () => void {
  const draw = (): void => {
    const focused = el.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.id : undefined;
    el.replaceChildren(table(model));
    if (focused !== undefined) rowOf(el, focused)?.focus({ preventScroll: true });
  };
  const choose = (row: HTMLElement | null): void => {
    if (row?.dataset.id) model.send({ type: "choose", id: row.dataset.id });
  };
  const clicked = (event: Event): void => choose((event.target as Element).closest<HTMLElement>("tr[data-id]"));
  const pressed = (event: KeyboardEvent): void => {
    const row = (event.target as Element).closest<HTMLElement>("tr[data-id]");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") choose(row);
    else if (event.key === "ArrowDown") (row.nextElementSibling as HTMLElement | null)?.focus();
    else if (event.key === "ArrowUp") (row.previousElementSibling as HTMLElement | null)?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  el.classList.add("memviz-table");
  el.dataset.lmSuppressShortcuts = "true";
  el.addEventListener("click", clicked);
  el.addEventListener("keydown", pressed);
  for (const event of EVENTS) model.on(event, draw);
  draw();
  return () => {
    for (const event of EVENTS) model.off(event, draw);
    el.removeEventListener("click", clicked);
    el.removeEventListener("keydown", pressed);
    el.replaceChildren();
  };
}

function rowOf(el: HTMLElement, id: string): HTMLElement | null {
  return [...el.querySelectorAll<HTMLElement>("tr[data-id]")].find((row) => row.dataset.id === id) ?? null;
}

function table(model: TableModel): HTMLElement {
  const [columns, rows, marked] = [model.get("columns"), model.get("rows"), new Set(model.get("marked"))];
  const made = element("table", "");
  made.append(element("caption", model.get("caption")));
  if (rows.length === 0) {
    const line = made.createTBody().insertRow();
    line.append(element("td", model.get("empty"), "muted"));
    return made;
  }
  const head = made.createTHead().insertRow();
  for (const column of columns) {
    const cell = element("th", column.name, column.number ? "number" : "");
    cell.scope = "col";
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) body.append(line(row, columns, marked.has(row.id)));
  return made;
}

function line(row: Row, columns: readonly Column[], marked: boolean): HTMLElement {
  const made = element("tr", "", row.tone ?? "");
  if (row.id !== "") {
    made.dataset.id = row.id;
    made.tabIndex = 0;
    made.setAttribute("aria-selected", String(marked));
  }
  row.cells.forEach((cell, index) => {
    const td = element("td", "", columns[index]?.number ? "number" : "");
    td.append(cell.tone ? element("span", cell.text, `chip ${cell.tone}`) : cell.text);
    td.title = cell.title ?? cell.text;
    made.append(td);
  });
  return made;
}

function element<Name extends keyof HTMLElementTagNameMap>(name: Name, text: string, className = ""): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

export default { render };
