import { describe, expect, it } from "vitest";
import { type Box, type Item, modulePattern, opened, tree } from "../src/model";
import { view } from "../src/rows";
import { formatBytes, formatSeconds } from "../src/units";
import { fixture } from "./fixtures";

const names = (items: readonly Item[]): string[] => items.map((item) => item.name);
const KIB = 1024;

describe("the tree", () => {
  it("holds modules in the order in which forward reached them, and sums what they hold", () => {
    const root = tree(fixture("blocks"));
    expect(names(root.children)).toEqual(["blocks", "loss and other ops"]);
    const blocks = root.children[0] as Box;
    expect(names(blocks.children)).toEqual(["0", "1"]);
    expect(names((blocks.children[0] as Box).children)).toEqual(["conv", "relu"]);
    // Two convolutions of 4 KiB wait; four forward ops of a second each; two backward ones.
    expect([blocks.nbytes, blocks.seconds, blocks.backwardSeconds]).toEqual([8 * KIB, 4, 2]);
  });

  it("knows where reversing is possible", () => {
    const blocks = tree(fixture("blocks")).children[0] as Box;
    expect(blocks.children.map((block) => block.reversible)).toEqual([false, true]);
    expect((blocks.children[1] as Box).children.every((child) => child.reversible)).toBe(true);
  });

  it("opens outer boxes first, and no more than fit", () => {
    const root = tree(fixture("blocks"));
    expect(opened(root, 3)).toEqual(new Set(["module "]));
    expect(opened(root, 5)).toEqual(new Set(["module ", "module blocks"]));
    expect(opened(root, 6)).toEqual(new Set(["module ", "module blocks", "module (step)"]));
  });

  it("writes a module's name so that it isn't a glob", () => {
    expect(modulePattern("a[0].b*")).toBe("a[[]0].b[*]");
    expect(modulePattern("")).toBe("*");
  });
});

describe("what is seen", () => {
  it("joins links at the closed box that hides their ends", () => {
    const data = fixture("blocks");
    const root = tree(data);
    const seen = view(data, root, new Set(["module ", "module blocks"]), {});
    expect(seen.rows.map((row) => [row.item.name, row.depth, row.last])).toEqual([
      ["blocks", 0, 4],
      ["blocks", 1, 3],
      ["0", 2, 2],
      ["1", 2, 3],
      ["loss and other ops", 1, 4],
    ]);
    expect(seen.ribbons.map((one) => [one.source, one.target, one.action, one.nbytes, one.patterns])).toEqual([
      [2, 2, "recompute", 4 * KIB, ["blocks.0.conv:aten::convolution#0@*.0"]],
      [3, 3, "reverse", 4 * KIB, ["blocks.1.conv:aten::convolution#0@*.0"]],
    ]);
  });

  it("keeps links of different actions apart, and joins those of one", () => {
    const data = fixture("blocks");
    const root = tree(data);
    const closed = new Set(["module "]);
    expect(view(data, root, closed, {}).ribbons.map((one) => one.action).sort()).toEqual(["recompute", "reverse"]);
    const all = Object.fromEntries(data.links.map((link) => [link.id, "swap"]));
    const [joined, ...rest] = view(data, root, closed, all).ribbons;
    expect(rest).toEqual([]);
    expect([joined?.nbytes, joined?.count, joined?.pattern]).toEqual([8 * KIB, 2, "blocks"]);
    expect(joined?.patterns).toHaveLength(2);
  });

  it("counts a value once where two ops in one box save it, and is small for a loop of 400 turns", () => {
    const data = fixture("loop");
    const root = tree(data);
    const closed = view(data, root, new Set(["module "]), {});
    expect(closed.ribbons.map((one) => [one.nbytes, one.count, one.action])).toEqual([[400 * 4 * KIB, 400, "mixed"]]);
    const open = view(data, root, opened(root), {});
    expect(open.rows).toHaveLength(4);
    expect(open.ribbons.map((one) => one.count)).toEqual([399, 400]);
  });
});

describe("units", () => {
  it("reads as in Python", () => {
    expect([formatBytes(1536), formatBytes(12), formatSeconds(0.0123), formatSeconds(2)]).toEqual(["1.5 KiB", "12 B", "12.3 ms", "2.00 s"]);
  });
});
