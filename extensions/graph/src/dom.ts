/** Elements made in one call. */

const SVG = "http://www.w3.org/2000/svg";
type Attributes = Readonly<Record<string, string | number | undefined>>;

export function svg<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[Name] {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

export function html<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  return filled(document.createElement(name), attributes, children);
}

function filled<Made extends Element>(made: Made, attributes: Attributes, children: (Node | string)[]): Made {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}
