/** What can be seen: rows of boxes and ops, and links joined where a closed box hides their ends. */

import type { Action, Box, GraphData, Item, LinkData, Shown } from "./model";

export interface Row {
  readonly item: Item;
  readonly depth: number;
  readonly open: boolean;
  /** Index of the last row inside it; its own where it is closed or an op. */
  readonly last: number;
}

/** Links that share their visible ends and their action. */
export interface Ribbon {
  readonly id: string;
  readonly source: number;
  readonly target: number;
  readonly action: Shown;
  /** Each value counted once per ribbon, as far as the values of one pattern contain each other. */
  readonly nbytes: number;
  readonly count: number;
  /** The rule patterns that set its action, and the one that stands for it in a selection. */
  readonly patterns: readonly string[];
  readonly pattern: string;
  readonly rules: readonly string[];
  readonly reversible: boolean;
}

export interface View {
  readonly rows: readonly Row[];
  readonly ribbons: readonly Ribbon[];
}

export function view(data: GraphData, root: Box, open: ReadonlySet<string>, actions: Readonly<Record<string, string>>): View {
  const { rows, places } = list(root, open);
  return { rows, ribbons: join(data.links, rows, places, actions) };
}

function list(root: Box, open: ReadonlySet<string>): { rows: Row[]; places: Map<string, number> } {
  const rows: Row[] = [];
  const places = new Map<string, number>();
  const hide = (item: Item, row: number): void => {
    if (item.type === "node") places.set(item.node.id, row);
    else for (const child of item.children) hide(child, row);
  };
  const show = (item: Item, depth: number): void => {
    const index = rows.length;
    const isOpen = item.type === "box" && open.has(item.id);
    rows.push({ item, depth, open: isOpen, last: index });
    if (item.type === "box" && isOpen) for (const child of item.children) show(child, depth + 1);
    else hide(item, index);
    rows[index] = { item, depth, open: isOpen, last: rows.length - 1 };
  };
  show(root, 0);
  return { rows, places };
}

function join(
  links: readonly LinkData[],
  rows: readonly Row[],
  places: ReadonlyMap<string, number>,
  actions: Readonly<Record<string, string>>,
): Ribbon[] {
  const groups = new Map<string, { source: number; target: number; action: Shown; links: LinkData[] }>();
  for (const link of links) {
    const source = places.get(link.source);
    const target = places.get(link.target);
    if (source === undefined || target === undefined) continue;
    const action = shown(actions[link.id], link.action);
    const id = `link ${rows[source]?.item.id} > ${rows[target]?.item.id} ${action}`;
    const group = groups.get(id) ?? { source, target, action, links: [] };
    group.links.push(link);
    groups.set(id, group);
  }
  return [...groups]
    .map(([id, group]) => ribbon(id, group.source, group.target, group.action, group.links, rows))
    .sort((a, b) => a.source - b.source || a.target - b.target);
}

function shown(given: string | undefined, own: Action | null): Shown {
  return (given as Shown | undefined) ?? own ?? "mixed";
}

function ribbon(id: string, source: number, target: number, action: Shown, links: LinkData[], rows: readonly Row[]): Ribbon {
  const largest = new Map<string, LinkData>();
  for (const link of links) if (link.nbytes >= (largest.get(link.pattern)?.nbytes ?? 0)) largest.set(link.pattern, link);
  const kept = [...largest.values()];
  const patterns = [...largest.keys()];
  const from = rows[source]?.item;
  return {
    id,
    source,
    target,
    action,
    nbytes: kept.reduce((total, link) => total + link.nbytes, 0),
    count: kept.reduce((total, link) => total + link.count, 0),
    patterns,
    pattern: (patterns.length === 1 ? patterns[0] : from?.pattern) ?? "",
    rules: [...new Set(links.map((link) => link.rule).filter((rule): rule is string => rule !== null))],
    reversible: from?.reversible ?? false,
  };
}
