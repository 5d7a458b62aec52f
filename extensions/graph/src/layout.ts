/** Where everything goes: forward at the left, its backward at the right in the same row, links between. All in pixels. */

import type { Ribbon, View } from "./rows";

export const ROW = 26;
export const TOP = 30;
const INDENT = 10;
const INSET = 3;
const WIDEST = 14;
const THINNEST = 1.5;
const LABEL = { width: 118, height: 14 };

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface PlacedRow {
  readonly left: Rect;
  readonly right: Rect;
}

export interface PlacedRibbon {
  readonly path: string;
  readonly width: number;
  /** Where its label goes; null where other labels leave no room. */
  readonly label: { readonly x: number; readonly y: number } | null;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly rows: readonly PlacedRow[];
  readonly ribbons: readonly PlacedRibbon[];
}

/** Widths of the columns: forward's is the wider one, as it has the longer names; links keep the room that their labels need. */
export function columns(width: number): { readonly left: number; readonly right: number } {
  const both = Math.min(width * 0.66, width - LABEL.width);
  return { left: Math.min(320, Math.round(both * 0.57)), right: Math.min(240, Math.round(both * 0.43)) };
}

export function layout(seen: View, width: number): Layout {
  const side = columns(width);
  const rows = seen.rows.map((row, index): PlacedRow => {
    const inset = row.depth * INDENT;
    const height = (row.last - index + 1) * ROW - 2 * INSET + (row.last > index ? INSET - 1 : 0);
    const y = TOP + index * ROW + INSET;
    return {
      left: { x: inset, y, width: side.left - inset, height },
      right: { x: width - side.right, y, width: side.right - inset, height },
    };
  });
  const most = Math.max(1, ...seen.ribbons.map((ribbon) => ribbon.nbytes));
  const [starts, ends] = [ports(seen.ribbons, "source"), ports(seen.ribbons, "target")];
  const curves = seen.ribbons.map((ribbon, index) => ({
    from: { x: side.left, y: TOP + (ribbon.source + 0.5) * ROW + (starts[index] ?? 0) },
    to: { x: width - side.right, y: TOP + (ribbon.target + 0.5) * ROW + (ends[index] ?? 0) },
  }));
  const labels = place(curves, seen.ribbons);
  return {
    width,
    height: TOP + seen.rows.length * ROW + INSET,
    rows,
    ribbons: seen.ribbons.map((ribbon, index) => ({
      path: bend(curves[index] as Curve),
      width: THINNEST + ((WIDEST - THINNEST) * ribbon.nbytes) / most,
      label: labels[index] ?? null,
    })),
  };
}

interface Point {
  readonly x: number;
  readonly y: number;
}
interface Curve {
  readonly from: Point;
  readonly to: Point;
}

/** Offsets that spread the links of one row over its height, those to upper rows above those to lower ones. */
function ports(ribbons: readonly Ribbon[], end: "source" | "target"): number[] {
  const other = end === "source" ? "target" : "source";
  const offsets = new Array<number>(ribbons.length).fill(0);
  for (const group of grouped(ribbons, end)) {
    group.sort((a, b) => (ribbons[a]?.[other] ?? 0) - (ribbons[b]?.[other] ?? 0));
    const step = Math.min(8, (ROW - 8) / group.length);
    group.forEach((index, place) => (offsets[index] = (place - (group.length - 1) / 2) * step));
  }
  return offsets;
}

function bend({ from, to }: Curve): string {
  const middle = (from.x + to.x) / 2;
  return `M${from.x},${from.y} C${middle},${from.y} ${middle},${to.y} ${to.x},${to.y}`;
}

/** A point of the curve; t from 0 to 1. */
function along({ from, to }: Curve, t: number): Point {
  const middle = (from.x + to.x) / 2;
  const [a, b, c, d] = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3];
  return { x: a * from.x + (b + c) * middle + d * to.x, y: (a + b) * from.y + (c + d) * to.y };
}

/** Labels on their links, the largest first, none over another. */
function place(curves: readonly Curve[], ribbons: readonly Ribbon[]): (Point | null)[] {
  const taken: Point[] = [];
  const labels = new Array<Point | null>(curves.length).fill(null);
  const order = [...ribbons.keys()].sort((a, b) => (ribbons[b]?.nbytes ?? 0) - (ribbons[a]?.nbytes ?? 0));
  for (const index of order) {
    const curve = curves[index] as Curve;
    if (curve.to.x - curve.from.x < LABEL.width) continue;
    const free = [0.5, 0.38, 0.62].map((t) => along(curve, t)).find((point) => taken.every((other) => apart(point, other)));
    if (!free) continue;
    taken.push(free);
    labels[index] = free;
  }
  return labels;
}

function apart(a: Point, b: Point): boolean {
  return Math.abs(a.x - b.x) >= LABEL.width || Math.abs(a.y - b.y) >= LABEL.height;
}

function grouped(ribbons: readonly Ribbon[], end: "source" | "target"): Iterable<number[]> {
  const groups = new Map<number, number[]>();
  ribbons.forEach((ribbon, index) => groups.set(ribbon[end], [...(groups.get(ribbon[end]) ?? []), index]));
  return groups.values();
}
