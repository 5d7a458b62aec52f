// @vitest-environment jsdom
import { beforeEach, expect, it, vi } from "vitest";
import { GraphComponent } from "../src/component";
import { fixture } from "./fixtures";

const host = { setAction: vi.fn(), select: vi.fn() };
let component: GraphComponent;

beforeEach(() => {
  vi.clearAllMocks();
  document.body.replaceChildren();
  component = new GraphComponent(document.body, { data: fixture("blocks"), actions: {}, selected: "", theme: "light" }, host);
});

const find = (id: string): SVGGElement => {
  const found = [...document.querySelectorAll<SVGGElement>("[data-id]")].find((element) => element.dataset.id === id);
  if (!found) throw new Error(`nothing drawn is ${id}`);
  return found;
};
const press = (key: string): boolean => document.activeElement!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const click = (element: Element): boolean => element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
const entry = (label: string): HTMLElement =>
  [...document.querySelectorAll<HTMLElement>(".menu button")].find((button) => button.textContent?.includes(label))!;
const rows = (): number => document.querySelectorAll(".row").length;

it("sets a module's action by mouse, and says what is selected", () => {
  click(find("module blocks.0"));
  click(entry("recompute"));
  expect(host.setAction.mock.calls).toEqual([["blocks.0", "recompute"]]);
  expect(host.select.mock.calls).toEqual([["blocks.0"]]);
  expect(document.querySelector(".menu")).toBeNull();
});

it("sets a link's action by keys alone", () => {
  find("module blocks.0.conv").focus();
  press("ArrowDown");
  press("ArrowUp");
  press("Enter");
  press("ArrowDown");
  press("ArrowRight");
  const pattern = "blocks.0.conv:aten::convolution#0@*.0";
  expect(document.activeElement?.classList.contains("ribbon")).toBe(true);
  press("s");
  expect(host.setAction.mock.calls).toEqual([[pattern, "swap"]]);
  expect(host.select).toHaveBeenLastCalledWith(pattern);
});

it("opens and closes boxes, by key and at the triangle", () => {
  const before = rows();
  find("module blocks.0").focus();
  press("Enter");
  expect(rows()).toBeLessThan(before);
  expect((document.activeElement as SVGGElement).dataset.id).toBe("module blocks.0");
  click(find("module blocks.0").querySelector(".twisty")!);
  expect(rows()).toBe(before);
  expect(find("module blocks.0").getAttribute("aria-expanded")).toBe("true");
});

it("offers reverse only where a block can be reversed", () => {
  find("module blocks.0").focus();
  press("v");
  expect(host.setAction).not.toHaveBeenCalled();
  expect(document.querySelector(".status")?.textContent).toContain("can't be reversed");
  click(find("module blocks.0"));
  expect(entry("reverse").getAttribute("aria-disabled")).toBe("true");
  find("module blocks.1").focus();
  press("v");
  expect(host.setAction.mock.calls).toEqual([["blocks.1", "reverse"]]);
});

it("tells actions apart by dash and by name, not only by colour", () => {
  const lines = [...document.querySelectorAll(".ribbon .line")].map((line) => line.getAttribute("stroke-dasharray"));
  expect(new Set(lines).size).toBe(2);
  expect([...document.querySelectorAll(".label")].map((label) => label.textContent)).toEqual(["recompute 4.0 KiB", "reverse 4.0 KiB"]);
});

it("keeps what is focused when the host gives new actions", () => {
  find("module blocks.1").focus();
  press("ArrowUp");
  const id = (document.activeElement as SVGGElement).dataset.id;
  component.update({ actions: Object.fromEntries(fixture("blocks").links.map((link) => [link.id, "swap"])) });
  expect((document.activeElement as SVGGElement).dataset.id).toBe(id);
  expect(document.querySelectorAll(".ribbon.swap")).toHaveLength(2);
});

it("opens the boxes around what is selected elsewhere", () => {
  find("module blocks").focus();
  press("Enter");
  component.update({ selected: "blocks.1:aten::relu@*.0" });
  expect(find("node blocks.1:aten::relu@*.0").classList.contains("selected")).toBe(true);
});

it("keeps its keys from the page around it", () => {
  const outside = vi.fn();
  document.body.addEventListener("keydown", outside, { once: true });
  find("module blocks").focus();
  press("k");
  expect(outside).not.toHaveBeenCalled();
  expect(document.querySelector("[data-lm-suppress-shortcuts]")).not.toBeNull();
});
