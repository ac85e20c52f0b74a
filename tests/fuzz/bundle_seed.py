#!/usr/bin/env python3
"""bundle_seed.py BUNDLE OUT [GRAPH...]: makes inputs of the fuzzers of bundles (bundle_input.h) in the folder OUT: the
bundle, the bundle with an address in its memory, so that it can be loaded anywhere, and the bundle with each graph file
in the place of its own. Their kernels become those of the bundle's."""
import json
import pathlib
import struct
import sys

BLOCK_BYTES, PLACE_BYTES = 2 << 20, 1 << 14


def with_graph(manifest, files, graph):
    """The parts of a bundle whose one graph is that of a file."""
    kernels = [node for node in graph["nodes"] if node["kind"] == "kernel"]
    scale = next(node for node in json.loads(files[0])["nodes"] if node["kind"] == "kernel")
    for node in graph["nodes"]:  # that is not replayed
        if node["kind"] in ("event wait", "host", "semaphore signal", "semaphore wait"):
            keep = {key: node[key] for key in ("id", "device", "body", "scope") if key in node}
            node.clear()
            node.update(keep, kind="empty")
        if node["kind"] == "memcpy":
            for operand in ("source", "destination"):
                node.setdefault(operand, [0, 0])
                if node.get("height", 1) > 1:
                    node.setdefault(operand + "_pitch", node["width_bytes"])
    graph["allocations"] = graph["allocations"] or [{"id": 0, "kind": "device", "device": 0, "bytes": 4096}]
    for kernel in kernels:
        kernel.update(function=scale["function"], arguments=json.loads(json.dumps(scale["arguments"])))
        for argument in kernel["arguments"]:
            if "pointer" in argument:
                argument["pointer"] = [0, 0]
    saved = dict(manifest["graphs"][-1], file="0" * 32, node_kernels=[0] * len(kernels), allocations=[])
    for allocation in graph["allocations"]:
        allocation["bytes"] = min(allocation.get("bytes", 0), PLACE_BYTES)
        saved["allocations"].append([0, len(saved["allocations"]) * PLACE_BYTES, PLACE_BYTES])
    assert len(saved["allocations"]) * PLACE_BYTES <= BLOCK_BYTES
    return dict(manifest, graphs=[saved]), [json.dumps(graph).encode(), *files[1:]]


def movable(manifest, files):
    """The parts of the bundle with an address at the beginning of the memory of its graphs."""
    files = list(files)
    saved = manifest["graphs"][-1]
    number, block = int(saved["memory"][0]["hash"]), saved["memory"][0]["range"][0]
    address = int(manifest["blocks"][block]["address"], 16)
    files[number] = struct.pack("<Q", address) + files[number][8:]
    files.append(struct.pack("<Q", 0))
    addresses = {"offsets": f"{len(files) - 1:032x}", "blocks": [[block, 1]]}
    return dict(manifest, graphs=[dict(saved, movable=True, addresses=addresses)]), files


def write(path, manifest, files):
    text = json.dumps(manifest, indent=1).removesuffix("\n}")
    path.write_bytes((b"\x1e" * 4).join([text.encode(), *files]))


def main(bundle, out, graphs):
    text = (bundle / "manifest.json").read_text()
    for path in (bundle / "code").iterdir():  # support/scale_image.h
        text = text.replace(path.name, "f" * 32)
    files = []  # first the graph, which all of the bundle's are
    for path in sorted(bundle.glob("graphs/*"))[:1] + sorted(bundle.glob("memory/*")):
        name = path.name.split(".")[-3] if path.parent.name == "graphs" else path.name
        text = text.replace(name, f"{len(files):032x}")
        files.append(path.read_bytes())
    manifest = json.loads(text)
    del manifest["hash"]
    write(out / "bundle", manifest, files)
    write(out / "movable", *movable(manifest, files))
    for graph in graphs:
        write(out / graph.name, *with_graph(manifest, files, json.loads(graph.read_text())))


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), [pathlib.Path(name) for name in sys.argv[3:]])
