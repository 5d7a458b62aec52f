/** The explorer's stylesheet, and the page's theme for what Python draws. It shows nothing itself. */

import { STYLE } from "./style";
import { theme, watchTheme } from "./theme";

/** The part of anywidget's model that is used. */
export interface PageModel {
  set(name: "theme", value: string): void;
  save_changes(): void;
}

function render({ model, el }: { model: PageModel; el: HTMLElement }): () => void {
  const style = document.createElement("style");
  style.textContent = STYLE;
  el.append(style);
  const tell = (): void => {
    const now = theme();
    el.closest<HTMLElement>(".memviz-explorer")?.setAttribute("data-theme", now);
    model.set("theme", now);
    model.save_changes();
  };
  // plotly's widget fits its chart to its place only when the window is resized: tell it of every other reason.
  const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(() => window.dispatchEvent(new Event("resize")));
  // The element joins the page after it is rendered; only then is there an explorer around it.
  const later = setTimeout(() => {
    tell();
    const explorer = el.closest(".memviz-explorer");
    if (explorer) observer?.observe(explorer);
  });
  const unwatch = watchTheme(tell);
  return () => {
    clearTimeout(later);
    observer?.disconnect();
    unwatch();
    style.remove();
  };
}

export default { render };
