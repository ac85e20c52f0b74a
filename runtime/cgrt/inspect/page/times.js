// The times of nodes, where the file has them: how long a node's runs took in the launches that were measured.
//
// A box takes as long as all that is inside, one after the other: medians are added. A share is one of the whole
// graph's sum, as in `graphdump stats`.

for (const box of boxes) box.time = box.node === -1 || !nodes[box.node].time ? undefined : nodes[box.node].time[1];
for (const box of boxes.slice(1).reverse()) {
  const outer = boxes[box.parent];
  if (box.time !== undefined) outer.time = (outer.time || 0) + box.time;
}
const wholeTime = boxes[0].time;  // undefined: no node has a time

function share(part, whole) {
  const percent = whole > 0 ? 100 * part / whole : 0;
  return `${percent.toFixed(percent > 0 && percent < 0.1 ? 2 : 1)} %`;
}
const timeText = time => `${grouped((time / 1000).toFixed(1))} us`;
const timeAndShare = time => `${timeText(time)}  ${share(time, wholeTime)}`;

// The nodes that take longest, and none that takes no time at all.
function longestNodes(most = 10) {
  const ids = nodes.map((node, id) => id).filter(id => nodes[id].time && nodes[id].time[1] > 0);
  return ids.sort((a, b) => nodes[b].time[1] - nodes[a].time[1]).slice(0, most);  // equals in the order of nodes
}
