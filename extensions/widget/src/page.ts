/** The explorer's stylesheet, and the page's theme for what Python draws. It shows nothing itself. */

import { STYLE } from "./style";
import { theme, watchTheme } from "./theme";

/** The part of anywidget's model that is used. */
export interface PageModel {
  set(name: "theme", value: string): void;
  save_changes(): void;
}

export function render({ model, el }: { model: PageModel; el: HTMLElement }): () => void {
  const style = document.createElement("style");
  style.textContent = STYLE;
  el.append(style);
  const tell = (): void => {
    const now = theme();
    el.closest<HTMLElement>(".memviz-explorer")?.setAttribute("data-theme", now);
    model.set("theme", now);
    model.save_changes();
  };
  // The element joins the page after it is rendered; only then is there an explorer around it.
  const later = setTimeout(tell);
  const unwatch = watchTheme(tell);
  return () => {
    clearTimeout(later);
    unwatch();
    style.remove();
  };
}

export default { render };
