// What is selected, folded and searched for.

const selection = {box: -1, allocation: -1, isLongest: false};  // one of them

// What is highlighted: boxes, and the parts of edges before and after the selected one.
let light = null;
function lightOf() {
  if (light) return light;
  light = {boxes: new Map(), before: [], after: [], hits: new Set(), dims: false};
  for (const id of search.hits) light.hits.add(shownAs[boxOfNode[id]]);
  if (selection.allocation !== -1) {
    light.dims = true;
    for (const [id, access] of usesOf[selection.allocation]) {
      const colour = access === "read" ? colours.before : access === "touch" ? colours.accent : colours.after;
      light.boxes.set(shownAs[boxOfNode[id]], [colour, 3]);
    }
  } else if (selection.box !== -1) {
    const box = shownAs[selection.box];
    const before = new Set(), after = new Set();
    for (const link of links) {
      if (link.to === box) {
        light.boxes.set(link.from, [colours.before, 3]);
        for (const part of link.parts) before.add(part.stroke);
      } else if (link.from === box) {
        light.boxes.set(link.to, [colours.after, 3]);
        for (const part of link.parts) after.add(part.stroke);
      }
    }
    light.before = [...before];
    light.after = [...after];
    light.dims = isLeaf(boxes[box]) || boxes[box].kind === "node";
  }
  return light;
}

function select(box, allocation = -1, isLongest = false) {
  Object.assign(selection, {box, allocation, isLongest});
  light = null;
  showDetails();
  markAllocations();
  draw();
}

// Opens what the node is in, and brings it into sight.
function reveal(id) {
  let isChanged = false;
  for (let box = boxes[boxOfNode[id]].parent; box !== -1; box = boxes[box].parent) {
    isChanged = isChanged || !boxes[box].open;
    boxes[box].open = true;
  }
  if (isChanged) relayOut();
  const box = boxes[boxOfNode[id]];
  view.scale = Math.min(Math.max(view.scale, 0.7), 1.6);
  view.isFitted = false;
  view.x = canvas.clientWidth / 2 - (box.x + box.cell.w / 2) * view.scale;
  view.y = canvas.clientHeight / 2 - (box.y + nodeHeight / 2) * view.scale;
  draw();
}

function selectNode(id) {
  select(boxOfNode[id]);
  reveal(id);
}

function relayOut() {
  layOut();
  setColours();
  light = null;
  draw();
}

// Folds or unfolds a box, whose upper left corner stays where it is.
function toggle(box) {
  const x = box.x * view.scale + view.x, y = Math.max(box.y * view.scale + view.y, 40);
  box.open = !box.open;
  relayOut();
  view.x = x - box.x * view.scale;
  view.y = y - box.y * view.scale;
  view.isFitted = false;
}

function setAllOpen(isOpen) {
  for (const box of boxes) if (isFoldable(box)) box.open = isOpen;
  relayOut();
  showBegin();
}

// ---- Search ----

const search = {hits: [], at: -1, texts: null};

function find(query) {
  query = query.trim().toLowerCase();
  search.at = -1;
  search.hits = [];
  if (query !== "") {
    if (!search.texts) {
      search.texts = nodes.map(node => [node.kind, titleOf(node), scopeOf(node),
        node.function === undefined ? "" : graph.functions[node.function].name].join("\n").toLowerCase());
    }
    const id = /^#?\d+$/.test(query) ? Number(query.replace("#", "")) : -1;
    if (id >= 0 && id < nodes.length) search.hits.push(id);
    search.texts.forEach((text, i) => { if (i !== id && text.includes(query)) search.hits.push(i); });
  }
  light = null;
  showHits();
  draw();
}

function jump(step) {
  const count = search.hits.length;
  if (!count) return;
  search.at = search.at === -1 ? (step > 0 ? 0 : count - 1) : (search.at + step + count) % count;
  selectNode(search.hits[search.at]);
  showHits();
}

function showHits() {
  const count = search.hits.length;
  const isAsked = document.getElementById("search").value.trim() !== "";
  document.getElementById("hits").textContent =
    !isAsked ? "" : !count ? "no hits" : search.at === -1 ? plural(count, "hit") : `${search.at + 1} of ${count}`;
}
