import { expect, it } from "vitest";
import { command } from "../src/keyboard";
import { columns, layout } from "../src/layout";
import { opened, tree } from "../src/model";
import { type View, view } from "../src/rows";
import { fixture } from "./fixtures";

function chain(): View {
  const data = fixture("chain");
  const root = tree(data);
  return view(data, root, opened(root), {});
}

it("puts backward in the row of its forward, at the other side", () => {
  const placed = layout(chain(), 600);
  for (const row of placed.rows) {
    expect([row.left.y, row.left.height]).toEqual([row.right.y, row.right.height]);
    expect(row.left.x + row.left.width).toBe(columns(600).left);
    expect(row.right.x).toBe(600 - columns(600).right);
  }
});

it("puts what is inside a box inside its rectangle, and rows below each other", () => {
  const seen = chain();
  const placed = layout(seen, 600);
  seen.rows.forEach((row, index) => {
    const outer = placed.rows[index]!.left;
    for (let inside = index + 1; inside <= row.last; inside++) {
      const inner = placed.rows[inside]!.left;
      expect(inner.y).toBeGreaterThan(outer.y);
      expect(inner.y + inner.height).toBeLessThanOrEqual(outer.y + outer.height);
      expect(inner.x).toBeGreaterThan(outer.x);
    }
  });
});

it("draws links as wide as their bytes", () => {
  const seen = chain();
  const [first, second] = seen.ribbons;
  const half = { ...seen, ribbons: [{ ...first!, nbytes: 500 }, { ...second!, nbytes: 1000 }, { ...second!, nbytes: 0 }] };
  const widths = layout(half, 600).ribbons.map((ribbon) => ribbon.width);
  expect(widths[2]).toBe(1.5);
  expect(widths[0]! - 1.5).toBeCloseTo((widths[1]! - 1.5) / 2);
});

it("puts no label over another", () => {
  const seen = chain();
  const many = { ...seen, ribbons: Array.from({ length: 6 }, () => seen.ribbons[0]!) };
  const labels = layout(many, 600).ribbons.flatMap((ribbon) => (ribbon.label ? [ribbon.label] : []));
  expect(labels.length).toBeGreaterThan(0);
  for (const [index, a] of labels.entries())
    for (const b of labels.slice(index + 1)) expect(Math.abs(a.y - b.y) >= 14 || Math.abs(a.x - b.x) >= 118).toBe(true);
});

it("moves along rows, across a link and back", () => {
  const seen = chain();
  const places = seen.rows.map((row) => row.item.name);
  expect(places).toEqual(["chain", "a", "mm", "b", "relu", "c", "mm"]);
  const at = { type: "row", index: 2 } as const;
  expect(command("ArrowDown", at, seen)).toEqual({ type: "move", to: { type: "row", index: 3 } });
  expect(command("ArrowRight", at, seen)).toEqual({ type: "move", to: { type: "ribbon", index: 0 } });
  expect(command("ArrowRight", { type: "ribbon", index: 0 }, seen)).toEqual({ type: "move", to: { type: "row", index: 4 } });
  expect(command("ArrowLeft", { type: "ribbon", index: 0 }, seen)).toEqual({ type: "move", to: at });
  expect(command("Enter", { type: "row", index: 1 }, seen)).toEqual({ type: "toggle" });
  expect(command("Enter", at, seen)).toEqual({ type: "menu" });
  expect(command("v", at, seen)).toEqual({ type: "set", action: "reverse" });
  expect(command("x", at, seen)).toBeNull();
});
