"""What the tests of graphdump's pages share: a page of a graph in a browser, what holds of it, and graphs."""
import json
import subprocess

# What is wrong with the layout: boxes that overlap or stand out of the one around them, and edges that do not lead from
# box to box, or lead up though nothing waits in a circle.
FAULTS = """(() => {
  const found = [], at = box => ({left: box.x, top: box.y, right: box.x + box.cell.w, bottom: box.y + box.cell.h});
  for (const outer of shownBoxes) {
    if (isLeaf(outer)) continue;
    const inner = outer.cells.filter(cell => cell.box).map(cell => cell.box).sort((a, b) => a.y - b.y);
    inner.forEach((box, i) => {
      const {left, top, right, bottom} = at(box);
      if (left < outer.x - 1 || top < outer.y - 1 || right > outer.x + outer.w + 1 || bottom > outer.y + outer.h + 1) {
        found.push(`box ${box.id} stands out of box ${outer.id}`);
      }
      for (let j = i + 1; j < inner.length && inner[j].y < bottom; ++j) {
        const other = at(inner[j]);
        if (other.left < right && other.right > left) found.push(`boxes ${box.id} and ${inner[j].id} overlap`);
      }
    });
  }
  for (const {from, to, parts} of links) {
    const start = parts[0].stroke.points, end = parts[parts.length - 1].stroke.points, a = at(boxes[from]), b = at(boxes[to]);
    const isAt = (x, y, box, edge) => x >= box.left && x <= box.right && Math.abs(y - edge) < 1;
    if (!isAt(start[0], start[1], a, a.bottom) || !isAt(end[end.length - 2], end[end.length - 1], b, b.top)) {
      found.push(`the edge from box ${from} to box ${to} misses one`);
    }
    if (b.top < a.bottom && !parts.some(part => part.isBack)) found.push(`the edge from box ${from} to box ${to} leads up`);
    parts.forEach((part, i) => {
      if (i && Math.hypot(part.stroke.points[0] - parts[i - 1].stroke.points.slice(-2)[0],
          part.stroke.points[1] - parts[i - 1].stroke.points.slice(-1)[0]) > 1) {
        found.push(`the edge from box ${from} to box ${to} has a gap`);
      }
    });
  }
  return found.slice(0, 5);
})()"""


class Checks:
    def __init__(self, browser, graphdump, folder, pictures):
        self.browser, self.graphdump, self.folder, self.pictures = browser, graphdump, folder, pictures
        self.failures, self.count, self.name = 0, 0, ""

    def equal(self, what, got, wanted):
        self.count += 1
        if got != wanted:
            self.failures += 1
            print(f"FAILED: {self.name}: {what}: {got!r}, not {wanted!r}")

    def holds(self, what, text, part):
        self.count += 1
        if part not in text:
            self.failures += 1
            print(f"FAILED: {self.name}: {what} lacks {part!r}: {text!r}")

    def open(self, name, file):
        self.name = name
        page = self.folder / f"{name}.html"
        with open(page, "wb") as out:
            subprocess.run([self.graphdump, "show", file, "--format", "html"], check=True, stdout=out)
        return self.browser.open(page)

    def done(self):
        self.equal("faults of the layout", self.browser.value(FAULTS), [])
        self.equal("complaints", self.browser.complaints(), [])

    def picture(self, name):
        if self.pictures:
            self.browser.picture(self.pictures / f"{name}.png")

    def text(self, selector):
        """What a person reads there."""
        return self.browser.value(f"document.querySelector({json.dumps(selector)}).innerText.replace(/\\s+/g, ' ')")

    def place(self, box, dx=40, dy=20):
        """Where a box is on the screen: `box` is an expression of the page's script."""
        return self.browser.value(f"""(() => {{ const box = {box}, at = canvas.getBoundingClientRect();
            return [at.left + view.x + (box.x + {dx}) * view.scale, at.top + view.y + (box.y + {dy}) * view.scale]; }})()""")

    def colours(self):
        """By node that is drawn as one box: what is seen at its left end, as the luminance of its colour, its contrast
        to the texts, and the spread of red, green and blue (WCAG 2.1: contrast 4.5 can be read)."""
        self.browser.settle()
        return {int(at): seen for at, seen in self.browser.value("""(() => {
          const linear = value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
          const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
          const text = luminance(colours.text.match(/[0-9a-f]{2}/g).map(pair => parseInt(pair, 16)));
          const seen = {}, copy = document.createElement("canvas");
          [copy.width, copy.height] = [canvas.width, canvas.height];
          const pixels = copy.getContext("2d", {willReadFrequently: true});
          pixels.drawImage(canvas, 0, 0);
          for (const box of shownBoxes) {
            if (box.node === -1 || !isLeaf(box)) continue;
            const x = (box.x + 5) * view.scale + view.x, y = (box.y + box.cell.h / 2) * view.scale + view.y;
            const rgb = [...pixels.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data].slice(0, 3);
            const own = luminance(rgb);
            seen[box.node] = {luminance: own, spread: Math.max(...rgb) - Math.min(...rgb),
              contrast: (Math.max(own, text) + 0.05) / (Math.min(own, text) + 0.05)};
          }
          return seen; })()""").items()}

    def search(self, text):
        self.browser.press("Escape", 27)
        self.browser.press("/", 191, "/")
        self.browser.type(text)


def node(at, kind="kernel", **more):
    if kind == "kernel":
        more = {"function": "f", "grid": [1, 1, 1], "block": [32, 1, 1], "shared_bytes": 0, "arguments": []} | more
    return {"id": at, "kind": kind} | more


def timing(nodes, launches=10, median_ns=1000, busy_ns=900):
    """`nodes` has the median in ns of each node that has a time, and 1 ns more as the longest run."""
    times = [{"node": at, "count": launches, "median_ns": ns, "min_ns": ns, "max_ns": min(ns + 1, 2 ** 64 - 1)}
             for at, ns in nodes.items()]
    return {"launches": launches, "median_ns": median_ns, "busy_ns": busy_ns, "nodes": times}


def write(file, nodes, edges, allocations=(), bodies=(), times=None):
    edges = [{"from": a, "to": b} for a, b in sorted(set(edges))]
    file.write_text(json.dumps({"schema": "cgrt-graph", "version": 4, "nodes": nodes, "edges": edges,
                                "allocations": list(allocations), "bodies": list(bodies)} |
                               ({"timing": times} if times else {})))
    return file


def model(file, layers, scopes=True, is_timed=False):
    """A chain of layers: each a norm, four branches of three kernels, a kernel that joins them, a copy from the start."""
    nodes, edges, last, size = [], [], None, 15
    names = ["rms_norm<float, 128>", "ns::gemm<ns::Tile<128, 256>, __nv_bfloat16>", "rotary", "softmax", "add_residual"]
    for layer in range(layers):
        first = len(nodes)

        def add(name, scope, pointers, first=first, layer=layer, **more):
            arguments = [{"offset": 8 * i, "size": 8, "pointer": [p, 0]} for i, p in enumerate(pointers)]
            scope = {"scope": f"layer{layer}/{scope}" if scope else f"layer{layer}"} if scopes else {}
            nodes.append(node(len(nodes), function=name, grid=[64 + len(nodes) % 7, 1, 1], block=[256, 1, 1], device=0,
                              arguments=arguments, **scope, **more))
            return len(nodes) - 1
        x = 2 * layer % 16
        norm = add(names[0], "", [x, x + 1])
        if last is not None:
            edges.append((last, norm))
        ends = []
        for branch in range(4):
            scope, before = ["attention", "attention", "mlp", "mlp"][branch], norm
            for step in range(3):
                one = add(names[1 + step], scope, [x + 1, 17 + branch])
                edges.append((before, one))
                before = one
            ends.append(before)
        last = add(names[4], "", [x, x + 2])
        edges += [(one, last) for one in ends] + [(norm, last)]
        nodes.append(node(len(nodes), "memset", destination=[17, 0], value=0, element_bytes=4, width=1024,
                          **({"scope": f"layer{layer}"} if scopes else {})))
        edges.append((len(nodes) - 1, last))
        assert len(nodes) - first == size
    allocations = [{"id": i, "kind": "device", "device": 0, "bytes": 1 << 20 + i % 5} for i in range(21)]
    times = {at: 800 + 211 * (at % 15) ** 2 + 5 * (at // 15) for at in range(len(nodes))} if is_timed else {}
    return write(file, nodes, edges, allocations, times=timing(times, median_ns=sum(times.values())) if is_timed else None)
