"""Fails when a kernel of timed.cu took another time than its argument says: another node's, for instance.

    python3 check_times.py FILE.cgrt.json...
"""
import json
import sys

bad = 0
for path in sys.argv[1:]:
    graph = json.load(open(path))
    times = {one["node"]: one for one in graph["timing"]["nodes"]}
    kernels = [node for node in graph["nodes"] if node["kind"] == "kernel"]
    worst = 0
    for node in kernels:
        wanted = int.from_bytes(bytes.fromhex(node["arguments"][0]["bytes"]), "little")
        off = times[node["id"]]["median_ns"] / wanted - 1
        worst = max(worst, abs(off))
        bad += abs(off) > 0.1
    total = sum(times[node["id"]]["median_ns"] for node in kernels)
    print(f"{path}: {len(kernels)} kernels, at most {100 * worst:.1f} % off; sum {total / 1e3:.1f} us, "
          f"a launch {graph['timing']['median_ns'] / 1e3:.1f} us, busy {graph['timing']['busy_ns'] / 1e3:.1f} us")
sys.exit(1 if bad else 0)
