// Texts: how wide they are, and what is left of one that is too wide.

const font = "system-ui, 'DejaVu Sans', sans-serif";
const titleFont = `600 13px ${font}`, noteFont = `11px ${font}`, linkFont = `13px ${font}`;
const canvas = document.getElementById("canvas");
const context = canvas.getContext("2d");

const measured = new Map();
function widthOf(text, textFont) {
  const key = textFont + text;
  let width = measured.get(key);
  if (width === undefined) {
    context.font = textFont;
    width = context.measureText(text.length > 300 ? text.slice(0, 300) : text).width;
    measured.set(key, width);
  }
  return width;
}

// With the middle left out where it is wider: names of kernels differ at both ends.
const shortened = new Map();
function shorten(text, textFont, room) {
  if (widthOf(text, textFont) <= room && text.length <= 300) return text;
  const key = textFont + Math.round(room) + "|" + text;
  let found = shortened.get(key);
  if (found === undefined) {
    const letters = Array.from(text.length > 600 ? text.slice(0, 300) + text.slice(-300) : text);
    let low = 0, high = letters.length;
    const cut = kept => {
      const back = Math.floor(kept / 3);
      return letters.slice(0, kept - back).join("") + "\u2026" + (back ? letters.slice(-back).join("") : "");
    };
    context.font = textFont;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (context.measureText(cut(middle)).width <= room) low = middle; else high = middle;
    }
    found = cut(low);
    shortened.set(key, found);
  }
  return found;
}

// The title and the note of a box. Where nodes are coloured by their times, the note says the time.
function linesOf(box, isByTime = colourBy === "time") {
  const time = isByTime && box.time !== undefined ? timeAndShare(box.time) : undefined;
  if (box.node !== -1) {
    const node = nodes[box.node];
    const inside = box.children.length && !box.open ? `  ${plural(box.inside, "node")} inside` : "";
    return [titleOf(node), `#${box.node}  ${time ?? node.note ?? ""}${inside}`];
  }
  const count = box.inside === 0 ? "empty" : plural(box.inside, "node");
  return [box.label || "(no name)", time === undefined ? count : `${count}  ${time}`];
}
