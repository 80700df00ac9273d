// Draws the figures of a page with ECharts, which is fetched when the first of them comes into view.
const SHAPES = ["circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect", "emptyTriangle"];
const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3], [2, 2], [12, 4], "solid"];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const seriesColour = (place) => colour(`--series-${(place % 7) + 1}`);
const language = document.documentElement.lang;
let library;

const specification = (figure) => JSON.parse(figure.querySelector("script[type='application/json']").textContent);
const written = (value, digits) => value == null ? "–" : value.toLocaleString(language, { maximumFractionDigits: digits, minimumFractionDigits: digits });

// Points lie beside their names; so do a few bars whose names would be broken within a word below them.
function lies(chart, plotWidth) {
  const widest = 6.5 * Math.max(...chart.places.flatMap((name) => name.split(/\s+/)).map((word) => word.length));
  return chart.kind === "points" || (named(chart) && widest > plotWidth / chart.places.length - 8);
}
const named = (chart) => ["bar", "stacked"].includes(chart.kind) && chart.places.length <= 8;

// A line from the low to the high end of each interval, across the direction of the places.
function intervals(chart, series, place, count, upright) {
  return {
    type: "custom", name: series.name, silent: true, tooltip: { show: false }, z: 3, encode: upright ? { x: 0, y: [1, 2] } : { x: [1, 2], y: 0 },
    data: series.low.map((low, at) => low == null ? null : [at, low, series.high[at]]).filter(Boolean),
    renderItem(parameters, api) {
      const end = (value) => upright ? api.coord([api.value(0), value]) : api.coord([value, api.value(0)]);
      const band = api.size(upright ? [1, 0] : [0, 1])[upright ? 0 : 1];
      const shift = count > 1 && chart.kind !== "line" ? band * 0.7 * ((place + 0.5) / count - 0.5) : 0;
      const [x1, y1] = end(api.value(1)), [x2, y2] = end(api.value(2));
      const [dx, dy] = upright ? [shift, 0] : [0, shift];
      return { type: "line", shape: { x1: x1 + dx, y1: y1 + dy, x2: x2 + dx, y2: y2 + dy }, style: { stroke: chart.kind === "bar" ? colour("--ink") : seriesColour(place), lineWidth: 2 } };
    },
  };
}

// A point for each value, shifted a little where several series share a place.
function points(chart, series, place, count) {
  return {
    type: "custom", name: series.name, z: 4, encode: { x: 1, y: 0, tooltip: 1 }, itemStyle: { color: seriesColour(place) },
    data: series.values.map((value, at) => value == null ? null : [at, value]).filter(Boolean),
    renderItem(parameters, api) {
      const [x, y] = api.coord([api.value(1), api.value(0)]), band = api.size([0, 1])[1];
      const shift = count > 1 ? band * 0.7 * ((place + 0.5) / count - 0.5) : 0;
      return { type: "circle", shape: { cx: x, cy: y + shift, r: 5 }, style: { fill: seriesColour(place) } };
    },
  };
}

function drawn(chart, series, place, count) {
  const look = { name: series.name, itemStyle: { color: seriesColour(place) } };
  if (chart.kind === "points") return points(chart, series, place, count);
  if (chart.kind === "line") {
    return { ...look, type: "line", data: series.values, symbol: SHAPES[place % 7], symbolSize: 7, showSymbol: series.values.length < 40, connectNulls: true, lineStyle: { color: seriesColour(place), type: DASHES[place % 7], width: 2 } };
  }
  return { ...look, type: "bar", data: series.values, stack: chart.kind === "stacked" ? "all" : undefined, barMaxWidth: 36 };
}

function options(chart, plotWidth) {
  const sideways = lies(chart, plotWidth), many = chart.series.length > 1;
  // Few named bars keep all their names, each broken within its bar's width.
  const few = !sideways && named(chart);
  const broken = { interval: 0, hideOverlap: false, overflow: "break", width: Math.max(36, (plotWidth - 90) / chart.places.length - 4), fontSize: 11, lineHeight: 13 };
  const text = { color: colour("--quiet"), fontFamily: getComputedStyle(document.body).fontFamily };
  const line = { lineStyle: { color: colour("--line") } };
  const places = { type: "category", data: chart.places, inverse: sideways, axisLabel: { ...text, hideOverlap: !sideways, interval: sideways ? 0 : undefined, width: sideways ? Math.min(160, plotWidth * 0.4) : undefined, overflow: named(chart) ? "break" : "truncate", lineHeight: 13, ...(few && broken) }, axisLine: line, axisTick: { show: false }, name: sideways || few ? "" : chart.place_label, nameLocation: "middle", nameGap: 28, nameTextStyle: text };
  const values = { type: "value", min: chart.minimum, max: chart.maximum, minInterval: chart.digits ? undefined : 1, scale: ["line", "points"].includes(chart.kind), splitNumber: plotWidth < 360 ? 3 : 5, axisLabel: { ...text, hideOverlap: true, formatter: (value) => value.toLocaleString(language, { maximumFractionDigits: 8 }) }, splitLine: line, name: chart.value_label, nameLocation: "middle", nameGap: sideways ? 28 : 42, nameTextStyle: text };
  const series = chart.series.map((one, place) => drawn(chart, one, place, chart.series.length));
  for (const [place, one] of chart.series.entries()) if (one.low.length) series.push(intervals(chart, one, place, chart.series.length, !sideways));
  const marked = Object.entries(chart.marks);
  if (marked.length && series.length) {
    const axis = sideways ? "xAxis" : "yAxis";
    series[0].markLine = { silent: true, symbol: "none", lineStyle: { color: colour("--quiet"), type: "dashed" }, label: { ...text, formatter: "{b}", position: "insideEndTop" }, data: marked.map(([name, value]) => ({ name, [axis]: value })) };
  }
  return {
    animation: false, textStyle: text, grid: { left: 12, right: 16, top: many ? 40 : 16, bottom: few || (sideways && !chart.value_label) ? 8 : 34, outerBoundsMode: "same", outerBoundsContain: "all" },
    legend: many ? { type: "scroll", top: 0, textStyle: { ...text, color: colour("--ink") }, data: chart.series.map((one) => one.name) } : undefined,
    tooltip: { trigger: sideways ? "item" : "axis", renderMode: "richText", valueFormatter: (value) => written(Array.isArray(value) ? value.at(-1) : value, chart.digits) },
    xAxis: sideways ? values : places, yAxis: sideways ? places : values, series,
  };
}

async function draw(figure) {
  const plot = figure.querySelector(".plot"), chart = specification(figure);
  if (chart.kind === "points") plot.style.height = `${Math.max(9, 5 + chart.places.length * Math.max(2, chart.series.length * 1.1))}rem`;
  library ??= import("../vendor/echarts-6.1.0/echarts.esm.min.js");
  const echarts = await library;
  const instance = echarts.getInstanceByDom(plot) ?? echarts.init(plot, null, { renderer: "svg" });
  instance.setOption(options(chart, plot.clientWidth), true);
  new ResizeObserver(() => instance.resize()).observe(plot);
  figure.dataset.drawn = "true";
  return instance;
}

function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Numbers as they are, not as they are shown: a place, then each series with the ends of its interval.
function commaSeparated(chart) {
  const safe = (cell) => /^[=+\-@\t\r]/.test(cell) && Number.isNaN(Number(cell)) ? `'${cell}` : cell;
  const quoted = (cell) => /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  const columns = chart.series.flatMap((one) => one.low.length ? [[one.name, one.values], [`${one.name} low`, one.low], [`${one.name} high`, one.high]] : [[one.name, one.values]]);
  if (chart.counts.length) columns.unshift([chart.count_label, chart.counts]);
  const rows = [[chart.place_label, ...columns.map(([name]) => name)], ...chart.places.map((place, at) => [place, ...columns.map(([, values]) => values[at] ?? "")])];
  return rows.map((row) => row.map((cell) => quoted(safe(String(cell)))).join(",")).join("\r\n") + "\r\n";
}

async function download(figure, kind) {
  const chart = specification(figure);
  if (kind === "csv") return save(`${chart.name}.csv`, "text/csv", commaSeparated(chart));
  const instance = await draw(figure);
  return save(`${chart.name}.svg`, "image/svg+xml", instance.renderToSVGString());
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
}, { rootMargin: "200px" });
const watch = () => document.querySelectorAll("[data-chart]:not([data-drawn])").forEach((figure) => seen.observe(figure));

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-download]");
  if (button) download(button.closest("[data-chart]"), button.dataset.download);
});
document.addEventListener("htmx:afterSettle", watch);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.querySelectorAll("[data-drawn]").forEach(draw));
watch();
