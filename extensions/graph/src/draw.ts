/** A layout as SVG; it knows nothing of events. Every row and ribbon is a focusable element with its index and a name. */

import { svg } from "./dom";
import { type Layout, type PlacedRow, type Rect, ROW } from "./layout";
import type { Item } from "./model";
import type { Ribbon, Row, View } from "./rows";
import { DASHES } from "./style";
import { formatBytes, formatSeconds } from "./units";

const LETTER = 6.4;

export function draw(seen: View, placed: Layout, selected: string): SVGSVGElement {
  const boxes = seen.rows.map((row, index) => drawRow(row, index, placed.rows[index] as PlacedRow, selected));
  const links = seen.ribbons.map((_, index) => drawRibbon(seen, index, placed, selected));
  const labels = seen.ribbons.flatMap((ribbon, index) => drawLabel(ribbon, placed.ribbons[index]?.label ?? null));
  const right = placed.rows[0]?.right.x ?? 0;
  return svg(
    "svg",
    { width: placed.width, height: placed.height, role: "group", "aria-label": "computation graph" },
    svg("text", { x: 4, y: 19, class: "dim" }, "↓ forward, and what it saves"),
    svg("text", { x: right + 4, y: 19, class: "dim" }, "↑ backward, and its time"),
    ...boxes,
    ...links,
    ...labels,
  );
}

function drawRow(row: Row, index: number, placed: PlacedRow, selected: string): SVGGElement {
  const { item } = row;
  const [nbytes, forward, backward] = figures(item);
  const isBox = item.type === "box";
  const twisty = isBox ? (row.open ? "▾ " : "▸ ") : "";
  const saved = nbytes ? formatBytes(nbytes) : "";
  const title = `${describe(item)}: saves ${formatBytes(nbytes)}, forward ${formatSeconds(forward)}, backward ${formatSeconds(backward)}`;
  return svg(
    "g",
    {
      class: `row ${item.type}${selected !== "" && item.pattern === selected ? " selected" : ""}`,
      "data-type": "row",
      "data-index": index,
      "data-id": item.id,
      role: "button",
      tabindex: -1,
      "aria-label": title,
      "aria-expanded": isBox ? String(row.open) : undefined,
    },
    svg("title", {}, title),
    svg("rect", { ...placed.left }),
    svg("rect", { ...placed.right }),
    ...caption(twisty + heading(item), saved, placed.left),
    ...caption(twisty + item.name, backward ? formatSeconds(backward) : "", placed.right),
    ...(isBox ? [placed.left, placed.right].map((at) => svg("rect", { class: "twisty", x: at.x, y: at.y, width: 20, height: ROW - 6 })) : []),
  );
}

function figures(item: Item): [number, number, number] {
  if (item.type === "box") return [item.nbytes, item.seconds, item.backwardSeconds];
  return [item.node.nbytes, item.node.seconds, item.node.backward_seconds];
}

function heading(item: Item): string {
  if (item.type === "box") return item.kind ? `${item.name}  ${item.kind}` : item.name;
  return item.node.count > 1 ? `${item.name} ×${item.node.count}` : item.name;
}

/** What an item is, for a tooltip and for someone who can't see it. */
export function describe(item: Item): string {
  if (item.type === "box") return `module ${item.pattern === "*" ? item.name : item.pattern} ${item.kind}`.trim();
  const source = item.node.source ? ` at ${item.node.source}` : "";
  return `${item.node.op} in ${item.node.module || "the model itself"}, ${item.node.count} ${item.node.count === 1 ? "call" : "calls"}${source}`;
}

function caption(text: string, figure: string, at: Rect): SVGElement[] {
  const y = at.y + 14;
  const room = Math.floor((at.width - 16 - figure.length * LETTER) / LETTER);
  const shown = text.length > room ? `${text.slice(0, Math.max(1, room - 1))}…` : text;
  return [
    svg("text", { x: at.x + 6, y }, shown),
    svg("text", { x: at.x + at.width - 6, y, "text-anchor": "end", class: "dim" }, figure),
  ];
}

function drawRibbon(seen: View, index: number, placed: Layout, selected: string): SVGGElement {
  const ribbon = seen.ribbons[index] as Ribbon;
  const shape = placed.ribbons[index];
  const title = nameRibbon(ribbon, seen);
  const isSelected = selected !== "" && ribbon.patterns.includes(selected);
  return svg(
    "g",
    {
      class: `ribbon ${ribbon.action}${isSelected ? " selected" : ""}`,
      "data-type": "ribbon",
      "data-index": index,
      "data-id": ribbon.id,
      role: "button",
      tabindex: -1,
      "aria-label": title,
    },
    svg("title", {}, title),
    svg("path", { class: "hit", d: shape?.path, "stroke-width": Math.max(12, (shape?.width ?? 0) + 6) }),
    svg("path", { class: "line", d: shape?.path, "stroke-width": shape?.width, "stroke-dasharray": DASHES[ribbon.action] || undefined }),
  );
}

/** What a ribbon is, in words. */
export function nameRibbon(ribbon: Ribbon, seen: View): string {
  const [from, to] = [seen.rows[ribbon.source]?.item.name, seen.rows[ribbon.target]?.item.name];
  const values = ribbon.count === 1 ? "1 value" : `${ribbon.count} values`;
  const rules = ribbon.rules.length ? `, by ${ribbon.rules.slice(0, 3).join(" and ")}${ribbon.rules.length > 3 ? " and others" : ""}` : "";
  return `${from} saves ${formatBytes(ribbon.nbytes)} in ${values} for the backward of ${to}: ${ribbon.action}${rules}`;
}

function drawLabel(ribbon: Ribbon, at: { x: number; y: number } | null): SVGElement[] {
  if (!at) return [];
  return [svg("text", { class: `label ${ribbon.action}`, x: at.x, y: at.y + 4 }, `${ribbon.action} ${formatBytes(ribbon.nbytes)}`)];
}
