/** JupyterLab's theme where there is one, the system's elsewhere. */

type Theme = "light" | "dark";
const DARK = "(prefers-color-scheme: dark)";

export function theme(): Theme {
  const lab = document.body.dataset.jpThemeLight;
  if (lab !== undefined) return lab === "false" ? "dark" : "light";
  return globalThis.matchMedia?.(DARK).matches ? "dark" : "light";
}

/** Calls back at every change, until the returned function is called. */
export function watchTheme(changed: (now: Theme) => void): () => void {
  const tell = (): void => changed(theme());
  const observer = new MutationObserver(tell);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const system = globalThis.matchMedia?.(DARK);
  system?.addEventListener("change", tell);
  return () => {
    observer.disconnect();
    system?.removeEventListener("change", tell);
  };
}
