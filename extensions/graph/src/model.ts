/** What memviz.core.graph writes, and how it becomes a tree of boxes. */

export const ACTIONS = ["keep", "recompute", "swap", "reverse"] as const;
export type Action = (typeof ACTIONS)[number];
/** `mixed`: the plan treats some turns of a loop otherwise than others. */
export type Shown = Action | "mixed";

export interface ModuleData {
  readonly path: string;
  readonly kind: string;
  readonly reversible: boolean;
}

export interface NodeData {
  readonly id: string;
  readonly module: string;
  readonly op: string;
  readonly count: number;
  readonly seconds: number;
  readonly backward_seconds: number;
  readonly nbytes: number;
  readonly source: string | null;
}

export interface LinkData {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  readonly pattern: string;
  readonly nbytes: number;
  readonly count: number;
  readonly action: Action | null;
  readonly rule: string | null;
}

export interface GraphData {
  readonly title: string;
  readonly modules: readonly ModuleData[];
  readonly nodes: readonly NodeData[];
  readonly links: readonly LinkData[];
}

/** A module with what it holds, in the order in which forward reached it. Sums are over everything inside. */
export interface Box {
  readonly type: "box";
  readonly id: string;
  readonly pattern: string;
  readonly name: string;
  readonly kind: string;
  /** Whether it, a module around it or one inside it can rebuild its input from its output. */
  readonly reversible: boolean;
  readonly children: readonly Item[];
  readonly seconds: number;
  readonly backwardSeconds: number;
  readonly nbytes: number;
}

export interface Leaf {
  readonly type: "node";
  readonly id: string;
  readonly pattern: string;
  readonly name: string;
  readonly reversible: boolean;
  readonly node: NodeData;
}

export type Item = Box | Leaf;

const STEP = "(step)";

/** Paths from the outermost module's child to the module itself: `a.b` gives `a` and `a.b`. */
export function ancestry(path: string): string[] {
  if (path === "") return [];
  const parts = path.split(".");
  return parts.map((_, depth) => parts.slice(0, depth + 1).join("."));
}

/** The rule pattern that matches a module and all inside it. */
export function modulePattern(path: string): string {
  return path === "" ? "*" : path.replace(/[*?[]/g, "[$&]");
}

/** The outermost box. */
export function tree(data: GraphData): Box {
  const modules = new Map(data.modules.map((module) => [module.path, module]));
  const drafts = new Map<string, { path: string; items: (string | NodeData)[] }>();
  const open = (path: string) => {
    const known = drafts.get(path);
    if (known) return known;
    const made = { path, items: [] };
    drafts.set(path, made);
    return made;
  };
  open("");
  for (const node of data.nodes) {
    let around = "";
    for (const path of ancestry(node.module)) {
      if (!drafts.has(path)) open(around).items.push(path);
      open(path);
      around = path;
    }
    open(node.module).items.push(node);
  }
  const turns = ancestryReversible(data.modules);
  const build = (path: string): Box => {
    const children = open(path).items.map((item) => (typeof item === "string" ? build(item) : leaf(item, turns(item.module))));
    const sum = (one: (node: NodeData) => number, within: (box: Box) => number) =>
      children.reduce((total, child) => total + (child.type === "box" ? within(child) : one(child.node)), 0);
    return {
      type: "box",
      id: `module ${path}`,
      pattern: modulePattern(path),
      name: path === "" ? data.title || "model" : path === STEP ? "loss and other ops" : (path.split(".").at(-1) ?? path),
      kind: modules.get(path)?.kind ?? "",
      reversible: turns(path) || children.some((child) => child.reversible),
      children,
      seconds: sum((node) => node.seconds, (box) => box.seconds),
      backwardSeconds: sum((node) => node.backward_seconds, (box) => box.backwardSeconds),
      nbytes: sum((node) => node.nbytes, (box) => box.nbytes),
    };
  };
  return build("");
}

function leaf(node: NodeData, reversible: boolean): Leaf {
  return { type: "node", id: `node ${node.id}`, pattern: node.id, name: node.op.replace(/^aten::/, ""), reversible, node };
}

function ancestryReversible(modules: readonly ModuleData[]): (path: string) => boolean {
  const able = new Set(modules.filter((module) => module.reversible).map((module) => module.path));
  return (path) => able.has("") || ancestry(path).some((part) => able.has(part));
}

/** Ids of the boxes to open at first: outermost ones, as long as no more than `rows` rows are seen. */
export function opened(root: Box, rows = 28): Set<string> {
  const open = new Set([root.id]);
  let seen = 1 + root.children.length;
  const queue: Item[] = [...root.children];
  for (let item = queue.shift(); item; item = queue.shift()) {
    if (item.type !== "box" || seen + item.children.length > rows) continue;
    open.add(item.id);
    seen += item.children.length;
    queue.push(...item.children);
  }
  return open;
}
