/** The drawing in a page: what is open, focused or pointed at lives here, all else comes from the host. */

import { html } from "./dom";
import { draw, nameRibbon } from "./draw";
import { type Place, command } from "./keyboard";
import { layout } from "./layout";
import { type MenuEntry, actionEntries, legend, menu } from "./menu";
import { type Action, type Box, type GraphData, ancestry, opened, tree } from "./model";
import { type View, view } from "./rows";
import { STYLE } from "./style";

export interface GraphState {
  readonly data: GraphData;
  /** Actions by link id; they win over those in the data. */
  readonly actions: Readonly<Record<string, string>>;
  /** The rule pattern of what is selected, or an empty text. */
  readonly selected: string;
  readonly theme: "light" | "dark";
}

export interface GraphHost {
  /** Someone chose an action; the drawing changes when the host gives new actions. */
  setAction(pattern: string, action: Action): void;
  select(pattern: string): void;
}

const NARROWEST = 380;

export class GraphComponent {
  private readonly root = html("div", { class: "memviz-graph", "data-lm-suppress-shortcuts": "true" });
  private readonly stage = html("div", { class: "scroll" });
  private readonly status = html("div", { class: "status", role: "status" });
  private readonly observer: ResizeObserver | null;
  private box: Box;
  private open: Set<string>;
  private seen: View = { rows: [], ribbons: [] };
  private focused = "";
  private menu: HTMLElement | null = null;

  constructor(
    element: HTMLElement,
    private state: GraphState,
    private readonly host: GraphHost,
  ) {
    this.box = tree(state.data);
    this.open = opened(this.box);
    this.root.append(html("style", {}, STYLE), legend(), this.stage, this.status);
    this.stage.addEventListener("click", (event) => this.clicked(event));
    this.stage.addEventListener("keydown", (event) => this.pressed(event));
    this.stage.addEventListener("focusin", (event) => {
      this.focused = (event.target as Element).closest<SVGGElement>("[data-id]")?.dataset.id ?? this.focused;
    });
    element.append(this.root);
    this.observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => this.render());
    this.observer?.observe(this.root);
    this.render();
  }

  /** Take over what the host changed. Boxes stay open across new data of the same modules. */
  update(changed: Partial<GraphState>): void {
    this.state = { ...this.state, ...changed };
    if (changed.data) {
      const known = this.seen.rows.length > 1;
      this.box = tree(changed.data);
      this.open = known ? this.open : opened(this.box);
    }
    if (changed.selected) this.reveal(changed.selected);
    this.render();
  }

  destroy(): void {
    this.observer?.disconnect();
    this.root.remove();
  }

  private render(): void {
    const { data, actions, selected, theme } = this.state;
    const hadFocus = this.stage.contains(document.activeElement);
    this.root.dataset.theme = theme;
    this.seen = view(data, this.box, this.open, actions);
    const width = Math.max(NARROWEST, (this.stage.clientWidth || 640) - 1);
    this.stage.replaceChildren(draw(this.seen, layout(this.seen, width), selected));
    const current = this.find(this.focused) ?? this.stage.querySelector<SVGGElement>("[data-id]");
    current?.setAttribute("tabindex", "0");
    if (hadFocus && !this.menu) current?.focus({ preventScroll: true });
  }

  private find(id: string): SVGGElement | null {
    return [...this.stage.querySelectorAll<SVGGElement>("[data-id]")].find((element) => element.dataset.id === id) ?? null;
  }

  /** Open the boxes around what is selected elsewhere. */
  private reveal(pattern: string): void {
    const module = pattern.split(":")[0] ?? "";
    const around = pattern.includes(":") ? ancestry(module) : ancestry(module).slice(0, -1);
    for (const path of around) this.open.add(`module ${path}`);
  }

  private clicked(event: MouseEvent): void {
    const target = event.target as Element;
    const element = target.closest<SVGGElement>("[data-id]");
    const at = element && placeOf(element);
    if (!at) return;
    this.focus(at);
    if (target.classList.contains("twisty")) this.toggle(at);
    else this.showMenu(at, event.clientX, event.clientY);
  }

  private pressed(event: KeyboardEvent): void {
    const element = (event.target as Element).closest<SVGGElement>("[data-id]");
    if (!element || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = placeOf(element);
    const found = command(event.key, at, this.seen);
    if (!found) return;
    event.preventDefault();
    event.stopPropagation();
    if (found.type === "move") this.focus(found.to);
    else if (found.type === "toggle") this.toggle(at);
    else if (found.type === "set") this.set(at, found.action);
    else {
      const { left, top, width } = element.getBoundingClientRect();
      this.showMenu(at, left + Math.min(width / 2, 120), top + 20);
    }
  }

  private focus(at: Place): void {
    const row = at.type === "row" ? this.seen.rows[at.index]?.item : this.seen.ribbons[at.index];
    if (!row) return;
    this.focused = row.id;
    this.status.textContent = at.type === "row" ? "" : nameRibbon(this.seen.ribbons[at.index]!, this.seen);
    if (row.pattern !== this.state.selected) {
      this.state = { ...this.state, selected: row.pattern };
      this.host.select(row.pattern);
    }
    this.render();
    const element = this.find(row.id);
    element?.focus({ preventScroll: true });
    element?.querySelector("text, path")?.scrollIntoView?.({ block: "nearest" });
  }

  private toggle(at: Place): void {
    const item = this.seen.rows[at.index]?.item;
    if (at.type !== "row" || item?.type !== "box") return;
    if (!this.open.delete(item.id)) this.open.add(item.id);
    this.render();
  }

  private target(at: Place): { patterns: readonly string[]; reversible: boolean; action: string } {
    if (at.type === "ribbon") return this.seen.ribbons[at.index]!;
    const { pattern, reversible } = this.seen.rows[at.index]!.item;
    return { patterns: [pattern], reversible, action: "" };
  }

  private set(at: Place, action: Action): void {
    const { patterns, reversible } = this.target(at);
    if (action === "reverse" && !reversible) {
      this.status.textContent = `${patterns[0]} is in no reversible block, so it can't be reversed`;
      return;
    }
    this.status.textContent = `${action}: ${patterns.join(", ")}`;
    for (const pattern of patterns) this.host.setAction(pattern, action);
  }

  private showMenu(at: Place, x: number, y: number): void {
    this.menu?.remove();
    const { action, reversible } = this.target(at);
    const close = (): void => {
      const shown = this.menu;
      this.menu = null;
      const hadFocus = shown?.contains(document.activeElement) ?? false;
      shown?.remove();
      if (hadFocus) this.find(this.focused)?.focus({ preventScroll: true });
    };
    const then = (act: () => void) => (): void => {
      close();
      act();
    };
    const entries: MenuEntry[] = actionEntries(action, reversible, (chosen) => then(() => this.set(at, chosen))());
    const item = at.type === "row" ? this.seen.rows[at.index] : undefined;
    if (item?.item.type === "box") entries.unshift({ label: item.open ? "close" : "open", key: "o", run: then(() => this.toggle(at)) });
    this.menu = menu(entries, close);
    const frame = this.root.getBoundingClientRect();
    const left = Math.max(0, Math.min(x - frame.left, frame.width - 170));
    this.menu.style.cssText = `left:${left}px; top:${y - frame.top + 4}px`;
    this.root.append(this.menu);
    this.menu.querySelector<HTMLButtonElement>("button")?.focus({ preventScroll: true });
  }
}

function placeOf(element: SVGGElement): Place {
  return { type: element.dataset.type === "row" ? "row" : "ribbon", index: Number(element.dataset.index) };
}
