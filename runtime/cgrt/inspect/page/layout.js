// Where everything is drawn.
//
// Each open box lays out its children by itself, the innermost first (levels.js). An edge between two boxes leaves the
// one by an exit at its bottom and comes into the other by an entry at its top. Where boxes wait for one another in a
// circle, which scopes may, an edge that leads back runs up at the right side.

const nodeHeight = 42, strip = 26, pad = 14, minGap = 34;

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

// Of the wider of its notes, so that another choice of colours moves nothing.
function widthOfLines(box) {
  const [title, note] = linesOf(box, false);
  const width = Math.max(widthOf(title, titleFont), widthOf(note, noteFont));
  return box.time === undefined ? width : Math.max(width, widthOf(linesOf(box, true)[1], noteFont));
}

function measure(box) {
  const cell = box.cell || makeCell(box);
  if (isLeaf(box)) {
    const marker = isFoldable(box) ? 18 : 0;
    cell.w = Math.min(260, Math.max(96, 24 + marker + widthOfLines(box)));
    cell.h = nodeHeight;
    Object.assign(box, {w: cell.w, h: cell.h});
    return;
  }
  const side = isPlain(box) ? 0 : pad;
  const top = isPlain(box) ? 0 : box.kind === "node" ? nodeHeight + pad / 2 : strip + pad / 2;
  const size = arrange(box, side, top);
  cell.w = size.w;
  cell.h = size.h;
  if (!isPlain(box)) {
    const lines = box.kind === "node" ? widthOfLines(box) : widthOf(box.label || "(no name)", titleFont);
    const wanted = Math.min(260, lines + 44);
    if (wanted > cell.w) {
      const shift = (wanted - cell.w) / 2;
      for (const one of box.cells) one.x += shift;
      for (const part of box.parts) for (const one of part.route) one.x += shift;
      box.ports.forEach((x, port) => box.ports.set(port, x + shift));
      box.laneStart += shift;
      cell.w = wanted;
    }
  }
  Object.assign(box, {w: cell.w, h: cell.h});
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
