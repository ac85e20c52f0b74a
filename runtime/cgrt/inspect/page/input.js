// The mouse, the keyboard, the buttons, and the start.

// What is at a place of the canvas: the innermost box, and whether the place is on its triangle.
function boxAt(clientX, clientY) {
  const {left, top} = canvas.getBoundingClientRect();
  const x = (clientX - left - view.x) / view.scale, y = (clientY - top - view.y) / view.scale;
  for (let i = shownBoxes.length - 1; i > 0; --i) {
    const box = shownBoxes[i];
    const {w, h} = box.cell;
    if (x < box.x || y < box.y || x > box.x + w || y > box.y + h) continue;
    if (box.kind === "body" && !isLeaf(box)) continue;
    const labelY = isLeaf(box) || box.kind === "node" ? box.y : box.labelY ?? box.y;
    const height = isLeaf(box) || box.kind === "node" ? nodeHeight : strip;
    const onTriangle = isFoldable(box) && x < box.x + 26 && y >= labelY && y < labelY + height;
    return {box, onTriangle};
  }
  return null;
}

function listen() {
  let drag = null;
  canvas.addEventListener("pointerdown", event => {
    if (event.button !== 0 && event.button !== 1) return;
    drag = {x: event.clientX, y: event.clientY, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (!drag) {
      canvas.classList.toggle("over", boxAt(event.clientX, event.clientY) !== null);
      return;
    }
    const x = event.clientX - drag.x, y = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(x, y) < 4) return;
    drag = {x: event.clientX, y: event.clientY, moved: true};
    canvas.classList.add("dragging");
    view.x += x;
    view.y += y;
    view.isFitted = false;
    draw();
  });
  const endDrag = event => {
    const wasClick = drag && !drag.moved && event.type === "pointerup" && event.button === 0;
    drag = null;
    canvas.classList.remove("dragging");
    if (!wasClick) return;
    const found = boxAt(event.clientX, event.clientY);
    if (found && found.onTriangle) toggle(found.box);
    else select(found ? found.box.id : -1);
  };
  canvas.addEventListener("pointerup", endDrag);
  canvas.addEventListener("pointercancel", endDrag);
  canvas.addEventListener("dblclick", event => {
    const found = boxAt(event.clientX, event.clientY);
    if (found && isFoldable(found.box) && !found.onTriangle) toggle(found.box);
  });
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const {left, top} = canvas.getBoundingClientRect();
    const lines = event.deltaMode === 1 ? 30 : 1;
    const turn = Math.max(-120, Math.min(120, event.deltaY * lines));
    zoom(Math.exp(-turn * 0.0022), event.clientX - left, event.clientY - top);
  }, {passive: false});

  const on = (id, action) => document.getElementById(id).addEventListener("click", action);
  on("in", () => zoom(1.3));
  on("out", () => zoom(1 / 1.3));
  on("fit", fit);
  on("fold", () => setAllOpen(false));
  on("unfold", () => setAllOpen(true));
  on("next", () => jump(1));
  on("previous", () => jump(-1));
  on("memory-button", () => setMemoryOpen(memory.hidden));
  document.getElementById("colour").addEventListener("change", event => {
    colourBy = event.target.value;
    setColours();
    draw();
  });
  const input = document.getElementById("search");
  input.addEventListener("input", () => find(input.value));
  input.addEventListener("keydown", event => {
    if (event.key === "Enter") jump(event.shiftKey ? -1 : 1);
  });
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      input.value = "";
      input.blur();
      find("");
      select(-1);
    } else if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) {
      return;
    } else if (event.key === "/") {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key === "f") {
      fit();
    }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    setColours();
    light = null;
    draw();
  });
  new ResizeObserver(() => { if (view.isFitted) fit(); else draw(); }).observe(canvas);
}

function showCounts() {
  const {counts} = graph;
  const named = (count, text) => element("span", {}, element("b", {}, grouped(count)), ` ${text}`);
  const place = document.getElementById("counts");
  const inside = `(${grouped(counts.inside)} of them in ${plural(graph.bodies.length, "inner graph")})`;
  place.append(named(counts.nodes, `${counts.nodes === 1 ? "node" : "nodes"}${counts.inside ? " " + inside : ""}`));
  place.append(named(counts.edges, counts.edges === 1 ? "edge" : "edges"));
  for (const name of ["depth", "width"]) {
    place.append(element("span", {}, `${name} `, element("b", {}, grouped(counts[name]))));
  }
  for (const [kind, count] of kindCounts) place.append(named(count, kind));
  document.title = `CUDA graph: ${plural(counts.nodes, "node")}, ${plural(counts.edges, "edge")}`;
  document.getElementById("memory-button").textContent = `Memory (${grouped(graph.allocations.length)})`;
}

function start() {
  showCounts();
  setColours();
  const hasFoldable = boxes.some(isFoldable);
  document.getElementById("fold").parentNode.hidden = !hasFoldable;
  const most = 400;  // nodes that can be taken in at a glance; larger graphs begin folded
  if (nodes.length > most && hasFoldable) for (const box of boxes) if (isFoldable(box)) box.open = false;
  layOut();
  fit();
  if (view.scale < 0.3) {  // nothing could be read: begin at the top
    view.scale = 0.8;
    const first = boxes[shownAs[boxOfNode[graph.order[0]]]];
    view.x = canvas.clientWidth / 2 - (first.x + first.cell.w / 2) * view.scale;
    view.y = 28 - first.y * view.scale;
    view.isFitted = false;
  }
  listen();
}
start();
