/** The drawing as an anywidget: traits in, selection and actions out. */

import { type Action, GraphComponent, type GraphData } from "@memviz/graph";
import { theme, watchTheme } from "./theme";

interface Traits {
  readonly model: GraphData;
  readonly actions: Readonly<Record<string, string>>;
  readonly selected: string;
}

/** The part of anywidget's model that is used. */
export interface WidgetModel {
  get<Name extends keyof Traits>(name: Name): Traits[Name];
  set(name: "selected", value: string): void;
  save_changes(): void;
  send(message: { readonly type: "set_action"; readonly pattern: string; readonly action: Action }): void;
  on(event: string, callback: () => void): void;
  off(event: string, callback: () => void): void;
}

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const component = new GraphComponent(
    el,
    { data: model.get("model"), actions: model.get("actions"), selected: model.get("selected"), theme: theme() },
    {
      setAction: (pattern, action) => model.send({ type: "set_action", pattern, action }),
      select: (pattern) => {
        model.set("selected", pattern);
        model.save_changes();
      },
    },
  );
  const handlers = {
    "change:model": () => component.update({ data: model.get("model"), actions: model.get("actions") }),
    "change:actions": () => component.update({ actions: model.get("actions") }),
    "change:selected": () => component.update({ selected: model.get("selected") }),
  };
  for (const [event, handler] of Object.entries(handlers)) model.on(event, handler);
  const unwatch = watchTheme((now) => component.update({ theme: now }));
  return () => {
    for (const [event, handler] of Object.entries(handlers)) model.off(event, handler);
    unwatch();
    component.destroy();
  };
}

export default { render };
