/** What a key does, apart from anything drawn. Places are a row or a ribbon, by index. */

import type { Action } from "./model";
import type { Ribbon, View } from "./rows";

export type Place = { readonly type: "row" | "ribbon"; readonly index: number };

export type Command =
  | { readonly type: "move"; readonly to: Place }
  | { readonly type: "toggle" }
  | { readonly type: "menu" }
  | { readonly type: "set"; readonly action: Action };

const LETTERS: Readonly<Record<string, Action>> = { k: "keep", r: "recompute", s: "swap", v: "reverse" };

/** The command of a key at a place; null for keys that do nothing there. */
export function command(key: string, at: Place, seen: View): Command | null {
  const action = LETTERS[key.toLowerCase()];
  if (action) return { type: "set", action };
  if (key === "Enter" || key === " ") {
    const isBox = at.type === "row" && seen.rows[at.index]?.item.type === "box";
    return isBox && key === "Enter" ? { type: "toggle" } : { type: "menu" };
  }
  const to = at.type === "row" ? fromRow(key, at.index, seen) : fromRibbon(key, at.index, seen);
  return to ? { type: "move", to } : null;
}

function fromRow(key: string, index: number, seen: View): Place | null {
  const row = (next: number): Place => ({ type: "row", index: Math.max(0, Math.min(seen.rows.length - 1, next)) });
  const first = (test: (ribbon: Ribbon) => boolean): Place | null => {
    const found = seen.ribbons.findIndex(test);
    return found < 0 ? null : { type: "ribbon", index: found };
  };
  const inside = (end: number): boolean => end >= index && end <= (seen.rows[index]?.last ?? index);
  switch (key) {
    case "ArrowDown":
      return row(index + 1);
    case "ArrowUp":
      return row(index - 1);
    case "Home":
      return row(0);
    case "End":
      return row(seen.rows.length - 1);
    case "ArrowRight":
      return first((ribbon) => inside(ribbon.source)) ?? first((ribbon) => inside(ribbon.target));
    default:
      return null;
  }
}

function fromRibbon(key: string, index: number, seen: View): Place | null {
  const step = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
  if (step) return { type: "ribbon", index: Math.max(0, Math.min(seen.ribbons.length - 1, index + step)) };
  const ribbon = seen.ribbons[index];
  if (!ribbon) return null;
  if (key === "ArrowLeft") return { type: "row", index: ribbon.source };
  return key === "ArrowRight" ? { type: "row", index: ribbon.target } : null;
}
