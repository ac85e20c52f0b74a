// How an open box lays out its children: levels by longest path, cells of no size where an edge passes a level, the
// order within a level by sweeps of barycentres, then the positions.

// Lays out the cells of `box`; returns its size, and leaves the places of its exits and entries in box.ports.
function arrange(box, side, top) {
  const levels = makeLevels(box);
  addPassing(box, levels);
  for (const level of levels) level.forEach((cell, i) => { cell.order = i; });
  order(levels);
  placeAcross(levels);

  let left = Infinity, right = -Infinity;
  for (const level of levels) {
    for (const cell of level) {
      left = Math.min(left, cell.x - cell.w / 2);
      right = Math.max(right, cell.x + cell.w / 2);
    }
  }
  for (const level of levels) for (const cell of level) cell.x += side - left;
  const backs = box.parts.filter(part => part.isBack);
  backs.forEach((part, i) => { part.lane = 10 + 9 * (i % 24); });
  box.laneStart = right - left + side;
  const lanes = backs.length ? 16 + 9 * Math.min(backs.length, 24) : 0;

  // Far apart ends need more height between the levels to be told apart.
  box.tops = [];
  box.bottoms = [];
  let y = top;
  levels.forEach((level, i) => {
    let height = 0, spread = 0;
    const isOutside = one => one !== undefined && one.every(cell => !cell.box && cell.port);  // entries or exits
    for (const cell of level) {
      height = Math.max(height, cell.h);
      for (const [other, port, otherPort] of cell.below) {
        spread = Math.max(spread, Math.abs(cell.x + port - other.x - otherPort));
      }
    }
    for (const cell of level) cell.y = height > 3 * nodeHeight ? y : y + (height - cell.h) / 2;
    box.tops.push(y);
    box.bottoms.push(y + height);
    y += height;
    const gap = isOutside(level) || isOutside(levels[i + 1]) ? 8 : minGap;
    if (i + 1 < levels.length) y += gap + Math.min(90, spread * 0.05);
  });
  const size = {w: right - left + 2 * side + lanes, h: y + side};
  for (const cell of box.cells) {
    if (cell.box) continue;
    box.ports.set(cell.port, cell.x);
    cell.y = cell.port.startsWith("in") ? 0 : size.h;
  }
  return size;
}

// Levels by longest path; entries are above all others, exits below.
function makeLevels(box) {
  const items = box.cells.filter(cell => cell.box);
  const waits = new Map(items.map(cell => [cell, 0]));
  const outs = new Map(items.map(cell => [cell, []])), ins = new Map(items.map(cell => [cell, []]));
  for (const part of box.parts) {
    if (!part.from.box || !part.to.box) continue;
    outs.get(part.from).push(part);
    ins.get(part.to).push(part);
    waits.set(part.to, waits.get(part.to) + 1);
  }
  const placed = new Set();
  const queue = items.filter(cell => waits.get(cell) === 0);
  const byRank = items.slice().sort((a, b) => a.box.rank - b.box.rank);
  let next = 0;
  for (let i = 0; placed.size < items.length; ++i) {
    if (i === queue.length) {  // a circle: go on with the one that should come first
      while (placed.has(byRank[next])) ++next;
      queue.push(byRank[next]);
    }
    const cell = queue[i];
    placed.add(cell);
    for (const part of ins.get(cell)) {
      if (placed.has(part.from)) continue;
      part.isBack = true;
      part.from.level = Math.max(part.from.level, cell.level + 1);
    }
    for (const part of outs.get(cell)) {
      if (placed.has(part.to)) continue;
      part.to.level = Math.max(part.to.level, cell.level + 1);
      waits.set(part.to, waits.get(part.to) - 1);
      if (waits.get(part.to) === 0) queue.push(part.to);
    }
  }
  // What waits for nothing stands just above the first that waits for it, not at the top of all.
  for (const cell of items) {
    if (cell.level === 0 && !ins.get(cell).length && outs.get(cell).length) {
      let below = Infinity;
      for (const part of outs.get(cell)) if (!part.isBack) below = Math.min(below, part.to.level);
      if (below !== Infinity) cell.level = below - 1;
    }
  }

  const entries = box.cells.filter(cell => !cell.box && cell.port.startsWith("in"));
  const exits = box.cells.filter(cell => !cell.box && cell.port.startsWith("out"));
  const levels = entries.length ? [entries] : [];
  for (const cell of items) {
    cell.level += entries.length ? 1 : 0;
    while (levels.length <= cell.level) levels.push([]);
    levels[cell.level].push(cell);
  }
  if (exits.length) levels.push(exits);
  for (const cell of exits) cell.level = levels.length - 1;
  return levels;
}

// Cells where edges pass levels, shared by the edges from one place. Above a total of cells edges run straight.
function addPassing(box, levels) {
  const chains = new Map();
  for (const part of box.parts) {
    if (part.isBack) continue;
    const span = part.to.level - part.from.level;
    let chain = chains.get(part.from);
    if (!chain) chains.set(part.from, chain = new Map());
    let cells = chain.get(part.fromPort);
    if (!cells) chain.set(part.fromPort, cells = []);
    let last = part.from;
    const isRouted = span - 1 - cells.length <= cellBudget;
    for (let i = 0; isRouted && i < span - 1; ++i) {
      if (i === cells.length) {
        --cellBudget;
        const cell = makeCell(null);
        cell.level = part.from.level + i + 1;
        levels[cell.level].push(cell);
        meet(last, i === 0 ? part.fromPort : "", cell, "");
        cells.push(cell);
      }
      last = cells[i];
      part.route.push(last);
    }
    if (isRouted) meet(last, last === part.from ? part.fromPort : "", part.to, part.toPort);
  }
}

function meet(upper, upperPort, lower, lowerPort) {
  // Of two boxes with something inside, the middles are aligned: along a chain of them, ports would lead sideways.
  const isWide = cell => cell.box !== null && !isLeaf(cell.box);
  const areWide = isWide(upper) && isWide(lower);
  const upperAt = areWide ? 0 : portOf(upper, upperPort), lowerAt = areWide ? 0 : portOf(lower, lowerPort);
  const weight = upper.box || lower.box ? 1 : 6;  // long edges are straight
  upper.below.push([lower, upperAt, lowerAt, weight]);
  lower.above.push([upper, lowerAt, upperAt, weight]);
}

function order(levels) {
  const cells = levels.reduce((sum, level) => sum + level.length, 0);
  if (levels.every(level => level.length === 1)) return;
  const counts = cells <= 2000;
  let best = null, fewest = Infinity;
  const keep = () => {
    const crossings = counts ? crossingsOf(levels) : 0;
    if (counts && crossings >= fewest) return;
    fewest = crossings;
    best = levels.map(level => level.slice());
  };
  keep();
  for (let sweep = 0; sweep < (counts ? 12 : 4) && fewest > (counts ? 0 : -1); ++sweep) {
    if (sweep % 2 === 0) {
      for (let i = 1; i < levels.length; ++i) sortLevel(levels[i], "above");
    } else {
      for (let i = levels.length - 2; i >= 0; --i) sortLevel(levels[i], "below");
    }
    if (counts) keep(); else best = null;
  }
  if (best) best.forEach((level, i) => level.forEach((cell, at) => { levels[i][at] = cell; cell.order = at; }));
}

function sortLevel(level, towards) {
  if (level.length === 1) return;
  for (const cell of level) {
    const others = cell[towards];
    let sum = 0;
    for (const [other, , otherPort] of others) {
      sum += other.order + (other.w > 8 ? otherPort / other.w : 0);  // where in a wide box
    }
    cell.key = others.length ? sum / others.length : cell.order;
  }
  level.sort((a, b) => a.key - b.key || a.order - b.order);
  level.forEach((cell, i) => { cell.order = i; });
}

// Pairs of edges between neighbouring levels that cross, by counting with a tree of sums.
function crossingsOf(levels) {
  let crossings = 0;
  for (let i = 0; i + 1 < levels.length; ++i) {
    const width = levels[i + 1].length;
    if (levels[i].length === 1 || width === 1) continue;
    const sums = new Int32Array(width + 1);
    let total = 0;
    for (const cell of levels[i]) {
      const ends = cell.below.map(([other]) => other.order).sort((a, b) => a - b);
      for (const end of ends) {
        let before = 0;
        for (let at = end + 1; at > 0; at -= at & -at) before += sums[at];
        crossings += total - before;
      }
      for (const end of ends) {
        for (let at = end + 1; at <= width; at += at & -at) ++sums[at];
        ++total;
      }
    }
  }
  return crossings;
}

// Each cell near the mean of those that it is joined to, as the order and the room that each needs allow.
function placeAcross(levels) {
  for (const level of levels) {
    let x = 0;
    level.forEach((cell, i) => {
      if (i) x += distance(level[i - 1], cell);
      cell.x = x;
    });
    for (const cell of level) cell.x -= x / 2;
  }
  if (levels.length === 1) return;
  // Towards both sides in each pass: passes that look at one side only lead a long chain of forks and joins sideways.
  const cells = levels.reduce((sum, level) => sum + level.length, 0);
  for (let pass = 0; pass < (cells > 20000 ? 12 : 40); ++pass) {
    for (let i = 0; i < levels.length; ++i) placeLevel(levels[pass % 2 ? levels.length - 1 - i : i]);
  }
}

const distance = (left, right) => (left.w + right.w) / 2 + (left.box && right.box ? 26 : 14);

// Least squares under the order: neighbours that would overlap move together as a block.
function placeLevel(level) {
  const blocks = [];
  const offsets = new Float64Array(level.length);
  level.forEach((cell, i) => {
    offsets[i] = i ? offsets[i - 1] + distance(level[i - 1], cell) : 0;
    let sum = 0, weights = 0;
    const add = (others, back) => {
      for (const [other, port, otherPort, own] of others) {
        const weight = others.length === 1 && other[back].length === 1 ? 30 : own;  // chains are straight, too
        sum += weight * (other.x + otherPort - port);
        weights += weight;
      }
    };
    add(cell.above, "below");
    add(cell.below, "above");
    const weight = weights || 0.05;
    let block = {mean: (weights ? sum / weights : cell.x) - offsets[i], weight, end: i};
    while (blocks.length && blocks[blocks.length - 1].mean >= block.mean) {
      const before = blocks.pop();
      const both = before.weight + block.weight;
      block = {mean: (before.mean * before.weight + block.mean * block.weight) / both, weight: both, end: i};
    }
    blocks.push(block);
  });
  let i = 0;
  for (const block of blocks) for (; i <= block.end; ++i) level[i].x = block.mean + offsets[i];
}
