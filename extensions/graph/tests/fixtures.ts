/** The hand-made steps that pytest checks against what Python makes of them. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { GraphData } from "../src/model";

export function fixture(name: "chain" | "loop" | "blocks"): GraphData {
  const path = resolve(import.meta.dirname, `../../../tests/fixtures/graph-${name}.json`);
  return JSON.parse(readFileSync(path, "utf8")) as GraphData;
}
