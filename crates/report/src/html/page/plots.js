// Draws the four graphs of a run on one canvas. Where many points fall into one column of pixels, only the lowest and the
// highest are drawn, so that drawing does not take longer with more data.

const MARGIN = { left: 66, right: 8 };
const AXIS = 22, GAP = 10, LANE = 16, BANDS = HAS_STATES ? 16 : 0;

// The places of the graphs, in CSS pixels.
function boxes(width, height) {
  const x = MARGIN.left, w = Math.max(50, width - MARGIN.left - MARGIN.right);
  const rest = height - BANDS - LANE - AXIS - 4 * GAP;
  const parts = [['sequence', 0.52], ['window', 0.2], ['rtt', 0.14], ['goodput', 0.14]];
  const result = {};
  let y = 6;
  for (const [name, share] of parts) {
    const h = Math.round(rest * share);
    result[name] = { x, y, w, h };
    y += h;
    if (name === 'sequence') {
      result.states = { x, y: y + 4, w, h: BANDS - 4 };
      result.lane = { x, y: y + BANDS + 2, w, h: LANE };
      y += BANDS + LANE;
    }
    y += GAP;
  }
  result.bottom = y - GAP;
  return result;
}

// Steps of the goodput: a round number of microseconds, some six pixels wide, so that they stay where they are when
// the view moves.
function goodputBin(view, width) {
  const least = Math.max(((view.to - view.from) * 6) / width, 100);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((bin) => bin >= least);
}

// The scales that all runs on the page share.
function extents(shown, view, width) {
  const result = { low: Infinity, high: 0, window: 0, rtt: 0, goodput: 0, bin: goodputBin(view, width), rates: new Map() };
  for (const run of shown) {
    const { segments, acks, windows, rtt } = run;
    let [from, to] = [lowerBound(segments.at, view.from), lowerBound(segments.at, view.to)];
    for (let i = from; i < to; i++) {
      const end = segments.start[i] + segments.length[i];
      if (segments.start[i] < result.low) result.low = segments.start[i];
      if (end > result.high) result.high = end;
    }
    [from, to] = visible(acks.at, view);
    for (let i = from; i < to; i++) {
      if (acks.at[i] > view.to || (acks.at[i] < view.from && i + 1 < to && acks.at[i + 1] < view.from)) continue;
      if (acks.ack[i] < result.low) result.low = acks.ack[i];
      if (acks.ack[i] > result.high) result.high = acks.ack[i];
    }
    [from, to] = visible(windows.at, view);
    for (let i = from; i < to; i++) {
      result.window = Math.max(result.window, windows.flight[i], run.logged ? windows.cwnd[i] || 0 : windows.estimated[i]);
    }
    [from, to] = [lowerBound(rtt.at, view.from), lowerBound(rtt.at, view.to)];
    for (let i = from; i < to; i++) if (rtt.micros[i] > result.rtt) result.rtt = rtt.micros[i];
    result.rates.set(run.id, goodput(run, view, result.bin));
    for (const value of result.rates.get(run.id).values) if (value > result.goodput) result.goodput = value;
  }
  if (result.low > result.high) [result.low, result.high] = [0, 1];
  const span = Math.max(result.high - result.low, 100);
  result.low = Math.max(0, result.low - 0.03 * span);
  result.high += 0.05 * span;
  for (const name of ['window', 'rtt', 'goodput']) result[name] = result[name] * 1.08 || 1;
  return result;
}

function scale(box, low, high) {
  const perUnit = box.h / (high - low);
  return (value) => box.y + box.h - (value - low) * perUnit;
}

// Round values to put lines at, at most `most` of them.
function ticks(low, high, most) {
  const least = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least * 0.999);
  const values = [];
  for (let n = Math.ceil(low / step); n * step <= high; n++) values.push(n * step);
  return { values, step };
}

// A line of steps: each value holds until the next.
function steps(ctx, at, values, [from, to], X, Y, end) {
  ctx.beginPath();
  let column = NaN, low = 0, high = 0, last = NaN;
  const columnDone = () => {
    if (low < high) { ctx.moveTo(column, low); ctx.lineTo(column, high); }
    ctx.moveTo(column, last);
  };
  for (let i = from; i < to; i++) {
    const y = Y(values[i]);
    if (y === last) continue;
    const x = Math.round(X(at[i])) + 0.5;
    if (x === column) {
      if (y < low) low = y;
      if (y > high) high = y;
      if (isNaN(last)) low = high = y;
    } else {
      if (!isNaN(last)) { columnDone(); ctx.lineTo(x, last); }
      low = isNaN(last) ? y : Math.min(last, y);
      high = isNaN(last) ? y : Math.max(last, y);
      column = x;
    }
    last = y;
  }
  if (!isNaN(last)) { columnDone(); ctx.lineTo(Math.max(column, Math.round(X(end))), last); }
  ctx.stroke();
}

function frame(ctx, box, low, high, unit, C) {
  const Y = scale(box, low, high);
  ctx.strokeStyle = C.grid;
  ctx.fillStyle = C.faint;
  ctx.lineWidth = 1;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.beginPath();
  for (const value of ticks(low, high, Math.max(1, Math.floor(box.h / 26))).values) {
    const y = Math.round(Y(value)) + 0.5;
    ctx.moveTo(box.x, y); ctx.lineTo(box.x + box.w, y);
    ctx.fillText(unit(value), box.x - 5, Math.min(Math.max(y, box.y + 5), box.y + box.h - 4));
  }
  ctx.stroke();
  ctx.strokeStyle = C.frame;
  ctx.strokeRect(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1);
  return Y;
}

function clipped(ctx, box, draw) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, box.y, box.w, box.h);
  ctx.clip();
  draw();
  ctx.restore();
}

const octets = (value) => si(value, 'B');

// Draws all of a run. `hidden` has the layers that are switched off.
function drawRun(ctx, run, view, scales, { width, height, hidden }) {
  const C = colours(), all = boxes(width, height);
  const perPixel = (view.to - view.from) / all.sequence.w;
  const X = (at) => all.sequence.x + (at - view.from) / perPixel;
  ctx.font = '11px system-ui, sans-serif';
  ctx.fillStyle = C.paper;
  ctx.fillRect(0, 0, width, height);
  if (!hidden.has('idle')) {
    ctx.fillStyle = C.idle;
    for (let i = 0; i < run.idle.from.length; i++) {
      const from = Math.max(X(run.idle.from[i]), all.sequence.x);
      const to = Math.min(X(run.idle.to[i]), all.sequence.x + all.sequence.w);
      if (to > from) ctx.fillRect(from, all.sequence.y, to - from, all.bottom - all.sequence.y);
    }
  }
  timeAxis(ctx, view, X, all, C);

  let Y = frame(ctx, all.sequence, scales.low, scales.high, octets, C);
  clipped(ctx, all.sequence, () => drawSequence(ctx, run, view, X, Y, all.sequence, hidden, C));
  key(ctx, all.sequence, [[null, 'sequence']], C);
  if (HAS_STATES) drawStates(ctx, run, X, all.states, hidden, C);
  if (!hidden.has('decision')) drawDecisions(ctx, run, view, X, all.lane, C);

  const names = run.logged ? [['cwnd', 'cwnd'], ['ssthresh', 'ssthresh'], ['flight', 'in flight']] : [['estimated', 'window, guessed'], ['flight', 'in flight']];
  Y = frame(ctx, all.window, 0, scales.window, octets, C);
  clipped(ctx, all.window, () => {
    const range = visible(run.windows.at, view), end = Math.min(view.to, run.end);
    for (const [name] of [...names].reverse()) {
      ctx.strokeStyle = C[name];
      ctx.lineWidth = name === 'flight' ? 1 : 1.5;
      ctx.setLineDash(name === 'ssthresh' ? [5, 3] : []);
      steps(ctx, run.windows.at, run.windows[name], range, X, Y, end);
    }
    ctx.setLineDash([]);
  });
  key(ctx, all.window, names, C);

  Y = frame(ctx, all.rtt, 0, scales.rtt, (micros) => si(micros / 1e6, 's'), C);
  clipped(ctx, all.rtt, () => dots(ctx, run.rtt.at, run.rtt.micros, visible(run.rtt.at, view), X, Y, C.rtt));
  key(ctx, all.rtt, [[null, 'RTT']], C);

  Y = frame(ctx, all.goodput, 0, scales.goodput, (value) => si(value, 'bit/s'), C);
  clipped(ctx, all.goodput, () => drawGoodput(ctx, scales.rates.get(run.id), scales.bin, X, Y, C));
  key(ctx, all.goodput, [[null, `goodput over ${si(scales.bin / 1e6, 's')}`]], C);
}

function timeAxis(ctx, view, X, all, C) {
  const { values, step } = ticks(view.from / 1e6, view.to / 1e6, Math.max(2, Math.floor(all.sequence.w / 80)));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  ctx.textBaseline = 'top';
  ctx.fillStyle = C.faint;
  ctx.strokeStyle = C.grid;
  ctx.beginPath();
  for (const value of values) {
    const x = Math.round(X(value * 1e6)) + 0.5;
    ctx.moveTo(x, all.sequence.y); ctx.lineTo(x, all.bottom);
    ctx.textAlign = x > all.sequence.x + all.sequence.w - 20 ? 'right' : 'center';
    ctx.fillText(`${value.toFixed(digits)} s`, x, all.bottom + 5);
  }
  ctx.stroke();
}

function drawSequence(ctx, run, view, X, Y, box, hidden, C) {
  const { segments, acks } = run, end = Math.min(view.to, run.end);
  const acked = visible(acks.at, view);
  ctx.lineWidth = 1;
  if (!hidden.has('edge')) {
    ctx.strokeStyle = C.edge;
    ctx.setLineDash([4, 3]);
    steps(ctx, acks.at, run.edge, acked, X, Y, end);
    ctx.setLineDash([]);
  }
  if (!hidden.has('sack')) drawSack(ctx, run, view, X, Y, C);
  if (!hidden.has('ack')) {
    ctx.strokeStyle = C.ack;
    ctx.lineWidth = 1.3;
    steps(ctx, acks.at, acks.ack, acked, X, Y, end);
  }
  const [from, to] = [lowerBound(segments.at, view.from), lowerBound(segments.at, view.to)];
  if (!hidden.has('new')) drawSegments(ctx, run, from, to, X, Y, box, C);
  // Where marks crowd they are small, and there is one of a kind in each square of some pixels.
  const { start, length, sending, fate, at } = segments;
  const first = lowerBound(run.events, from), last = lowerBound(run.events, to);
  const crowded = last - first > box.w / 3, size = crowded ? 2.5 : 4.5, square = crowded ? 5 : 1;
  const taken = new Set();
  const once = (kind, x, y) => {
    const place = (kind * 8192 + Math.round(x / square)) * 8192 + Math.round(y / square);
    return taken.size < taken.add(place).size;
  };
  for (let e = first; e < last; e++) {
    const i = run.events[e];
    const x = X(at[i]), y = Y(start[i] + length[i] / 2), layer = LAYER_OF_SENDING[sending[i]];
    if (sending[i] !== NEW && !hidden.has(layer) && once(sending[i], x, y)) {
      ctx.fillStyle = ctx.strokeStyle = C[layer];
      ctx.lineWidth = 1.5;
      const top = Y(start[i] + length[i]), bottom = Y(start[i]);
      if (bottom - top > 8) { ctx.beginPath(); ctx.moveTo(x, top); ctx.lineTo(x, bottom); ctx.stroke(); }
      glyph(ctx, LAYERS.find(([name]) => name === layer)[1], x, y, size);
    }
    if (isUnneeded(fate[i]) && !hidden.has('unneeded') && once(5, x, y)) {
      ctx.strokeStyle = C.unneeded;
      ctx.lineWidth = 1.3;
      glyph(ctx, 'ring', x, y, size + 0.5);
    }
    if (isLost(fate[i]) && !hidden.has('lost') && once(6, x, y)) {
      ctx.strokeStyle = C.lost;
      ctx.lineWidth = crowded ? 1 : 1.5;
      glyph(ctx, crowded ? 'cross' : lossShape(fate[i]), x, y, size - 0.5);
    }
  }
}

// New segments are bars while they can be told apart, else one stroke for each column of pixels.
function drawSegments(ctx, run, from, to, X, Y, box, C) {
  const { start, length, sending, at } = run.segments;
  ctx.strokeStyle = C.new;
  ctx.lineWidth = 1.2;
  ctx.beginPath();
  let column = NaN, low = 0, high = 0;
  const bars = to - from < 2 * box.w;
  const done = () => { ctx.moveTo(column, Math.max(low, high + 1)); ctx.lineTo(column, high); };
  for (let i = from; i < to; i++) {
    if (sending[i] !== NEW) continue;
    const bottom = Y(start[i]), top = Y(start[i] + length[i]);
    const x = bars ? X(at[i]) : Math.round(X(at[i])) + 0.5;
    if (bars) {
      ctx.moveTo(x, Math.max(bottom, top + 1)); ctx.lineTo(x, top);
      if (bottom - top > 6) { ctx.moveTo(x - 2, bottom); ctx.lineTo(x + 2, bottom); ctx.moveTo(x - 2, top); ctx.lineTo(x + 2, top); }
    } else if (x === column) {
      if (bottom > low) low = bottom;
      if (top < high) high = top;
    } else {
      if (!isNaN(column)) done();
      [column, low, high] = [x, bottom, top];
    }
  }
  if (!isNaN(column)) done();
  ctx.stroke();
}

// The blocks of the last ACK in each column of pixels.
function drawSack(ctx, run, view, X, Y, C) {
  const { of, left, right } = run.sack, { at } = run.acks;
  const [from, to] = visible(at, view);
  ctx.strokeStyle = C.sack;
  ctx.lineWidth = 1;
  ctx.beginPath();
  let column = NaN, ack = -1;
  for (let i = lowerBound(of, to) - 1; i >= 0 && of[i] >= from; i--) {
    const x = Math.round(X(at[of[i]])) + 0.5;
    if (x === column && of[i] !== ack) continue;
    [column, ack] = [x, of[i]];
    ctx.moveTo(x, Y(left[i])); ctx.lineTo(x, Y(right[i]));
  }
  ctx.stroke();
}

// The name of a state stands in its band where there is room.
function drawStates(ctx, run, X, box, hidden, C) {
  const { from, to } = run.episodes, right = box.x + box.w, middle = box.y + box.h / 2 + 0.5;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'right';
  ctx.fillStyle = C.faint;
  ctx.fillText('state', box.x - 5, middle);
  ctx.textAlign = 'center';
  for (let i = 0, drawn = -Infinity; i < from.length; i++) {
    const [name] = run.states[i], start = Math.max(X(from[i]), box.x);
    // Even the shortest is seen, but of many in one column only the first.
    const end = Math.min(Math.max(X(to[i]), start + 2), right);
    if (end <= Math.max(box.x, drawn) || start >= right || hidden.has(name)) continue;
    drawn = end;
    ctx.fillStyle = ctx.strokeStyle = C[name] ?? C.decision;
    band(ctx, LAYERS.find(([layer]) => layer === name)?.[1] ?? 'full', start, box.y, end - start - (end - start > 4 ? 1 : 0), box.h);
    const width = ctx.measureText(name).width;
    if (end - start > width + 12) {
      ctx.fillStyle = C.paper;
      ctx.fillRect((start + end - width) / 2 - 3, box.y + 1, width + 6, box.h - 2);
      ctx.fillStyle = C.text;
      ctx.fillText(name, (start + end) / 2, middle);
    }
  }
}

function drawDecisions(ctx, run, view, X, lane, C) {
  const { at } = run.decisions, y = lane.y + lane.h / 2;
  ctx.strokeStyle = C.grid;
  ctx.lineWidth = 1;
  ctx.beginPath(); ctx.moveTo(lane.x, y); ctx.lineTo(lane.x + lane.w, y); ctx.stroke();
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.fillStyle = C.faint;
  ctx.fillText(run.decided ? 'decisions' : 'no log', lane.x - 5, y);
  // Where several fall together, the one that says most is drawn.
  let last = null;
  const draw = () => {
    if (!last) return;
    ctx.fillStyle = ctx.strokeStyle = C[last.colour];
    ctx.lineWidth = 1.4;
    glyph(ctx, last.shape, last.x, y, 4.5);
  };
  for (let i = lowerBound(at, view.from); i < at.length && at[i] <= view.to; i++) {
    const [shape, colour] = decisionMark(run, i), x = X(at[i]), rank = DECISION_RANK.indexOf(shape);
    if (last && x - last.x < 5 && rank <= last.rank) continue;
    if (!last || x - last.x >= 5) draw();
    last = { shape, colour, x, rank };
  }
  draw();
}

// Draws points, or, where there are many in a column of pixels, a stroke from the lowest to the highest.
function dots(ctx, at, values, [from, to], X, Y, colour) {
  ctx.fillStyle = colour;
  const size = to - from < 500 ? 3 : 2;
  let column = NaN, low = 0, high = 0;
  const done = () => ctx.fillRect(column - size / 2, high - size / 2, size, low - high + size);
  for (let i = from; i < to; i++) {
    const x = Math.round(X(at[i])), y = Y(values[i]);
    if (x === column && y >= high - size && y <= low + size) {
      if (y > low) low = y;
      if (y < high) high = y;
    } else {
      if (!isNaN(column)) done();
      [column, low, high] = [x, y, y];
    }
  }
  if (!isNaN(column)) done();
}

function drawGoodput(ctx, { first, values }, bin, X, Y, C) {
  ctx.fillStyle = C.goodput;
  ctx.globalAlpha = 0.75;
  const w = Math.max(1, X(bin) - X(0) - 1);
  values.forEach((value, i) => {
    if (value > 0) ctx.fillRect(X((first + i) * bin), Y(value), w, Y(0) - Y(value));
  });
  ctx.globalAlpha = 1;
}

// The names of a graph's lines in their colours, or the graph's own name.
function key(ctx, box, names, C) {
  let x = box.x + 6;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'top';
  for (const [name, label] of names) {
    const sample = name === null ? 0 : 18, w = ctx.measureText(label).width;
    ctx.fillStyle = C.paper;
    ctx.globalAlpha = 0.8;
    ctx.fillRect(x - 3, box.y + 2, sample + w + 6, 16);
    ctx.globalAlpha = 1;
    if (name !== null) {
      ctx.strokeStyle = C[name];
      ctx.lineWidth = 2;
      ctx.setLineDash(name === 'ssthresh' ? [5, 3] : []);
      ctx.beginPath(); ctx.moveTo(x, box.y + 10); ctx.lineTo(x + 14, box.y + 10); ctx.stroke();
      ctx.setLineDash([]);
    }
    ctx.fillStyle = C.text;
    ctx.fillText(label, x + sample, box.y + 5);
    x += sample + w + 12;
  }
}
