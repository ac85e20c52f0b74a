// What is seen: the canvas, and the view of it.

// A place of the graph is at place * scale + (x, y) of the canvas. While it is fitted it shows the whole graph.
const view = {scale: 1, x: 0, y: 0, isFitted: false};

let isDrawAsked = false;
function draw() {
  if (isDrawAsked) return;
  isDrawAsked = true;
  requestAnimationFrame(() => {
    isDrawAsked = false;
    paint();
  });
}

function paint() {
  const ratio = devicePixelRatio || 1;
  const {clientWidth, clientHeight} = canvas;
  if (canvas.width !== Math.round(clientWidth * ratio) || canvas.height !== Math.round(clientHeight * ratio)) {
    canvas.width = Math.round(clientWidth * ratio);
    canvas.height = Math.round(clientHeight * ratio);
  }
  const {scale} = view;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * view.x, ratio * view.y);
  const seen = {left: -view.x / scale, top: -view.y / scale};
  seen.right = seen.left + clientWidth / scale;
  seen.bottom = seen.top + clientHeight / scale;
  const isSeen = (left, top, right, bottom) =>
    right >= seen.left && left <= seen.right && bottom >= seen.top && top <= seen.bottom;

  const visible = shownBoxes.filter(box => box.cell && isSeen(box.x, box.y, box.x + box.cell.w, box.y + box.cell.h));
  const open = visible.filter(box => !isLeaf(box));
  for (const box of open) drawGroup(box);
  const lit = lightOf();
  const some = strokes.filter(one => isSeen(one.left, one.top, one.right, one.bottom));
  drawStrokes(some.filter(one => !one.dashed), colours.edge, 1.3, false, lit.dims ? 0.4 : 1);
  drawStrokes(some.filter(one => one.dashed), colours.edge, 1.3, true, lit.dims ? 0.4 : 1);
  for (const [colour, parts] of [[colours.before, lit.before], [colours.after, lit.after]]) {
    drawStrokes(parts.filter(one => !one.dashed), colour, 2.2, false, 1);
    drawStrokes(parts.filter(one => one.dashed), colour, 2.2, true, 1);
  }
  for (const box of visible) if (isLeaf(box)) drawLeaf(box, lit);
  for (const box of open) if (box.kind === "node") drawOwner(box, lit);
  drawLabels(open.filter(box => box.kind !== "node" && !isPlain(box)), seen);
}

// A line of `width` pixels, thinner where the graph is small.
const lineWidth = width => Math.max(0.6, width * Math.min(1, view.scale)) / view.scale;

function roundedBox(x, y, w, h, radius) {
  context.beginPath();
  context.roundRect(x, y, w, h, radius);
}

function drawGroup(box) {
  const {w, h} = box.cell;
  if (isPlain(box)) return;
  roundedBox(box.x, box.y, w, h, 8);
  context.fillStyle = box.depth % 2 ? colours.group : colours.back;
  if (box.kind === "node") context.fillStyle = paintOfBox(box).fill;
  context.globalAlpha = box.kind === "node" ? 0.35 : 1;
  context.fill();
  context.globalAlpha = 1;
  const isSelected = selection.box === box.id;
  const outline = box.kind === "node" ? paintOfBox(box).line : colours["group-line"];
  context.strokeStyle = isSelected ? colours.accent : outline;
  context.lineWidth = lineWidth(isSelected ? 2.5 : 1);
  context.stroke();
}

// The labels of open boxes. That of a tall box stays in sight while the box is, below those of the boxes around it.
function drawLabels(open, seen) {
  const size = Math.round(Math.min(19, Math.max(12, 9.5 / view.scale)));  // of a small graph, larger letters
  const isRead = size * view.scale >= 4.5;
  const ends = new Map();  // where the label of a box ends
  for (const box of open) {
    let around = box.parent;
    while (around !== 0 && !ends.has(around)) around = boxes[around].parent;
    const top = Math.max(box.y, ends.get(around) ?? seen.top);
    box.labelY = isRead ? Math.min(top, box.y + box.cell.h - strip) : box.y;
    ends.set(box.id, box.labelY + strip);
  }
  if (isRead) for (const box of open.reverse()) drawLabel(box, `600 ${size}px ${font}`);  // outer ones upon inner ones
}

function drawLabel(box, labelFont) {
  const start = isFoldable(box) ? 24 : 12, middle = box.labelY + strip / 2;
  const label = shorten(box.label || "(no name)", labelFont, box.cell.w - start - 10);
  context.fillStyle = box.depth % 2 ? colours.group : colours.back;  // edges and nodes are not seen through it
  if (box.labelY > box.y) context.fillRect(box.x + 4, box.labelY, box.cell.w - 8, strip);
  else context.fillRect(box.x + 4, box.y + 3, start + widthOf(label, labelFont), strip - 6);
  context.fillStyle = colours.soft;
  if (isFoldable(box)) triangle(box.x + 14, middle, true);
  context.font = labelFont;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillText(label, box.x + start, middle + 0.5);
}

function triangle(x, y, isOpen) {
  context.beginPath();
  if (isOpen) {
    context.moveTo(x - 4.5, y - 2.5);
    context.lineTo(x + 4.5, y - 2.5);
    context.lineTo(x, y + 3.5);
  } else {
    context.moveTo(x - 2.5, y - 4.5);
    context.lineTo(x + 3.5, y);
    context.lineTo(x - 2.5, y + 4.5);
  }
  context.fill();
}

function outlines(box, lit) {
  if (selection.box === box.id) return [colours.accent, 3.5];
  if (lit.hits.has(box.id)) return [colours.hit, 3];
  return lit.boxes.get(box.id) || null;
}

function drawLeaf(box, lit) {
  const {w, h} = box.cell;
  const colour = paintOfBox(box);
  const outline = outlines(box, lit);
  const isDim = lit.dims && !outline;
  if (w * view.scale < 5) {  // too small for corners
    context.globalAlpha = isDim ? 0.3 : 1;
    context.fillStyle = outline ? outline[0] : colour.line;
    const least = (outline ? 4 : 1) / view.scale;
    context.fillRect(box.x, box.y, Math.max(w, least), Math.max(h, least));
    context.globalAlpha = 1;
    return;
  }
  roundedBox(box.x, box.y, w, h, box.node === -1 ? 8 : 5);
  context.fillStyle = colours.back;
  context.fill();
  context.globalAlpha = isDim ? 0.5 : 1;
  context.fillStyle = colour.fill;
  context.fill();
  context.strokeStyle = outline ? outline[0] : colour.line;
  context.lineWidth = outline ? Math.max(outline[1] * 0.7, 2) / Math.min(1, view.scale) : lineWidth(1.1);
  if (isFoldable(box) && !outline) {  // a second outline: there is more inside
    context.strokeRect(box.x + 5, box.y + h, w - 10, 3.5);
  }
  context.stroke();
  drawLines(box, isFoldable(box) ? 18 : 0, h);
  context.globalAlpha = 1;
}

function drawOwner(box, lit) {
  const outline = outlines(box, lit);
  if (outline) {
    roundedBox(box.x, box.y, box.cell.w, box.cell.h, 8);
    context.strokeStyle = outline[0];
    context.lineWidth = outline[1] / Math.min(1, view.scale);
    context.stroke();
  }
  drawLines(box, 18, nodeHeight);
}

const minNoteScale = 7 / 11;  // a note is 7 pixels high

// The title and the note; of a small graph the title alone, in larger letters.
function drawLines(box, marker, height) {
  const hasNote = view.scale >= minNoteScale;
  const most = hasNote ? 13 : Math.round(Math.min(17, 9.5 / view.scale));
  if (most * view.scale < 4.5) return;
  const [title, note] = linesOf(box);
  const room = box.cell.w - 18 - marker;
  const size = Math.max(13, Math.min(most, Math.floor(13 * room / widthOf(title, titleFont))));
  if (marker) {
    context.fillStyle = colours.soft;
    triangle(box.x + 14, box.y + height / 2, box.open);
  }
  const x = box.x + 10 + marker;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillStyle = colours.text;
  context.font = `600 ${size}px ${font}`;
  context.fillText(shorten(title, context.font, room), x, box.y + (hasNote ? 15 : height / 2));
  if (!hasNote) return;
  context.fillStyle = colourBy === "time" ? colours.text : colours.soft;  // soft is not seen on the strong colours
  context.font = noteFont;
  context.fillText(shorten(note, noteFont, room), x, box.y + 30);
}

// Of thousands of edges that lead far out of sight, from one place in sight or past all of it, some hundred: they lie
// upon each other.
function thinned(list) {
  const longest = 3 * canvas.clientWidth / view.scale, most = 600;
  if (list.length <= most) return list;
  const groups = new Map();  // by the end that is in sight
  const kept = [];
  for (const stroke of list) {
    const {points} = stroke;
    if (stroke.right - stroke.left <= longest) {
      kept.push(stroke);
      continue;
    }
    const end = [0, points.length - 2].find(at => {
      const x = points[at] * view.scale + view.x;
      return x >= 0 && x <= canvas.clientWidth;
    });
    const key = end === undefined ? "" : points[end] + "," + points[end + 1];
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(stroke);
  }
  for (const group of groups.values()) {
    const step = Math.ceil(group.length / most);
    for (let i = 0; i < group.length; i += step) kept.push(group[i]);
  }
  return kept;
}

function drawStrokes(list, colour, width, isDashed, alpha) {
  if (!list.length) return;
  list = thinned(list);
  context.strokeStyle = context.fillStyle = colour;
  context.globalAlpha = alpha;
  context.lineWidth = lineWidth(width);
  context.setLineDash(isDashed ? [6, 4] : []);
  context.lineJoin = "round";
  const isCoarse = view.scale < 0.12;
  const most = 400;  // a longer path is slower than its parts
  for (let begin = 0; begin < list.length; begin += most) {
    context.beginPath();
    for (const stroke of list.slice(begin, begin + most)) trace(stroke, isCoarse);
    context.stroke();
  }
  context.setLineDash([]);
  if (view.scale >= 0.2) {
    const size = width > 2 ? 8 : 6.5;
    context.beginPath();
    const heads = new Set();  // thousands of edges may end at one place
    for (const {points, hasHead} of list) {
      const x = points[points.length - 2], y = points[points.length - 1];
      if (!hasHead || heads.has(x + "," + y)) continue;
      heads.add(x + "," + y);
      context.moveTo(x, y);
      context.lineTo(x - size * 0.55, y - size);
      context.lineTo(x + size * 0.55, y - size);
    }
    context.fill();
  }
  context.globalAlpha = 1;
}

function trace({points, isBack}, isCoarse) {
  context.moveTo(points[0], points[1]);
  for (let i = 2; i < points.length; i += 2) {
    const x = points[i], y = points[i + 1], fromX = points[i - 2], fromY = points[i - 1];
    if (isBack || isCoarse || i % 4 === 2 || x === fromX) {
      context.lineTo(x, y);
    } else {
      const bend = (y - fromY) / 2;
      context.bezierCurveTo(fromX, fromY + bend, x, y - bend, x, y);
    }
  }
}

const margin = 28;

function fit() {
  const {w, h} = boxes[0];
  const scale = Math.min((canvas.clientWidth - 2 * margin) / w, (canvas.clientHeight - 2 * margin) / h, 1.4);
  view.scale = Math.max(scale, 1e-4);
  view.x = (canvas.clientWidth - w * view.scale) / 2;
  view.y = (canvas.clientHeight - h * view.scale) / 2;
  view.isFitted = true;
  draw();
}

// The whole graph, or where its notes could not be read then, the top of it: as wide as it is, or where it begins.
function showBegin() {
  fit();
  if (!nodes.length || view.scale >= minNoteScale) return;
  const across = (canvas.clientWidth - 2 * margin) / boxes[0].w;
  const isWide = across < minNoteScale;
  const first = boxes[shownAs[boxOfNode[graph.order[0]]]];
  view.scale = isWide ? 0.8 : Math.min(across, 1);
  const {x, y, w} = isWide ? {x: first.x, y: first.y, w: first.cell.w} : boxes[0];
  view.x = Math.max(margin - x * view.scale, canvas.clientWidth / 2 - (x + w / 2) * view.scale);
  view.y = margin - y * view.scale;
  view.isFitted = false;
}

// A node that was clicked stays in sight when the panel at the side opens.
function uncover(box) {
  const covered = (box.x + box.cell.w) * view.scale + view.x - canvas.clientWidth + margin / 2;
  if (covered > 0 && box.cell.w * view.scale < canvas.clientWidth - margin) moveBy(-covered, 0);
}

function moveBy(x, y) {
  view.x += x;
  view.y += y;
  view.isFitted = false;
  draw();
}

function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const scale = Math.min(4, Math.max(Math.min(fitScale(), 0.05), view.scale * factor));
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  view.isFitted = false;
  draw();
}
const fitScale = () => Math.min(canvas.clientWidth / boxes[0].w, canvas.clientHeight / boxes[0].h) * 0.8;
