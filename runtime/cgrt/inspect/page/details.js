// The panel at the side, and the memory view.

function element(name, properties = {}, ...content) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...content);
  return made;
}

function link(text, action) {
  return element("button", {className: "link", onclick: event => { event.stopPropagation(); action(); }}, text);
}
function nodeLink(id, room = 300) {
  const text = `#${id} ${titleOf(nodes[id])}`;
  const made = link(shorten(text, linkFont, room), () => selectNode(id));
  made.title = text;
  return made;
}
const allocationLink = (id, text) => link(text, () => selectAllocation(id));

// The first ones, and a button for the rest: a node may have thousands.
function longList(items, make, first = 60) {
  const list = element("ul");
  const add = (begin, end) => {
    for (const item of items.slice(begin, end)) list.append(element("li", {}, ...[make(item)].flat()));
  };
  add(0, first);
  if (items.length > first) {
    const rest = element("li", {}, link(`and ${grouped(items.length - first)} more`, () => {
      rest.remove();
      add(first);
    }));
    list.append(rest);
  }
  return list;
}

function tableOf(rows) {
  const table = element("table");
  for (const [name, value] of rows) table.append(element("tr", {}, element("td", {}, name), element("td", {}, value)));
  return table;
}

const heading = (text, className = "") => element("h3", {className}, text);

function showDetails() {
  const panel = document.getElementById("details");
  const wasHidden = panel.hidden;
  panel.hidden = selection.box === -1 && selection.allocation === -1 && !selection.isLongest;
  panel.replaceChildren();
  document.getElementById("longest").setAttribute("aria-expanded", String(selection.isLongest));
  if (panel.hidden !== wasHidden) {
    draw();
    if (selection.box !== -1 && !view.isFitted) uncover(boxes[shownAs[selection.box]]);
  }
  if (panel.hidden) return;
  panel.append(element("button",
    {className: "close", title: "Close (Esc)", ariaLabel: "Close", onclick: () => select(-1)}, "\u00d7"));
  if (selection.isLongest) return showLongest(panel);
  if (selection.allocation !== -1) return showAllocation(panel, selection.allocation);
  const box = boxes[selection.box];
  if (box.node !== -1) return showNode(panel, box);
  panel.append(element("h2", {}, box.label || "(no name)"),
    element("p", {}, `${box.kind}, ${plural(box.inside, "node")}`));
  showTime(panel, box);
}

// A node's own time; of a box, and of a node that has only others inside, their sum.
function showTime(panel, box) {
  if (box.time === undefined) return;
  const [runs, ...times] = (box.node !== -1 && nodes[box.node].time) || [];
  const rows = runs === undefined
    ? [["sum of medians inside", timeText(box.time)]]
    : [...["median", "min", "max"].map((name, i) => [name, timeText(times[i])]),
      ["runs", `${grouped(runs)} in ${grouped(graph.timing.launches)} launches`]];
  rows.push(["share", `${share(runs === undefined ? box.time : times[0], wholeTime)} of the sum of all nodes`]);
  panel.append(heading("Time"), tableOf(rows));
}

function showLongest(panel) {
  const ids = longestNodes();
  panel.append(element("h2", {}, "Longest nodes"), element("p", {}, "median, and share of the sum of all nodes"));
  const table = element("table", {className: "times"});
  for (const id of ids) {
    const time = nodes[id].time[1];
    table.append(element("tr", {}, element("td", {}, nodeLink(id, 180)), element("td", {}, timeText(time)),
      element("td", {}, share(time, wholeTime))));
  }
  const sum = ids.reduce((all, id) => all + nodes[id].time[1], 0);
  table.append(element("tr", {className: "sum"}, element("td", {}, plural(ids.length, "node")),
    element("td", {}, timeText(sum)), element("td", {}, share(sum, wholeTime))));
  panel.append(table);
}

function edgeNote([, , programmatic, fromPort, toPort]) {
  if (programmatic === undefined) return "";
  const notes = programmatic ? ["programmatic"] : [];
  if (!programmatic && fromPort === 2) notes.push("launch completion");
  else if (fromPort !== (programmatic ? 1 : 0)) notes.push(`from port ${fromPort}`);
  if (toPort !== 0) notes.push(`to port ${toPort}`);
  return notes.length ? "  " + notes.join(", ") : "";
}

function showNode(panel, box) {
  const id = box.node, node = nodes[id];
  panel.append(element("h2", {}, titleOf(node)), element("p", {}, `node ${id}, ${node.kind}`));
  const name = node.function === undefined ? titleOf(node) : graph.functions[node.function].name;
  if (name !== titleOf(node)) panel.append(element("code", {className: "name"}, name));
  showTime(panel, box);
  const rows = [];
  if (node.scope) rows.push(["scope", scopeOf(node)]);
  if (node.device !== undefined) rows.push(["device", String(node.device)]);
  if (node.body) {
    const {owner, label} = graph.bodies[node.body - 1];
    rows.push(["inside", element("span", {}, `${label} of `, nodeLink(owner))]);
  }
  for (const [name, value, allocation] of node.rows || []) {
    rows.push([name, allocation === undefined ? value : allocationLink(allocation, value)]);
  }
  if (rows.length) panel.append(heading("Parameters"), tableOf(rows));
  if (node.arguments) {
    panel.append(heading("Arguments"), tableOf(node.arguments.map(([offset, size, value, ...allocations], i) => [
      element("span", {title: `at byte ${offset} of the parameters`}, `${i}`),
      element("span", {},
        allocations.length === 1 && size === 8 ? allocationLink(allocations[0], value) : element("code", {}, value),
        element("span", {className: "note"}, `  ${plural(size, "byte")}`))])));
  }
  if (box.children.length) {
    panel.append(heading("Inside"), longList(box.children, child => {
      const {label, inside, time} = boxes[child];
      return `${label}: ${plural(inside, "node")}${time === undefined ? "" : "  " + timeAndShare(time)}`;
    }));
  }
  const neighbours = (edges, end) => longList(edges, i => [nodeLink(graph.edges[i][end]),
    element("span", {className: "note"}, edgeNote(graph.edges[i]))]);
  const before = edgesIn[id].length, after = edgesOut[id].length;
  panel.append(heading(before ? `Waits for ${before}` : "Waits for none", "before"), neighbours(edgesIn[id], 0),
    heading(after ? `${after} wait${after === 1 ? "s" : ""} for it` : "None waits for it", "after"),
    neighbours(edgesOut[id], 1));
  if (node.uses) {
    panel.append(heading("Memory"), longList(node.uses, ([allocation, access]) => [
      allocationLink(allocation, graph.allocations[allocation].label),
      element("span", {className: "note"}, `  ${access}`)]));
  }
}

const bytesOf = allocation => allocation.bytes === undefined ? "not known" : grouped(allocation.bytes);

function showAllocation(panel, id) {
  const allocation = graph.allocations[id];
  const rows = [["kind", allocation.kind], ["bytes", bytesOf(allocation)]];
  if (allocation.device !== undefined) rows.push(["device", String(allocation.device)]);
  panel.append(element("h2", {}, allocation.label), element("p", {}, "allocation"), tableOf(rows),
    heading(`Used by ${plural(nodesOf(id).length, "node")}`),
    longList(usesOf[id], ([node, access]) => [nodeLink(node), element("span", {className: "note"}, `  ${access}`)]));
}

// ---- Memory ----

const memory = document.getElementById("memory");
const allocationRows = [];
const nodesOf = id => [...new Set(usesOf[id].map(([node]) => node))];  // along the order

function fillMemory() {
  const body = document.getElementById("allocations");
  const first = 300;
  const add = (begin, end) => {
    for (let id = begin; id < end; ++id) {
      allocationRows[id] = allocationRow(id);
      body.append(allocationRows[id]);
    }
    markAllocations();
  };
  add(0, Math.min(first, graph.allocations.length));
  if (graph.allocations.length > first) {
    const cell = element("td", {colSpan: 10}, link(`and ${grouped(graph.allocations.length - first)} more`, () => {
      rest.remove();
      add(first, graph.allocations.length);
    }));
    const rest = element("tr", {}, cell);
    body.append(rest);
  }
  if (!graph.allocations.length) {
    body.append(element("tr", {}, element("td", {colSpan: 10}, "No node mentions memory.")));
  }
}

// "device 0", "pinned host"
const placeOf = ({kind, device}) => device === undefined ? kind : `${kind} ${device}`;

function allocationRow(id) {
  const allocation = graph.allocations[id];
  const ids = nodesOf(id);
  const users = (...accesses) => {
    const some = [...new Set(usesOf[id].filter(([, access]) => accesses.includes(access)).map(([node]) => node))];
    const cell = element("td");
    some.slice(0, 3).forEach((node, i) => cell.append(i ? ", " : "", link(`#${node}`, () => selectNode(node))));
    if (some.length > 3) cell.append(` +${grouped(some.length - 3)}`);
    return cell;
  };
  const end = node => element("td", {className: "end"}, node === undefined ? "" : nodeLink(node));
  const row = element("tr", {onclick: () => selectAllocation(id)},
    element("td", {}, allocationLink(id, allocation.label)), element("td", {}, placeOf(allocation)),
    element("td", {className: "number"}, bytesOf(allocation)),
    element("td", {className: "number"}, grouped(ids.length)),
    users("read"), users("write", "allocate", "free"), users("touch"),
    end(ids[0]), end(ids[ids.length - 1]), element("td", {className: "life"}, lifeBar(id, ids)));
  return row;
}

function lifeBar(id, ids) {
  const bar = element("div", {className: "bar"});
  if (!ids.length) return bar;
  const place = node => 100 * (position[node] + 0.5) / nodes.length;
  const begin = place(ids[0]), end = place(ids[ids.length - 1]);
  const span = element("span");
  span.style.left = begin + "%";
  span.style.width = end - begin + "%";
  bar.append(span);
  const marks = new Map();  // one for each 1/200 of the width
  for (const [node, access] of usesOf[id]) {
    const at = Math.round(place(node) * 2) / 2;
    const before = marks.get(at);
    marks.set(at, before === undefined || before === access ? access : "both");
  }
  marks.forEach((access, at) => {
    const mark = element("i", {className: access});
    mark.style.left = at + "%";
    bar.append(mark);
  });
  return bar;
}

function markAllocations() {
  const touched = new Set();
  if (selection.box !== -1 && boxes[selection.box].node !== -1) {
    for (const [allocation] of nodes[boxes[selection.box].node].uses || []) touched.add(allocation);
  }
  allocationRows.forEach((row, id) => {
    row.classList.toggle("selected", id === selection.allocation);
    row.classList.toggle("touched", touched.has(id));
  });
}

function setMemoryOpen(isOpen) {
  if (isOpen && !allocationRows.length) fillMemory();
  memory.hidden = !isOpen;
  document.getElementById("memory-button").setAttribute("aria-expanded", String(isOpen));
  draw();
}

function selectAllocation(id) {
  setMemoryOpen(true);
  select(-1, id);
  if (allocationRows[id]) allocationRows[id].scrollIntoView({block: "nearest"});
  const first = usesOf[id].length ? boxes[shownAs[boxOfNode[usesOf[id][0][0]]]] : null;
  if (first && !isInSight(first)) {
    view.x = canvas.clientWidth / 2 - (first.x + first.cell.w / 2) * view.scale;
    view.y = canvas.clientHeight / 4 - first.y * view.scale;
    view.isFitted = false;
    draw();
  }
}

function isInSight(box) {
  const x = box.x * view.scale + view.x, y = box.y * view.scale + view.y;
  return x > 0 && y > 0 && x < canvas.clientWidth && y < canvas.clientHeight;
}
