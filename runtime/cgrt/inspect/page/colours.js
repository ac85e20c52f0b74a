// Colours, and the legend that says what they mean.

const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["back", "text", "soft", "accent", "before", "after", "hit", "group", "group-line", "edge"];
  for (const name of names) {
    colours[name] = style.getPropertyValue("--" + name).trim();
  }
  colours.dark = matchMedia("(prefers-color-scheme: dark)").matches;
}

const kindHues = {
  "kernel": 214, "memcpy": 42, "memset": 130, "host": 2, "child graph": 268, "conditional": 292, "mem alloc": 172,
  "mem free": 188, "event wait": 330, "event record": 345, "semaphore signal": 20, "semaphore wait": 28,
  "batch mem op": 80,
};
const paintOf = hue => hue === undefined
  ? {fill: colours.dark ? "#2a303a" : "#eef0f3", line: colours.dark ? "#7d8899" : "#8c95a3"}
  : {fill: `hsl(${hue} ${colours.dark ? "38% 21%" : "78% 93%"})`, line: `hsl(${hue} 48% ${colours.dark ? 58 : 50}%)`};

// From 0, no time, to 1, the longest. Lightness tells how much, so that no eye has to tell hues apart.
function paintOfPart(part) {
  const between = (from, to) => (from + (to - from) * part).toFixed(1);
  const mix = (saturation, lightness) => `hsl(325 ${between(...saturation)}% ${between(...lightness)}%)`;
  return colours.dark ? {fill: mix([25, 68], [13, 43]), line: mix([20, 90], [38, 72])}
    : {fill: mix([80, 74], [96, 66]), line: mix([35, 70], [78, 34])};
}

// What nodes are coloured by: one of these, with a hue for each value, or "time".
const colourKeys = {
  kind: node => node.kind,
  name: node => node.function === undefined ? undefined : graph.functions[node.function].name,
  scope: node => node.scope ? scopeOf(node) : undefined,
};
let colourBy = wholeTime === undefined ? "kind" : "time";
let paints = new Map(), noPaint = null, colourCounts = [];
let longestShown = 0;  // of what is shown now, where nodes are coloured by time: folded boxes take longer than nodes

function setColours() {
  readColours();
  noPaint = paintOf(undefined);
  const keyOf = colourKeys[colourBy];  // none: by time
  colourCounts = keyOf ? countsBy(keyOf) : [];
  paints = new Map(colourCounts.map(([key], i) =>
    [key, paintOf(colourBy === "kind" ? kindHues[key] : Math.round(214 + i * 137.508) % 360)]));
  for (const node of nodes) node.paint = (keyOf && paints.get(keyOf(node))) || noPaint;
  longestShown = 0;
  for (const box of shownBoxes) if (isLeaf(box)) longestShown = Math.max(longestShown, box.time || 0);
  showLegend();
}

function paintOfBox(box) {
  if (colourBy !== "time" || !isLeaf(box)) return box.node === -1 ? noPaint : nodes[box.node].paint;
  if (box.time === undefined) return noPaint;
  return paintOfPart(longestShown > 0 ? box.time / longestShown : 0);
}

function showLegend() {
  const legend = document.getElementById("legend");
  legend.replaceChildren();
  if (colourBy === "time") addTimeScale(legend);
  const most = 14;
  for (const [key, count] of colourCounts.slice(0, most)) {
    const name = colourBy === "name" ? graph.functions.find(one => one.name === key).short : key;
    const text = `${shorten(name, noteFont, 220)} ${grouped(count)}`;
    legend.append(element("span", {title: key}, swatch(paints.get(key)), text));
  }
  if (colourCounts.length > most) legend.append(element("span", {}, `and ${grouped(colourCounts.length - most)} more`));
  if (graph.edges.some(edge => edge[2] === 1)) legend.append(element("span", {}, dashedSample(), "programmatic"));
}

function swatch({fill, line}) {
  const made = element("i");
  made.style.background = fill;
  made.style.borderColor = line;
  return made;
}

function addTimeScale(legend) {
  const scale = element("i", {className: "scale"});
  const stops = [0, 0.25, 0.5, 0.75, 1].map(part => paintOfPart(part).fill);
  scale.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  legend.append(element("span", {title: "Median time of a node; of a folded box the sum of all inside"},
    "0 us", scale, timeAndShare(longestShown)));
  const untimed = boxes.filter(box => box.node !== -1 && box.time === undefined).length;
  if (untimed) legend.append(element("span", {}, swatch(noPaint), `no time ${grouped(untimed)}`));
}

function dashedSample() {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg"), line = document.createElementNS(space, "path");
  for (const [name, value] of [["width", 24], ["height", 8]]) picture.setAttribute(name, value);
  const look = {"d": "M0 4H24", "stroke": "currentColor", "stroke-width": 1.5, "stroke-dasharray": "5 3"};
  for (const [name, value] of Object.entries(look)) line.setAttribute(name, value);
  picture.append(line);
  return picture;
}
