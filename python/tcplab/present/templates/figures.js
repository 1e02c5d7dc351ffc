"use strict";
(() => {
  const config = {
    responsive: true, displaylogo: false, scrollZoom: false,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg" },
  };
  // On a dark page the two darkest colours are lifted so that their lines keep their contrast.
  const lifted = { "#0072B2": "#4BA8E0", "#D55E00": "#F07F2E", "#009E73": "#2BC79A", "#666666": "#A8A8A8", "#777777": "#A8A8A8" };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 640px)");

  function read(id, onPaper) {
    let text = document.getElementById(id).textContent;
    const isDark = dark.matches && !onPaper;
    if (isDark) for (const [from, to] of Object.entries(lifted)) text = text.replaceAll(from, to);
    const spec = JSON.parse(text);
    spec.layout.font.color = isDark ? "#e3e8ed" : "#1c2126";
    spec.layout.hoverlabel = {
      bgcolor: isDark ? "#1c2228" : "#ffffff", bordercolor: isDark ? "#353c44" : "#d8dee4",
      font: { color: spec.layout.font.color },
    };
    return spec;
  }
  // Room below a panel for its axis, pixels.
  const below = 84;
  // In a narrow window panels side by side stand below each other.
  function stacked(layout) {
    const numbers = Object.keys(layout).filter((name) => /^xaxis\d*$/.test(name)).map((name) => name.slice(5));
    const axes = numbers.sort((a, b) => a - b).map((number) => [layout[`xaxis${number}`], layout[`yaxis${number}`]]);
    if (!axes.some(([x]) => x.domain?.[0] > 0)) return;
    const inner = layout.height - layout.margin.t - layout.margin.b;
    const heights = axes.map(([, y]) => inner * (y.domain[1] - y.domain[0]));
    const whole = heights.reduce((sum, height) => sum + height, below * (axes.length - 1));
    let top = whole;
    axes.forEach(([x, y], number) => {
      x.domain = [0, 1];
      y.domain = [Math.max(0, top - heights[number]) / whole, top / whole];
      top -= heights[number] + below;
    });
    layout.height += whole - inner;
  }
  // The names of levels stand on their lines there, not beside the axes.
  function narrowed(layout) {
    stacked(layout);
    layout.margin.r = 8;
    const bgcolor = dark.matches ? "rgba(20,24,28,.7)" : "rgba(255,255,255,.7)";
    for (const name of layout.annotations ?? []) {
      if (name.xref !== "x domain" || name.xanchor !== "left") continue;
      Object.assign(name, { xanchor: "right", yanchor: "bottom", align: "right", xshift: 0, bgcolor });
      name.text = name.text.replaceAll("<br>", " ");
    }
  }
  function draw(element, onPaper = false) {
    if (!document.getElementById(element.dataset.figure)) {
      Plotly.purge(element);
      element.textContent = "No cell with these values has a result.";
      return;
    }
    if (!element.querySelector(".plot-container")) element.textContent = "";
    const spec = read(element.dataset.figure, onPaper);
    if (onPaper) {
      // A4 between its margins, and no taller than a page.
      spec.layout.width = 680;
      spec.layout.height = Math.min(spec.layout.height * 0.8, 920);
    } else if (narrow.matches) {
      narrowed(spec.layout);
    }
    Plotly.react(element, spec.data, spec.layout, config);
  }
  const all = document.querySelectorAll(".figure");
  // What is folded has no width yet: it is drawn when it is opened.
  const folded = (element) => element.closest("details:not([open])") !== null;
  for (const element of all) if (!folded(element)) draw(element);
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => {
      if (details.open) details.querySelectorAll(".figure").forEach((element) => draw(element));
    });
  }
  const again = (onPaper) => all.forEach((element) => { if (!folded(element)) draw(element, onPaper); });
  for (const query of [dark, narrow]) query.addEventListener("change", () => again(false));
  addEventListener("beforeprint", () => again(true));
  addEventListener("afterprint", () => again(false));

  for (const button of document.querySelectorAll(".choice button")) {
    button.addEventListener("click", () => {
      const element = document.getElementById(button.dataset.target);
      element.dataset.figure = button.dataset.figure;
      for (const other of button.parentElement.querySelectorAll("button")) {
        other.setAttribute("aria-pressed", String(other === button));
      }
      draw(element);
    });
  }
  // The figure of the chosen values: the last of the lists varies first.
  for (const choice of document.querySelectorAll(".choice[data-target]")) {
    choice.addEventListener("change", () => {
      const lists = [...choice.querySelectorAll("select")];
      const number = lists.reduce((sum, list) => sum * list.options.length + list.selectedIndex, 0);
      const element = document.getElementById(choice.dataset.target);
      element.dataset.figure = `${element.id}-${number}`;
      draw(element);
    });
  }
})();
