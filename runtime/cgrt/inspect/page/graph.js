"use strict";
// The graph that html.cpp put into the element "graph", and its boxes: what is drawn, and what can be folded.
//
// The files of this folder are one script, in the order that cmake/embed_page.cmake says. Names come from files of
// unknown origin: they reach the page as text nodes and as text on the canvas only.

const graph = JSON.parse(document.getElementById("graph").textContent);
const nodes = graph.nodes;
const position = new Int32Array(nodes.length);  // of a node in the order
graph.order.forEach((id, i) => { position[id] = i; });
const edgesIn = nodes.map(() => []), edgesOut = nodes.map(() => []);  // indices of edges
graph.edges.forEach(([from, to], i) => { edgesOut[from].push(i); edgesIn[to].push(i); });

const levelOf = new Int32Array(nodes.length);  // nodes on the longest path that ends just before it, in its body
for (const id of graph.order) {
  for (const i of edgesOut[id]) {
    const to = graph.edges[i][1];
    levelOf[to] = Math.max(levelOf[to], levelOf[id] + 1);
  }
}

const usesOf = graph.allocations.map(() => []);  // of an allocation: [node, access], along the order
for (const id of graph.order) {
  for (const [allocation, access] of nodes[id].uses || []) usesOf[allocation].push([id, access]);
}

const scopeOf = node => graph.scopes[node.scope || 0];
const titleOf = node => node.title || node.kind;
const grouped = number => String(number).replace(/\B(?=(\d{3})+(\.|$))/g, ",");  // 1,234,567.8
const plural = (count, word) => `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;

function countsBy(key) {
  const counts = new Map();
  for (const node of nodes) {
    const value = key(node);
    if (value !== undefined) counts.set(value, (counts.get(value) || 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);  // stable: equals in the order of nodes
}
const kindCounts = countsBy(node => node.kind);

// ---- Boxes ----
// A tree: the graph itself (box 0), scopes within it, nodes, and within nodes the bodies that they own. A parent comes
// before its children. A box that is open shows its children.

const boxes = [];
const boxOfNode = new Int32Array(nodes.length);

function addBox(kind, parent, label, node) {
  const depth = parent === -1 ? 0 : boxes[parent].depth + 1;
  const box = {id: boxes.length, kind, parent, label, node, depth, children: [], open: true, inside: 0, rank: 0};
  if (parent !== -1) boxes[parent].children.push(box.id);
  boxes.push(box);
  return box.id;
}

function makeBoxes() {
  const maxNested = 32;  // what lies deeper is one scope with a long name
  const scopes = new Map();
  const bodyBoxes = [addBox("graph", -1, "", -1)];
  const addBodies = last => {
    while (bodyBoxes.length <= last) {
      const {owner, label} = graph.bodies[bodyBoxes.length - 1];
      bodyBoxes.push(addBox("body", boxOfNode[owner], label, -1));
    }
  };
  nodes.forEach((node, id) => {
    addBodies(node.body || 0);
    let parent = bodyBoxes[node.body || 0];
    if (node.scope) {
      const names = scopeOf(node).split("/");
      if (names.length > maxNested) names.push(names.splice(maxNested - 1).join("/"));
      for (const name of names) {
        const key = parent + "/" + name;
        if (!scopes.has(key)) scopes.set(key, addBox("scope", parent, name, -1));
        parent = scopes.get(key);
      }
    }
    boxOfNode[id] = addBox("node", parent, "", id);
  });
  addBodies(graph.bodies.length);

  // How many nodes are within a box, and their mean level: where it belongs among its siblings.
  const sums = new Float64Array(boxes.length);
  for (let i = boxes.length - 1; i > 0; --i) {
    const box = boxes[i];
    const own = box.node === -1 ? 0 : 1;
    box.rank = own ? levelOf[box.node] : sums[i] / Math.max(box.inside, 1);
    boxes[box.parent].inside += box.inside + own;
    sums[box.parent] += own ? levelOf[box.node] : sums[i];
  }
}
makeBoxes();
const isFoldable = box => box.parent !== -1 && box.kind !== "body" && box.children.length > 0;
// Drawn as its children alone: the graph, and the only body of a node.
const isPlain = box => box.kind === "graph" || (box.kind === "body" && boxes[box.parent].children.length === 1);
const isLeaf = box => !box.open || box.children.length === 0;  // as it is drawn
