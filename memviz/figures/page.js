// Draws every chart of the page, in the page's light or dark colours, and again when these change.
(() => {
  const colors = JSON.parse(document.getElementById("dark-colors").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const recolored = (text) => Object.entries(colors).reduce((done, [from, to]) => done.replaceAll(from, to), text);
  const draw = (chart) => {
    const source = document.getElementById(chart.dataset.figure).textContent;
    const { data, layout } = JSON.parse(dark.matches ? recolored(source) : source);
    Plotly.react(chart, data, layout, { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "" });
  };
  const drawAll = () => document.querySelectorAll(".chart").forEach(draw);
  drawAll();
  dark.addEventListener("change", drawAll);
})();
