// Where everything is drawn.
//
// Each open box lays out its children by itself, the innermost first: levels by longest path, cells of no size where an
// edge passes a level, the order within a level by sweeps of barycentres, then the positions. An edge between two boxes
// leaves the one by an exit at its bottom and comes into the other by an entry at its top. Where boxes wait for one
// another in a circle, which scopes may, an edge that leads back runs up at the right side.

const font = "system-ui, 'DejaVu Sans', sans-serif";
const titleFont = `600 13px ${font}`, noteFont = `11px ${font}`;
const nodeHeight = 42, strip = 26, pad = 14, minGap = 34;
const canvas = document.getElementById("canvas");
const context = canvas.getContext("2d");

const measured = new Map();
function widthOf(text, textFont) {
  const key = textFont + text;
  let width = measured.get(key);
  if (width === undefined) {
    context.font = textFont;
    width = context.measureText(text.length > 300 ? text.slice(0, 300) : text).width;
    measured.set(key, width);
  }
  return width;
}

// With the middle left out where it is wider: names of kernels differ at both ends.
const shortened = new Map();
function shorten(text, textFont, room) {
  if (widthOf(text, textFont) <= room && text.length <= 300) return text;
  const key = textFont + Math.round(room) + "|" + text;
  let found = shortened.get(key);
  if (found === undefined) {
    const letters = Array.from(text.length > 600 ? text.slice(0, 300) + text.slice(-300) : text);
    let low = 0, high = letters.length;
    const cut = kept => {
      const back = Math.floor(kept / 3);
      return letters.slice(0, kept - back).join("") + "\u2026" + (back ? letters.slice(-back).join("") : "");
    };
    context.font = textFont;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (context.measureText(cut(middle)).width <= room) low = middle; else high = middle;
    }
    found = cut(low);
    shortened.set(key, found);
  }
  return found;
}

function linesOf(box) {
  if (box.node !== -1) {
    const node = nodes[box.node];
    const inside = box.children.length && !box.open ? `  ${plural(box.inside, "node")} inside` : "";
    return [titleOf(node), `#${box.node}  ${node.note || ""}${inside}`];
  }
  return [box.label || "(no name)", box.inside === 0 ? "empty" : plural(box.inside, "node")];
}

let shownBoxes = [], links = [], strokes = [];
let shownAs = new Int32Array(0);  // the box that stands for a box: itself, or a folded one around it
let cellBudget = 0;

function layOut() {
  shownAs = new Int32Array(boxes.length);
  shownBoxes = [];
  for (const box of boxes) {
    const isShown = box.parent === -1 || (shownAs[box.parent] === box.parent && boxes[box.parent].open);
    shownAs[box.id] = isShown ? box.id : shownAs[box.parent];
    box.cell = null;
    if (!isShown) continue;
    shownBoxes.push(box);
    box.cells = [];
    box.parts = [];
    box.ports = new Map();
    if (box.parent === -1) continue;
    box.cell = makeCell(box);
    boxes[box.parent].cells.push(box.cell);
  }
  makeLinks();
  cellBudget = 60000;
  for (let i = shownBoxes.length - 1; i >= 0; --i) measure(shownBoxes[i]);

  boxes[0].x = boxes[0].y = 0;
  for (const box of shownBoxes) {
    if (box.parent === -1) continue;
    box.x = boxes[box.parent].x + box.cell.x - box.cell.w / 2;
    box.y = boxes[box.parent].y + box.cell.y;
  }
  strokes = [];
  for (const box of shownBoxes) for (const part of box.parts) strokes.push(makeStroke(box, part));
}

function makeCell(box) {
  return {box, w: 8, h: 0, x: 0, y: 0, level: 0, order: 0, above: [], below: []};
}

// Edges between shown boxes. Each has parts, one in every open box that it passes; edges from one box share the parts
// by which they leave, and those to one box the parts by which they arrive.
function makeLinks() {
  const found = new Map();
  links = [];
  graph.edges.forEach(([fromNode, toNode, programmatic], i) => {
    const from = shownAs[boxOfNode[fromNode]], to = shownAs[boxOfNode[toNode]];
    if (from === to) return;
    const key = from * boxes.length + to;
    let link = found.get(key);
    if (!link) {
      link = {from, to, edges: [], dashed: true, parts: []};
      found.set(key, link);
      links.push(link);
    }
    link.edges.push(i);
    link.dashed = link.dashed && programmatic === 1;
  });

  const shared = new Map();
  const join = (link, key, make) => {
    let part = key === "" ? undefined : shared.get(key);
    if (!part) {
      part = make();
      part.dashed = true;
      part.isBack = false;
      part.route = [];
      if (key !== "") shared.set(key, part);
    }
    part.dashed = part.dashed && link.dashed;
    link.parts.push(part);
  };
  for (const link of links) {
    let from = link.from, to = link.to;
    const arriving = [];
    while (boxes[from].parent !== boxes[to].parent) {
      const fromBox = boxes[from], toBox = boxes[to];
      if (fromBox.depth > toBox.depth) {
        const outer = boxes[fromBox.parent];
        join(link, "out" + outer.id + "," + link.from, () => {
          const exit = makeCell(null);
          exit.port = "out" + link.from;
          outer.cells.push(exit);
          const part = {from: fromBox.cell, to: exit, fromPort: "out" + link.from, toPort: ""};
          outer.parts.push(part);
          return part;
        });
        from = outer.id;
      } else {
        const outer = boxes[toBox.parent];
        arriving.push([outer, toBox]);
        to = outer.id;
      }
    }
    const outer = boxes[boxes[from].parent];
    join(link, "", () => {
      const part = {from: boxes[from].cell, to: boxes[to].cell, fromPort: "out" + link.from, toPort: "in" + link.to};
      outer.parts.push(part);
      return part;
    });
    for (const [around, inner] of arriving.reverse()) {
      join(link, "in" + around.id + "," + link.to, () => {
        const entry = makeCell(null);
        entry.port = "in" + link.to;
        around.cells.push(entry);
        const part = {from: entry, to: inner.cell, fromPort: "", toPort: "in" + link.to};
        around.parts.push(part);
        return part;
      });
    }
  }
}

// Where an edge meets a cell, from its middle.
function portOf(cell, port) {
  const at = cell.box && cell.box.ports.get(port);
  return at === undefined || at === null ? 0 : at - cell.w / 2;
}

function measure(box) {
  const cell = box.cell || makeCell(box);
  if (isLeaf(box)) {
    const [title, note] = linesOf(box);
    const marker = isFoldable(box) ? 18 : 0;
    cell.w = Math.min(260, Math.max(96, 24 + marker + Math.max(widthOf(title, titleFont), widthOf(note, noteFont))));
    cell.h = nodeHeight;
    return;
  }
  const isPlain = box.kind === "graph" || (box.kind === "body" && boxes[box.parent].children.length === 1);
  const side = isPlain ? 0 : pad;
  const top = isPlain ? 0 : box.kind === "node" ? nodeHeight + pad / 2 : strip + pad / 2;
  const size = arrange(box, side, top);
  cell.w = size.w;
  cell.h = size.h;
  if (box.kind === "node" || !isPlain) {
    const lines = box.kind === "node" ? linesOf(box) : [box.label || "(no name)", ""];
    const wanted = Math.min(260, Math.max(widthOf(lines[0], titleFont), widthOf(lines[1], noteFont)) + 44);
    if (wanted > cell.w) {
      const shift = (wanted - cell.w) / 2;
      for (const one of box.cells) one.x += shift;
      for (const part of box.parts) for (const one of part.route) one.x += shift;
      box.ports.forEach((x, port) => box.ports.set(port, x + shift));
      box.laneStart += shift;
      cell.w = wanted;
    }
  }
  box.w = cell.w;
  box.h = cell.h;
}

// Lays out the cells of `box`; returns its size, and leaves the places of its exits and entries in box.ports.
function arrange(box, side, top) {
  const levels = makeLevels(box);
  addPassing(box, levels);
  for (const level of levels) level.forEach((cell, i) => { cell.order = i; });
  order(levels);
  placeAcross(levels);

  let left = Infinity, right = -Infinity;
  for (const level of levels) {
    for (const cell of level) {
      left = Math.min(left, cell.x - cell.w / 2);
      right = Math.max(right, cell.x + cell.w / 2);
    }
  }
  for (const level of levels) for (const cell of level) cell.x += side - left;
  const backs = box.parts.filter(part => part.isBack);
  backs.forEach((part, i) => { part.lane = 10 + 9 * (i % 24); });
  box.laneStart = right - left + side;
  const lanes = backs.length ? 16 + 9 * Math.min(backs.length, 24) : 0;

  // Far apart ends need more height between the levels to be told apart.
  box.tops = [];
  box.bottoms = [];
  let y = top;
  levels.forEach((level, i) => {
    let height = 0, spread = 0;
    const isOutside = one => one !== undefined && one.every(cell => !cell.box && cell.port);  // entries or exits
    for (const cell of level) {
      height = Math.max(height, cell.h);
      for (const [other, port, otherPort] of cell.below) {
        spread = Math.max(spread, Math.abs(cell.x + port - other.x - otherPort));
      }
    }
    for (const cell of level) cell.y = height > 3 * nodeHeight ? y : y + (height - cell.h) / 2;
    box.tops.push(y);
    box.bottoms.push(y + height);
    y += height;
    const gap = isOutside(level) || isOutside(levels[i + 1]) ? 8 : minGap;
    if (i + 1 < levels.length) y += gap + Math.min(90, spread * 0.05);
  });
  const size = {w: right - left + 2 * side + lanes, h: y + side};
  for (const cell of box.cells) {
    if (cell.box) continue;
    box.ports.set(cell.port, cell.x);
    cell.y = cell.port.startsWith("in") ? 0 : size.h;
  }
  return size;
}

// Levels by longest path; entries are above all others, exits below.
function makeLevels(box) {
  const items = box.cells.filter(cell => cell.box);
  const waits = new Map(items.map(cell => [cell, 0]));
  const outs = new Map(items.map(cell => [cell, []])), ins = new Map(items.map(cell => [cell, []]));
  for (const part of box.parts) {
    if (!part.from.box || !part.to.box) continue;
    outs.get(part.from).push(part);
    ins.get(part.to).push(part);
    waits.set(part.to, waits.get(part.to) + 1);
  }
  const placed = new Set();
  const queue = items.filter(cell => waits.get(cell) === 0);
  const byRank = items.slice().sort((a, b) => a.box.rank - b.box.rank);
  let next = 0;
  for (let i = 0; placed.size < items.length; ++i) {
    if (i === queue.length) {  // a circle: go on with the one that should come first
      while (placed.has(byRank[next])) ++next;
      queue.push(byRank[next]);
    }
    const cell = queue[i];
    placed.add(cell);
    for (const part of ins.get(cell)) {
      if (placed.has(part.from)) continue;
      part.isBack = true;
      part.from.level = Math.max(part.from.level, cell.level + 1);
    }
    for (const part of outs.get(cell)) {
      if (placed.has(part.to)) continue;
      part.to.level = Math.max(part.to.level, cell.level + 1);
      waits.set(part.to, waits.get(part.to) - 1);
      if (waits.get(part.to) === 0) queue.push(part.to);
    }
  }
  // What waits for nothing stands just above the first that waits for it, not at the top of all.
  for (const cell of items) {
    if (cell.level === 0 && !ins.get(cell).length && outs.get(cell).length) {
      let below = Infinity;
      for (const part of outs.get(cell)) if (!part.isBack) below = Math.min(below, part.to.level);
      if (below !== Infinity) cell.level = below - 1;
    }
  }

  const entries = box.cells.filter(cell => !cell.box && cell.port.startsWith("in"));
  const exits = box.cells.filter(cell => !cell.box && cell.port.startsWith("out"));
  const levels = entries.length ? [entries] : [];
  for (const cell of items) {
    cell.level += entries.length ? 1 : 0;
    while (levels.length <= cell.level) levels.push([]);
    levels[cell.level].push(cell);
  }
  if (exits.length) levels.push(exits);
  for (const cell of exits) cell.level = levels.length - 1;
  return levels;
}

// Cells where edges pass levels, shared by the edges from one place. Above a total of cells edges run straight.
function addPassing(box, levels) {
  const chains = new Map();
  for (const part of box.parts) {
    if (part.isBack) continue;
    const span = part.to.level - part.from.level;
    let chain = chains.get(part.from);
    if (!chain) chains.set(part.from, chain = new Map());
    let cells = chain.get(part.fromPort);
    if (!cells) chain.set(part.fromPort, cells = []);
    let last = part.from;
    const isRouted = span - 1 - cells.length <= cellBudget;
    for (let i = 0; isRouted && i < span - 1; ++i) {
      if (i === cells.length) {
        --cellBudget;
        const cell = makeCell(null);
        cell.level = part.from.level + i + 1;
        levels[cell.level].push(cell);
        meet(last, i === 0 ? part.fromPort : "", cell, "");
        cells.push(cell);
      }
      last = cells[i];
      part.route.push(last);
    }
    if (isRouted) meet(last, last === part.from ? part.fromPort : "", part.to, part.toPort);
  }
}

function meet(upper, upperPort, lower, lowerPort) {
  // Of two boxes with something inside, the middles are aligned: along a chain of them, ports would lead sideways.
  const isWide = cell => cell.box !== null && !isLeaf(cell.box);
  const areWide = isWide(upper) && isWide(lower);
  const upperAt = areWide ? 0 : portOf(upper, upperPort), lowerAt = areWide ? 0 : portOf(lower, lowerPort);
  const weight = upper.box || lower.box ? 1 : 6;  // long edges are straight
  upper.below.push([lower, upperAt, lowerAt, weight]);
  lower.above.push([upper, lowerAt, upperAt, weight]);
}

function order(levels) {
  const cells = levels.reduce((sum, level) => sum + level.length, 0);
  if (levels.every(level => level.length === 1)) return;
  const counts = cells <= 2000;
  let best = null, fewest = Infinity;
  const keep = () => {
    const crossings = counts ? crossingsOf(levels) : 0;
    if (counts && crossings >= fewest) return;
    fewest = crossings;
    best = levels.map(level => level.slice());
  };
  keep();
  for (let sweep = 0; sweep < (counts ? 12 : 4) && fewest > (counts ? 0 : -1); ++sweep) {
    if (sweep % 2 === 0) {
      for (let i = 1; i < levels.length; ++i) sortLevel(levels[i], "above");
    } else {
      for (let i = levels.length - 2; i >= 0; --i) sortLevel(levels[i], "below");
    }
    if (counts) keep(); else best = null;
  }
  if (best) best.forEach((level, i) => level.forEach((cell, at) => { levels[i][at] = cell; cell.order = at; }));
}

function sortLevel(level, towards) {
  if (level.length === 1) return;
  for (const cell of level) {
    const others = cell[towards];
    let sum = 0;
    for (const [other, , otherPort] of others) {
      sum += other.order + (other.w > 8 ? otherPort / other.w : 0);  // where in a wide box
    }
    cell.key = others.length ? sum / others.length : cell.order;
  }
  level.sort((a, b) => a.key - b.key || a.order - b.order);
  level.forEach((cell, i) => { cell.order = i; });
}

// Pairs of edges between neighbouring levels that cross, by counting with a tree of sums.
function crossingsOf(levels) {
  let crossings = 0;
  for (let i = 0; i + 1 < levels.length; ++i) {
    const width = levels[i + 1].length;
    if (levels[i].length === 1 || width === 1) continue;
    const sums = new Int32Array(width + 1);
    let total = 0;
    for (const cell of levels[i]) {
      const ends = cell.below.map(([other]) => other.order).sort((a, b) => a - b);
      for (const end of ends) {
        let before = 0;
        for (let at = end + 1; at > 0; at -= at & -at) before += sums[at];
        crossings += total - before;
      }
      for (const end of ends) {
        for (let at = end + 1; at <= width; at += at & -at) ++sums[at];
        ++total;
      }
    }
  }
  return crossings;
}

// Each cell near the mean of those that it is joined to, as the order and the room that each needs allow.
function placeAcross(levels) {
  for (const level of levels) {
    let x = 0;
    level.forEach((cell, i) => {
      if (i) x += distance(level[i - 1], cell);
      cell.x = x;
    });
    for (const cell of level) cell.x -= x / 2;
  }
  if (levels.length === 1) return;
  // Towards both sides in each pass: passes that look at one side only lead a long chain of forks and joins sideways.
  const cells = levels.reduce((sum, level) => sum + level.length, 0);
  for (let pass = 0; pass < (cells > 20000 ? 12 : 40); ++pass) {
    for (let i = 0; i < levels.length; ++i) placeLevel(levels[pass % 2 ? levels.length - 1 - i : i]);
  }
}

const distance = (left, right) => (left.w + right.w) / 2 + (left.box && right.box ? 26 : 14);

// Least squares under the order: neighbours that would overlap move together as a block.
function placeLevel(level) {
  const blocks = [];
  const offsets = new Float64Array(level.length);
  level.forEach((cell, i) => {
    offsets[i] = i ? offsets[i - 1] + distance(level[i - 1], cell) : 0;
    let sum = 0, weights = 0;
    const add = (others, back) => {
      for (const [other, port, otherPort, own] of others) {
        const weight = others.length === 1 && other[back].length === 1 ? 30 : own;  // chains are straight, too
        sum += weight * (other.x + otherPort - port);
        weights += weight;
      }
    };
    add(cell.above, "below");
    add(cell.below, "above");
    const weight = weights || 0.05;
    let block = {mean: (weights ? sum / weights : cell.x) - offsets[i], weight, end: i};
    while (blocks.length && blocks[blocks.length - 1].mean >= block.mean) {
      const before = blocks.pop();
      const both = before.weight + block.weight;
      block = {mean: (before.mean * before.weight + block.mean * block.weight) / both, weight: both, end: i};
    }
    blocks.push(block);
  });
  let i = 0;
  for (const block of blocks) for (; i <= block.end; ++i) level[i].x = block.mean + offsets[i];
}

// The points of a part, in pairs that are joined by a vertical line; from pair to pair leads a curve.
function makeStroke(box, part) {
  const {from, to} = part;
  const points = [];
  const add = (x, y) => points.push(box.x + x, box.y + y);
  const fromX = from.x + portOf(from, part.fromPort), toX = to.x + portOf(to, part.toPort);
  if (part.isBack) {
    const lane = box.laneStart + part.lane, down = box.bottoms[from.level] + 8, up = box.tops[to.level] - 8;
    add(fromX, from.y + from.h);
    add(fromX, down);
    add(lane, down);
    add(lane, up);
    add(toX, up);
    add(toX, to.y);
  } else {
    add(fromX, from.y + from.h);
    add(fromX, Math.max(box.bottoms[from.level], from.y + from.h));
    for (const cell of part.route) {
      add(cell.x, box.tops[cell.level]);
      add(cell.x, box.bottoms[cell.level]);
    }
    add(toX, Math.min(box.tops[to.level], to.y));
    add(toX, to.y);
  }
  const hasHead = to.box !== null && (isLeaf(to.box) || to.box.kind === "node");
  const stroke = {points, isBack: part.isBack, dashed: part.dashed, hasHead,
    left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity};
  for (let i = 0; i < points.length; i += 2) {
    stroke.left = Math.min(stroke.left, points[i]);
    stroke.right = Math.max(stroke.right, points[i]);
    stroke.top = Math.min(stroke.top, points[i + 1]);
    stroke.bottom = Math.max(stroke.bottom, points[i + 1]);
  }
  part.stroke = stroke;
  return stroke;
}
