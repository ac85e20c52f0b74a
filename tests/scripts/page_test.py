#!/usr/bin/env python3
"""page_test.py GRAPHDUMP ROOT [--pictures DIR]: opens pages of `graphdump show --format html` in Chromium, without a
window, and uses them as a person does: looks, searches, clicks, folds. Prints how long the page of 10,000 nodes takes to
load. --pictures also writes pictures of the pages, as PNG files. Exit 77 (skipped) without Chromium."""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile

from page_browser import Browser
from page_checks import Checks, model, node, timing, write

HOSTILE = ["</script><script>window.hostile = 1</script>", '"\'><img src=x onerror="window.hostile = 1">', "a & b &lt;b&gt;",
           "line\u2028separator", "<!--<script>", "\u202eturned", "{{script}}", "a\nb\t\\", "\x1b[2J", "naïve ☃ 中文 😀",
           "a\0b", "]]>", "long<" * 2000]


def check_docs_graph(checks, root):
    browser = checks.browser
    checks.open("docs", root / "docs" / "graph.cgrt.json")
    checks.equal("counts", checks.text("#counts").replace("\n", " "), "6 nodes 6 edges depth 5 width 2 4 kernel 2 memcpy")
    checks.equal("colours without times", browser.value("[...document.querySelectorAll('#colour option')].map(one => one.value)"),
                 ["kind", "name", "scope"])
    checks.equal("longest nodes without times", browser.value("document.getElementById('longest').offsetParent"), None)
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
    browser.value("canvas.focus()")
    browser.press("ArrowUp", 38)
    browser.press("ArrowLeft", 37)
    checks.equal("arrow keys move", browser.value("[view.x, view.y]"), [before[0] + 140, before[1] + 100])
    scale = browser.value("view.scale")
    browser.press("-", 189, "-")
    checks.equal("the minus key zooms out", browser.value("view.scale") < scale, True)
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
        checks.equal("it is said that there are no nodes", checks.text("#picture") == "The graph has no nodes.", not graph["nodes"])
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


def check_times(checks, root):
    """The times of a recorded graph: a strong colour is a long time, in light and in dark."""
    browser, file = checks.browser, root / "tests" / "recording" / "graphs" / "transformer.cgrt.json"
    medians = {one["node"]: one["median_ns"] for one in json.loads(file.read_text())["timing"]["nodes"]}
    checks.open("times", file)
    checks.holds("header", checks.text("#counts"), "10 launches median 63.0 us idle 13.0 %")
    checks.equal("begins coloured by", browser.value("document.getElementById('colour').value"), "time")
    checks.equal("legend", checks.text("#legend"), "0 us 6.5 us 11.9 %")
    checks.equal("notes can be read", browser.value("view.scale >= minNoteScale"), True)
    browser.click(*checks.place("boxes[boxOfNode[3]]"))
    checks.picture("times-page")
    browser.press("Escape", 27)
    browser.press("f", 70, "f")
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        seen = checks.colours()
        shades = [seen[at]["luminance"] for at in sorted(medians, key=medians.get)]
        checks.equal(f"{scheme}: a longer time is stronger", shades, sorted(shades, reverse=scheme == "light"))
        ratio = (max(shades) + 0.05) / (min(shades) + 0.05)
        checks.equal(f"{scheme}: the longest differs from the shortest", ratio > 2, True)
        checks.equal(f"{scheme}: texts that cannot be read", [at for at, one in seen.items() if one["contrast"] < 4.5], [])
        checks.picture(f"times-{scheme}")
    browser.call("Emulation.setEmulatedMedia", features=[])

    browser.click(*checks.place("boxes[boxOfNode[11]]"))
    for part in ("median 6.5 us", "min 6.4 us", "max 6.6 us", "runs 10 in 10 launches", "share 11.9 % of the sum of all nodes"):
        checks.holds("details of node 11", checks.text("#details"), part)
    browser.click_on("#longest")
    rows = [row.split()[0] for row in browser.value("[...document.querySelectorAll('.times tr')].map(row => row.innerText)")]
    longest = sorted(medians, key=medians.get, reverse=True)[:10]
    checks.equal("longest nodes", rows, [f"#{at}" for at in longest] + ["10"])
    checks.holds("their sum", checks.text(".times tr.sum"), "10 nodes 47.1 us 85.9 %")
    checks.picture("times-longest")
    browser.click_on(".times tr:nth-child(2) .link")
    checks.holds("details of the second longest", checks.text("#details"), f"node {longest[1]}, kernel")
    checks.done()


def check_folded_times(checks, root):
    """A folded box has the time of all inside, and the scale is that of what is shown."""
    browser = checks.browser
    checks.open("folded times", root / "tests" / "recording" / "graphs" / "timed.cgrt.json")
    checks.equal("legend", checks.text("#legend"), "0 us 170.6 us 23.6 %")
    before = checks.colours()
    browser.click(*checks.place("boxes[boxOfNode[3]]", 14, 20))
    after = checks.colours()
    checks.equal("note of the folded child graph", browser.value("linesOf(boxes[boxOfNode[3]])[1]"),
                 "#3  301.2 us  41.6 %  2 nodes inside")
    checks.equal("legend", checks.text("#legend"), "0 us 301.2 us 41.6 %")
    checks.equal("the strongest colour", min(after, key=lambda at: after[at]["luminance"]), 3)
    checks.equal("the others are lighter now", all(after[at]["luminance"] > before[at]["luminance"] for at in (0, 1, 2, 4)), True)
    browser.click(*checks.place("boxes[boxOfNode[3]]", 60, 20))
    for part in ("Time sum of medians inside 301.2 us share 41.6 %", "Inside child: 2 nodes 301.2 us 41.6 %"):
        checks.holds("details of node 3", checks.text("#details"), part)
    checks.equal("the panel at the side does not cover it",
                 browser.value("(box => (box.x + box.cell.w) * view.scale + view.x < canvas.clientWidth)(boxes[boxOfNode[3]])"), True)
    checks.picture("times-folded")
    checks.done()


def check_few_times(checks):
    """Nodes without a time, and times that are odd: 0, all equal, more than a double counts."""
    browser, file = checks.browser, checks.folder / "few.cgrt.json"
    scopes = [node(0, scope="a"), node(1, scope="a"), node(2, "host"), node(3, scope="b"), node(4, "empty", scope="b")]
    chain = [(i, i + 1) for i in range(4)]
    checks.open("few times", write(file, scopes, chain, times=timing({0: 2000, 1: 3000, 3: 0})))
    checks.equal("legend", checks.text("#legend"), "0 us 3.0 us 60.0 % no time 2")
    seen = checks.colours()
    checks.equal("nodes that are grey", [at for at, one in seen.items() if one["spread"] < 8], [2, 4])
    checks.picture("few-times")
    browser.click(*checks.place("boxes[boxOfNode[2]]"))
    checks.equal("a node without a time says none", "us" in checks.text("#details"), False)
    browser.click(*checks.place("boxes[boxOfNode[3]]"))
    checks.holds("a time of 0", checks.text("#details"), "median 0.0 us min 0.0 us max 0.0 us")
    browser.click_on("#longest")
    checks.equal("longest nodes", browser.value("document.querySelectorAll('.times tr').length"), 3)
    browser.click_on("#fold")
    browser.click(*checks.place("boxes.find(box => box.label === 'a')"))
    checks.holds("details of a folded scope", checks.text("#details"), "a scope, 2 nodes Time sum of medians inside 5.0 us share 100.0 %")
    checks.equal("legend", checks.text("#legend"), "0 us 5.0 us 100.0 % no time 2")
    checks.done()

    most = 2 ** 64 - 1
    cases = {
        "all equal": ({at: 700 for at in range(5)}, 10, "0 us 0.7 us 20.0 %", "10 launches median 1.0 us idle 10.0 %"),
        "all 0": ({at: 0 for at in range(5)}, 10, "0 us 0.0 us 0.0 %", "10 launches median 1.0 us idle 10.0 %"),
        "all the largest": ({at: most for at in range(5)}, most, "0 us 18,446,744,073,709,552.0 us 20.0 %",
                            "18,446,744,073,709,551,615 launches median 1.0 us"),
    }
    for name, (times, launches, legend, header) in cases.items():
        checks.open(name, write(file, [node(at) for at in range(5)], chain, times=timing(times, launches)))
        checks.equal("legend", checks.text("#legend"), legend)
        checks.holds("header", checks.text("#counts"), header)
        checks.equal("shades", len({one["luminance"] for one in checks.colours().values()}), 1)
        browser.click(*checks.place("boxes[boxOfNode[4]]"))
        checks.holds("details", checks.text("#details"), f"runs {launches:,} in {launches:,} launches")
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
        "a scope of 5,000 levels": ([node(i, scope="/".join("s" * 5000)) for i in range(2)], [(0, 1)], []),
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
    largest = {"id": 0, "kind": "device", "device": 0, "bytes": 2 ** 64 - 1}
    file = write(checks.folder / "hostile.cgrt.json", nodes, [(i, i + 1) for i in range(len(nodes) - 1)], [largest])
    checks.open("hostile", file)
    shown = {3: r"line\xe2\x80\xa8separator", 5: r"\xe2\x80\xaeturned", 7: "a\\x0ab\\x09\\", 8: r"\x1b[2J", 10: r"a\x00b"}
    for i, text in enumerate(HOSTILE):
        checks.search(f"#{i}")
        browser.press("Enter", 13)
        checks.equal(f"name {i}", browser.value("(document.querySelector('#details .name') || document.querySelector('#details h2')).textContent"), shown.get(i, text))
    browser.value("(() => { colourBy = 'name'; setColours(); setMemoryOpen(true); })()")
    browser.press("Escape", 27)
    browser.press("f", 70, "f")
    checks.picture("hostile")
    checks.holds("an allocation of 2^64 - 1 bytes", checks.text("#allocations"), "18,446,744,073,709,551,615")
    checks.equal("nothing ran", browser.value("window.hostile"), None)
    checks.equal("elements that names made", browser.value("document.querySelectorAll('img, b b, script').length"), 2)
    checks.done()


def check_many_nodes(checks, name, file):
    browser = checks.browser
    milliseconds = checks.open(name, file)
    checks.holds("counts", checks.text("#counts"), "10,005 nodes")
    checks.equal("notes can be read", browser.value("view.scale >= minNoteScale"), True)
    checks.picture(name)
    browser.value("document.getElementById('unfold').click()")
    browser.press("f", 70, "f")
    drawn = browser.value("(() => { const begin = performance.now(); relayOut(); const laid = performance.now(); paint();"
                          " return [laid - begin, performance.now() - laid]; })()")
    checks.equal("nodes that are drawn", browser.value("shownBoxes.filter(box => box.node !== -1).length"), 10005)
    checks.picture(f"{name}-unfolded")
    checks.search("#5000")
    browser.press("Enter", 13)
    checks.holds("details", checks.text("#details"), "node 5000, kernel")
    checks.picture(f"{name}-node")
    outer = "shownBoxes.find(box => box.labelY > box.y && isInSight({x: box.x, y: box.labelY + 9}))"
    if browser.value(f"{outer} !== undefined"):
        browser.click(*checks.place(outer, 60, browser.value(f"{outer}.labelY - {outer}.y") + 13))
        checks.holds("details of a scope whose label stayed in sight", checks.text("#details"), "scope, 15 nodes")
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
            check_times(checks, options.root)
            check_folded_times(checks, options.root)
            check_few_times(checks)
            check_shapes(checks)
            check_wide_fan(checks)
            check_hostile_names(checks)
            check_many_nodes(checks, "scopes", model(folder / "scopes.cgrt.json", 667, is_timed=True))
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
    checks.browser.press("f", 70, "f")
    checks.browser.click(*checks.place("boxes[boxOfNode[16]]"))
    checks.picture("layers-selected")
    checks.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    checks.browser.click_on("#memory-button")
    checks.picture("layers-dark")
    checks.browser.call("Emulation.setEmulatedMedia", features=[])
    checks.done()


sys.exit(main())
