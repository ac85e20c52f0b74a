#!/usr/bin/env python3
"""page_test.py GRAPHDUMP ROOT [--pictures DIR]: opens pages of `graphdump show --format html` in Chromium, without a
window, and uses them as a person does: looks, searches, clicks, folds. Prints how long the page of 10,000 nodes takes to
load. --pictures also writes pictures of the pages, as PNG files. Exit 77 (skipped) without Chromium."""
import argparse
import base64
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WIDTH, HEIGHT = 1280, 800
HOSTILE = ["</script><script>window.hostile = 1</script>", '"\'><img src=x onerror="window.hostile = 1">', "a & b &lt;b&gt;",
           "line\u2028separator", "<!--<script>", "\u202eturned", "{{script}}", "a\nb\t\\", "\x1b[2J", "naïve ☃ 中文 😀"]


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


class Browser:
    """Chromium, spoken to in the DevTools protocol through a pair of pipes."""

    def __init__(self, program, folder):
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        # Out of the way of 3 and 4, which the shell gives to the browser.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
        command = [program, "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
                   "--disable-background-networking", "--force-color-profile=srgb", f"--window-size={WIDTH},{HEIGHT}",
                   f"--user-data-dir={folder}/profile", "--disable-dev-shm-usage"]
        command += ["--no-sandbox"] if os.getuid() == 0 else []
        self.log = open(folder / "chromium.log", "wb")
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "-", *command],
                                        pass_fds=ends, stdout=self.log, stderr=self.log)
        for end in [to_browser, from_browser, *ends]:
            os.close(end)
        self.buffer, self.last_id, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)

    def read(self):
        while b"\0" not in self.buffer:
            more = os.read(self.into, 1 << 16)
            if not more:
                raise RuntimeError(f"Chromium left: {pathlib.Path(self.log.name).read_text(errors='replace')[-2000:]}")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, page):
        """Opens a page; returns the milliseconds until it was drawn."""
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read())
        return self.value("new Promise(done => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))")

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self):
        """Waits until what was asked to be drawn is drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def click_on(self, selector):
        x, y = self.value(f"""(() => {{ const at = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
            return [at.left + at.width / 2, at.top + at.height / 2]; }})()""")
        self.click(x, y)

    def press(self, key, code=0, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def picture(self, file):
        self.settle()
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """Errors and warnings of the console, and requests for anything but the page."""
        found = []
        for event in self.events:
            method, params = event["method"], event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"])[:500])
            elif method == "Runtime.consoleAPICalled":
                found.append(f"console.{params['type']}: {params['args']}")
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent" and params["type"] != "Document":
                found.append(f"a request: {params['request']['url']}")
        requests = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return found + ([f"{len(requests)} requests"] if len(requests) > 1 else [])

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait()
        self.log.close()


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

    def search(self, text):
        self.browser.press("Escape", 27)
        self.browser.press("/", 191, "/")
        self.browser.type(text)


def node(at, kind="kernel", **more):
    if kind == "kernel":
        more = {"function": "f", "grid": [1, 1, 1], "block": [32, 1, 1], "shared_bytes": 0, "arguments": []} | more
    return {"id": at, "kind": kind} | more


def write(file, nodes, edges, allocations=(), bodies=()):
    edges = [{"from": a, "to": b} for a, b in sorted(set(edges))]
    file.write_text(json.dumps({"schema": "cgrt-graph", "version": 4, "nodes": nodes, "edges": edges,
                                "allocations": list(allocations), "bodies": list(bodies)}))
    return file


def model(file, layers, scopes=True):
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
    return write(file, nodes, edges, allocations)


def check_docs_graph(checks, root):
    browser = checks.browser
    checks.open("docs", root / "docs" / "graph.cgrt.json")
    checks.equal("counts", checks.text("#counts").replace("\n", " "), "6 nodes 6 edges depth 5 width 2 4 kernel 2 memcpy")
    checks.picture("docs")
    browser.click(*checks.place("boxes[boxOfNode[2]]"))
    details = checks.text("#details")
    for part in ("softmax", "node 2, kernel", "grid (256,1,1)", "block (256,1,1)", "attention", "device#0+0x80000", "65536",
                 "Waits for 1", "#1 scores programmatic", "1 waits for it", "#4 add"):
        checks.holds("details of node 2", details, part)
    checks.picture("docs-selected")
    browser.click_on("#details ul .link")
    checks.holds("details of what node 2 waits for", checks.text("#details"), "node 1, kernel")
    browser.press("Escape", 27)
    checks.equal("details after Esc", browser.value("document.getElementById('details').hidden"), True)

    browser.click_on("#memory-button")
    checks.equal("rows of the memory view", browser.value("document.querySelectorAll('#allocations tr').length"), 2)
    for part in ("device#0", "1,048,576", "pinned#1", "262,144", "#0 memcpy", "#5 memcpy"):
        checks.holds("memory view", checks.text("#memory"), part)
    browser.click_on("#allocations tr:nth-child(2) td:nth-child(2)")
    checks.holds("details of an allocation", checks.text("#details"), "Used by 2 nodes #0 memcpy read #5 memcpy write")
    checks.equal("nodes that are highlighted", browser.value("[...lightOf().boxes.keys()].map(box => boxes[box].node)"), [0, 5])
    checks.picture("docs-memory")
    browser.press("Escape", 27)
    browser.press("f", 70, "f")
    browser.click(*checks.place("boxes[boxOfNode[0]]"))
    checks.equal("allocations that node 0 touches", browser.value("document.querySelectorAll('#allocations tr.touched').length"), 2)
    browser.click(*checks.place("boxes[boxOfNode[2]]"))
    checks.picture("docs-page")
    browser.click_on("#memory-button")
    browser.press("Escape", 27)

    checks.search("gelu")
    checks.equal("hits", checks.text("#hits"), "1 hit")
    browser.press("Enter", 13)
    checks.equal("hit", checks.text("#hits"), "1 of 1")
    checks.holds("details of the hit", checks.text("#details"), "node 3, kernel")
    checks.search("attention")
    browser.press("Enter", 13)
    browser.press("Enter", 13)
    checks.equal("second hit", checks.text("#hits"), "2 of 2")
    checks.holds("its details", checks.text("#details"), "node 2, kernel")
    checks.search("nothing of that name")
    checks.equal("no hits", checks.text("#hits"), "no hits")
    browser.press("Escape", 27)

    for by, count in (("name", 4), ("scope", 4), ("kind", 2)):
        browser.value(f"(() => {{ const select = document.getElementById('colour'); select.value = '{by}';"
                      " select.dispatchEvent(new Event('change')); })()")
        checks.equal(f"colours by {by}", browser.value("document.querySelectorAll('#legend i').length"), count)

    browser.press("f", 70, "f")
    scope = "boxes.find(box => box.label === 'attention')"
    shown = browser.value("shownBoxes.length")
    browser.click(*checks.place(scope, 14, 13))
    checks.equal("boxes with a folded scope", browser.value("shownBoxes.length"), shown - 2)
    checks.equal("edges with a folded scope", browser.value("links.length"), 5)
    checks.picture("docs-folded")
    browser.click(*checks.place(scope))
    checks.holds("details of a folded scope", checks.text("#details"), "attention scope, 2 nodes")
    browser.click(*checks.place(scope, 14, 20))
    checks.equal("boxes with the scope unfolded", browser.value("shownBoxes.length"), shown)

    scale = browser.value("view.scale")
    browser.call("Input.dispatchMouseEvent", type="mouseWheel", x=500, y=400, deltaX=0, deltaY=-120)
    browser.settle()
    checks.equal("the wheel zooms in", browser.value("view.scale") > scale, True)
    before = browser.value("[view.x, view.y]")
    for kind, x, y in (("mousePressed", 30, 300), ("mouseMoved", 90, 320), ("mouseReleased", 90, 320)):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    browser.settle()
    checks.equal("dragging moves", browser.value("[view.x, view.y]"), [before[0] + 60, before[1] + 20])
    checks.done()


def check_golden_graphs(checks, root):
    browser = checks.browser
    for file in sorted((root / "tests" / "golden").glob("*.cgrt.json")):
        name = file.name.removesuffix(".cgrt.json")
        graph = json.loads(file.read_text())
        checks.open(name, file)
        checks.holds("counts", checks.text("#counts"), f"{len(graph['nodes'])} node")
        checks.holds("counts", checks.text("#counts"), f"{len(graph['edges'])} edge")
        checks.equal("nodes that are drawn", browser.value("shownBoxes.filter(box => box.node !== -1).length"), len(graph["nodes"]))
        browser.click_on("#memory-button")
        checks.equal("allocations", browser.value("allocationRows.length"), len(graph["allocations"]))
        checks.picture(name)
        for one in range(len(graph["nodes"])):
            browser.press("Escape", 27)
            browser.press("f", 70, "f")
            browser.click(*checks.place(f"boxes[boxOfNode[{one}]]"))
            checks.holds("details", checks.text("#details"), f"node {one}, {graph['nodes'][one]['kind']}")
        checks.done()

    checks.open("conditional", root / "tests" / "golden" / "conditional.cgrt.json")
    browser.click(*checks.place("boxes.find(box => box.label === 'then')", 5, 40))
    checks.holds("details of a body's owner", checks.text("#details"), "node 2, conditional")

    checks.open("nested", root / "tests" / "golden" / "nested.cgrt.json")
    browser.click(*checks.place("boxes[boxOfNode[1]]", 14, 20))
    checks.equal("nodes with the child graph folded", browser.value("shownBoxes.filter(box => box.node !== -1).length"), 6)
    checks.picture("nested-folded")
    checks.search("scale")
    browser.press("Enter", 13)
    checks.equal("a search unfolds it", browser.value("shownBoxes.filter(box => box.node !== -1).length"), 9)
    checks.holds("details", checks.text("#details"), "node 8, kernel")
    checks.done()


def check_shapes(checks):
    """Graphs whose layout is not a plain one."""
    alternating = [node(i, scope=["attention", "mlp"][i % 2]) for i in range(8)] + [node(8)]
    switch = {"conditional": "switch", "handle": 0}
    cases = {
        "scopes in a circle": (alternating, [(i, i + 1) for i in range(8)] + [(1, 4)], []),
        "edges that skip": ([node(i) for i in range(40)], [(i, i + 1) for i in range(39)] + [(i, i + 5) for i in range(0, 35, 3)] +
                            [(0, 39), (0, 20)], []),
        "bodies": ([node(0, "conditional", **switch)] + [node(i + 1, body=i + 1, scope=f"s/{i}") for i in range(6)], [],
                   [{"id": i + 1, "owner": 0} for i in range(6)]),
        "very deep": ([node(i, "child graph", body=i) for i in range(2000)], [], [{"id": i + 1, "owner": i} for i in range(1999)]),
        "a wide fan": ([node(i) for i in range(1000)], [(0, i) for i in range(1, 999)] + [(i, 999) for i in range(1, 999)], []),
    }
    for name, (nodes, edges, bodies) in cases.items():
        checks.open(name, write(checks.folder / "shape.cgrt.json", nodes, edges, bodies=bodies))
        checks.browser.value("setAllOpen(true)")
        checks.picture(name)
        checks.equal("nodes that are drawn", checks.browser.value("shownBoxes.filter(box => box.node !== -1).length"), len(nodes))
        checks.equal("back edges", checks.browser.value("strokes.some(one => one.isBack)"), name == "scopes in a circle")
        checks.done()


def check_wide_fan(checks):
    """10,000 edges from one node: far from it, each node in sight still has its edges."""
    edges = [(0, i) for i in range(1, 9999)] + [(i, 9999) for i in range(1, 9999)]
    checks.open("fan", write(checks.folder / "fan.cgrt.json", [node(i) for i in range(10000)], edges))
    checks.equal("of 9,998 edges at the first node are drawn", checks.browser.value("thinned(strokes).length < 4000"), True)
    checks.search("#900")
    checks.browser.press("Enter", 13)
    ends = checks.browser.value("""(() => {
      const inSight = shownBoxes.filter(box => box.cell && isInSight(box) && isInSight({x: box.x + box.cell.w, y: box.y}));
      const drawn = new Set(thinned(strokes));
      return inSight.map(box => links.filter(link => link.from === box.id || link.to === box.id)
        .filter(link => drawn.has(link.parts[0].stroke)).length); })()""")
    checks.equal("more than one node is in sight", len(ends) > 1, True)
    checks.equal("edges of the nodes in sight", ends, [2] * len(ends))
    checks.done()


def check_hostile_names(checks):
    browser = checks.browser
    nodes = [node(i, function=text, scope=text.replace("/", "|")) for i, text in enumerate(HOSTILE)]
    file = write(checks.folder / "hostile.cgrt.json", nodes, [(i, i + 1) for i in range(len(nodes) - 1)])
    checks.open("hostile", file)
    shown = {3: r"line\xe2\x80\xa8separator", 5: r"\xe2\x80\xaeturned", 7: "a\\x0ab\\x09\\", 8: r"\x1b[2J"}
    for i, text in enumerate(HOSTILE):
        checks.search(f"#{i}")
        browser.press("Enter", 13)
        checks.equal(f"name {i}", browser.value("document.querySelector('#details code').textContent"), shown.get(i, text))
    browser.value("(() => { colourBy = 'name'; setColours(); setMemoryOpen(true); })()")
    browser.press("Escape", 27)
    browser.press("f", 70, "f")
    checks.picture("hostile")
    checks.equal("nothing ran", browser.value("window.hostile"), None)
    checks.equal("elements that names made", browser.value("document.querySelectorAll('img, b b, script').length"), 2)
    checks.done()


def check_many_nodes(checks, name, file):
    browser = checks.browser
    milliseconds = checks.open(name, file)
    checks.holds("counts", checks.text("#counts"), "10,005 nodes")
    checks.picture(name)
    browser.value("document.getElementById('unfold').click()")
    browser.settle()
    drawn = browser.value("(() => { const begin = performance.now(); relayOut(); const laid = performance.now(); paint();"
                          " return [laid - begin, performance.now() - laid]; })()")
    checks.equal("nodes that are drawn", browser.value("shownBoxes.filter(box => box.node !== -1).length"), 10005)
    checks.picture(f"{name}-unfolded")
    checks.search("#5000")
    browser.press("Enter", 13)
    checks.holds("details", checks.text("#details"), "node 5000, kernel")
    checks.picture(f"{name}-node")
    near = browser.value("(() => { const begin = performance.now(); for (let i = 0; i < 10; ++i) paint(); return (performance.now() - begin) / 10; })()")
    size = (checks.folder / f"{name}.html").stat().st_size
    print(f"{name}: {size / 1e6:.1f} MB, drawn {milliseconds:.0f} ms after opening; all unfolded: layout {drawn[0]:.0f} ms, "
          f"a picture of all {drawn[1]:.0f} ms, near a node {near:.1f} ms")
    checks.done()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphdump", type=pathlib.Path)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path)
    options = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("skipped: there is no Chromium (package chromium)")
        return 77
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        browser = Browser(program, folder)
        checks = Checks(browser, options.graphdump.resolve(), folder, options.pictures)
        try:
            check_docs_graph(checks, options.root)
            check_golden_graphs(checks, options.root)
            check_shapes(checks)
            check_wide_fan(checks)
            check_hostile_names(checks)
            check_many_nodes(checks, "scopes", model(folder / "scopes.cgrt.json", 667))
            check_many_nodes(checks, "no scopes", model(folder / "flat.cgrt.json", 667, scopes=False))
            if options.pictures:
                model_page(checks)
        finally:
            browser.close()
    print(f"{checks.failures} of {checks.count} checks failed" if checks.failures else f"all {checks.count} checks passed")
    return 1 if checks.failures else 0


def model_page(checks):
    """Pictures alone, of a graph of some layers, in light and in dark."""
    checks.open("layers", model(checks.folder / "layers.cgrt.json", 3))
    checks.picture("layers")
    checks.browser.click(*checks.place("boxes[boxOfNode[16]]"))
    checks.picture("layers-selected")
    checks.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    checks.browser.click_on("#memory-button")
    checks.picture("layers-dark")
    checks.browser.call("Emulation.setEmulatedMedia", features=[])
    checks.done()


sys.exit(main())
