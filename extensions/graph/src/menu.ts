/** The small menu of actions, and the legend. */

import { html, svg } from "./dom";
import { ACTIONS, type Action, type Shown } from "./model";
import { DASHES } from "./style";

const KEYS: Readonly<Record<Action, string>> = { keep: "k", recompute: "r", swap: "s", reverse: "v" };

export interface MenuEntry {
  readonly label: string;
  readonly key: string;
  readonly action?: Action;
  readonly checked?: boolean;
  readonly disabled?: string;
  readonly run: () => void;
}

/** A menu element; arrows move in it, Escape and leaving it call `close`. */
export function menu(entries: readonly MenuEntry[], close: () => void): HTMLElement {
  const buttons = entries.map((entry) => {
    const button = html(
      "button",
      {
        type: "button",
        role: entry.action ? "menuitemradio" : "menuitem",
        "aria-checked": entry.action ? String(entry.checked ?? false) : undefined,
        "aria-disabled": entry.disabled ? "true" : undefined,
        title: entry.disabled,
        class: entry.action ?? "",
        tabindex: -1,
      },
      ...(entry.action ? [sample(entry.action)] : []),
      entry.label,
      html("kbd", {}, entry.key),
    );
    button.addEventListener("click", entry.run);
    return button;
  });
  const made = html("div", { class: "menu", role: "menu" }, ...buttons);
  made.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const entry = entries.find((one) => one.key === event.key.toLowerCase());
    if (event.key === "Escape" || event.key === "Tab") close();
    else if (step) move(buttons, step);
    else if (entry) entry.run();
    else return event.stopPropagation();
    event.preventDefault();
    event.stopPropagation();
  });
  made.addEventListener("focusout", (event) => {
    if (!made.contains(event.relatedTarget as Node | null)) close();
  });
  return made;
}

function move(buttons: readonly HTMLButtonElement[], step: number): void {
  const now = buttons.findIndex((button) => button === document.activeElement);
  buttons[(now + step + buttons.length) % buttons.length]?.focus();
}

/** The entries that set an action. */
export function actionEntries(current: string, reversible: boolean, set: (action: Action) => void): MenuEntry[] {
  return ACTIONS.map((action) => ({
    label: action,
    key: KEYS[action],
    action,
    checked: action === current,
    ...(action === "reverse" && !reversible ? { disabled: "only a reversible block can be reversed" } : {}),
    run: () => set(action),
  }));
}

export function legend(): HTMLElement {
  const entries = [...ACTIONS, "mixed" as const].map((action) => html("span", { class: action }, sample(action), action));
  return html("div", { class: "legend" }, ...entries, html("span", {}, "a link's width is its bytes"));
}

function sample(action: Shown): SVGElement {
  const line = svg("line", { x1: 0, y1: 5, x2: 34, y2: 5, "stroke-dasharray": DASHES[action] || undefined, "stroke-width": 4 });
  line.setAttribute("style", `stroke:var(--${action})`);
  return svg("svg", { width: 34, height: 10, "aria-hidden": "true" }, line);
}
