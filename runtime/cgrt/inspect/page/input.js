// The mouse, the keyboard, the buttons, and the start.

// What is at a place of the canvas: the innermost box, and whether the place is on its triangle.
function boxAt(clientX, clientY) {
  const {left, top} = canvas.getBoundingClientRect();
  const x = (clientX - left - view.x) / view.scale, y = (clientY - top - view.y) / view.scale;
  const isAcross = box => x >= box.x && x <= box.x + box.cell.w;
  const hasLabel = box => !isLeaf(box) && box.kind === "scope" && box.labelY !== undefined;
  // A label that was moved lies upon what is inside, the outermost one upon all.
  let box = shownBoxes.slice(1).find(box =>
    hasLabel(box) && box.labelY > box.y && isAcross(box) && y >= box.labelY && y <= box.labelY + strip);
  for (let i = shownBoxes.length - 1; !box && i > 0; --i) {
    const one = shownBoxes[i];
    const isBody = one.kind === "body" && !isLeaf(one);
    if (!isBody && isAcross(one) && y >= one.y && y <= one.y + one.cell.h) box = one;
  }
  if (!box) return null;
  const begin = hasLabel(box) ? box.labelY : box.y, end = begin + (hasLabel(box) ? strip : nodeHeight);
  return {box, onTriangle: isFoldable(box) && x < box.x + 26 && y >= begin && y < end};
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
    moveBy(x, y);
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

  const steps = {ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80]};
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) moveBy(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
  });

  const on = (id, action) => document.getElementById(id).addEventListener("click", action);
  on("in", () => zoom(1.3));
  on("out", () => zoom(1 / 1.3));
  on("fit", fit);
  on("fold", () => setAllOpen(false));
  on("unfold", () => setAllOpen(true));
  on("next", () => jump(1));
  on("previous", () => jump(-1));
  on("longest", () => select(-1, -1, !selection.isLongest));
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
  if (graph.timing) {
    const {launches, median, busy} = graph.timing;
    place.append(named(launches, launches === "1" ? "launch" : "launches"));
    for (const [name, value] of [["median", timeText(median)], ["idle", share(median - busy, median)]]) {
      place.append(element("span", {}, `${name} `, element("b", {}, value)));
    }
  }
  document.title = `CUDA graph: ${plural(counts.nodes, "node")}, ${plural(counts.edges, "edge")}`;
  document.getElementById("memory-button").textContent = `Memory (${grouped(graph.allocations.length)})`;
}

function start() {
  showCounts();
  if (wholeTime === undefined) document.querySelector("#colour [value=time]").remove();
  document.getElementById("colour").value = colourBy;
  document.getElementById("longest").hidden = wholeTime === undefined;
  document.getElementById("nothing").hidden = nodes.length !== 0;
  const hasFoldable = boxes.some(isFoldable);
  document.getElementById("fold").parentNode.hidden = !hasFoldable;
  const most = 400;  // nodes that can be taken in at a glance; larger graphs begin folded
  if (nodes.length > most && hasFoldable) for (const box of boxes) if (isFoldable(box)) box.open = false;
  layOut();
  setColours();
  showBegin();
  listen();
}
start();
