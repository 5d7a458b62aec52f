// Draws each chart when it first comes into view, and again when the page turns dark or light.
(() => {
  const colors = JSON.parse(document.getElementById("dark-colors").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const charts = [...document.querySelectorAll(".chart")];
  const drawn = new Set();
  const recolored = (text) => Object.entries(colors).reduce((done, [from, to]) => done.replaceAll(from, to), text);
  const draw = (chart) => {
    drawn.add(chart);
    const source = document.getElementById(chart.dataset.figure).textContent;
    const { data, layout } = JSON.parse(dark.matches ? recolored(source) : source);
    Plotly.react(chart, data, layout, { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "" });
  };
  const undrawn = () => charts.filter((chart) => !drawn.has(chart));
  const seen = new IntersectionObserver(
    (entries) => entries.filter(({ isIntersecting, target }) => isIntersecting && !drawn.has(target)).forEach(({ target }) => draw(target)),
    { rootMargin: "600px" },
  );
  charts.forEach((chart) => seen.observe(chart));
  dark.addEventListener("change", () => drawn.forEach(draw));
  addEventListener("beforeprint", () => undrawn().forEach(draw));
})();
