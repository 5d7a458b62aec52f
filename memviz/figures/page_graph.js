// Shows the computation graph in the page: the drawing is an anywidget, and this is all of a host that it needs.
(async () => {
  const place = document.getElementById("graph");
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const { model, plans } = read("graph-data");
  const values = { model, actions: plans.at(-1).actions, selected: "" };
  const heard = {};
  const host = {
    get: (name) => values[name],
    set: (name, value) => {
      values[name] = value;
      (heard[`change:${name}`] ?? []).forEach((callback) => callback());
    },
    save_changes: () => {},
    send: () => {
      document.getElementById("graph-note").textContent = "A report only shows what was run; actions are set in the explorer.";
    },
    on: (event, callback) => (heard[event] ??= []).push(callback),
    off: (event, callback) => (heard[event] = (heard[event] ?? []).filter((one) => one !== callback)),
  };
  const choice = document.getElementById("graph-plan");
  choice.replaceChildren(...plans.map(({ label }, index) => new Option(label, index, false, index === plans.length - 1)));
  choice.addEventListener("change", () => host.set("actions", plans[choice.value].actions));
  const address = URL.createObjectURL(new Blob([read("graph-bundle")], { type: "text/javascript" }));
  const drawing = await import(address);
  drawing.default.render({ model: host, el: place });
})();
