// @vitest-environment jsdom
import { expect, it, vi } from "vitest";
import { fixture } from "../../graph/tests/fixtures";
import widget, { type WidgetModel } from "../src/graph";

const { render } = widget;

function model(): { made: WidgetModel; traits: Record<string, unknown>; send: ReturnType<typeof vi.fn>; tell: (event: string) => void } {
  const traits: Record<string, unknown> = { model: fixture("chain"), actions: {}, selected: "" };
  const handlers = new Map<string, () => void>();
  const send = vi.fn();
  const made = {
    get: (name: string) => traits[name],
    set: (name: string, value: unknown) => (traits[name] = value),
    save_changes: vi.fn(),
    send,
    on: (event: string, callback: () => void) => handlers.set(event, callback),
    off: (event: string) => handlers.delete(event),
  } as unknown as WidgetModel;
  return { made, traits, send, tell: (event) => handlers.get(event)?.() };
}

it("sends a chosen action as the message that Python reads", () => {
  const { made, send, traits } = model();
  render({ model: made, el: document.body });
  const box = [...document.querySelectorAll<SVGGElement>(".row.box")].find((row) => row.dataset.id === "module b")!;
  box.focus();
  box.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  document.querySelector<HTMLElement>(".menu .swap")!.click();
  expect(send.mock.calls).toEqual([[{ type: "set_action", pattern: "b", action: "swap" }]]);
  expect(traits.selected).toBe("b");
});

it("draws new actions, and goes away whole", () => {
  document.body.replaceChildren();
  const { made, traits, tell } = model();
  const cleanup = render({ model: made, el: document.body });
  traits.actions = { "a:aten::mm#0@*.0>b:aten::relu@*.0": "swap" };
  tell("change:actions");
  expect(document.querySelectorAll(".ribbon.swap")).toHaveLength(1);
  cleanup();
  expect(document.body.childElementCount).toBe(0);
});

it("follows JupyterLab's theme", () => {
  document.body.replaceChildren();
  document.body.dataset.jpThemeLight = "false";
  render({ model: model().made, el: document.body });
  expect(document.querySelector<HTMLElement>(".memviz-graph")!.dataset.theme).toBe("dark");
});
