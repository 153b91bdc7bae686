// Draws the four graphs of a run on one canvas. Where many points fall into one column of pixels, only the lowest and the
// highest are drawn, so that drawing does not take longer with more data.

const MARGIN = { left: 66, right: 8 };
const TITLE = 16, AXIS = 22, LANE = 16, BANDS = HAS_STATES ? 16 : 0;

// The places of the graphs, in CSS pixels. Over each there is room for its name and the names of its lines, so that these
// do not lie on the data.
function boxes(width, height) {
  const x = MARGIN.left, w = Math.max(50, width - MARGIN.left - MARGIN.right);
  const rest = height - BANDS - LANE - AXIS - 4 * TITLE - 4;
  const parts = [['sequence', 0.52], ['window', 0.2], ['rtt', 0.14], ['goodput', 0.14]];
  const result = {};
  let y = 0;
  for (const [name, share] of parts) {
    y += TITLE;
    const h = Math.round(rest * share);
    result[name] = { x, y, w, h };
    y += h;
    if (name === 'sequence') {
      result.states = { x, y: y + 4, w, h: BANDS - 4 };
      result.lane = { x, y: y + BANDS + 2, w, h: LANE };
      y += BANDS + LANE;
    }
  }
  result.bottom = y;
  return result;
}

// What shows time, from top to bottom: the graphs without their names.
function stripes({ sequence, states, lane, window, rtt, goodput }) {
  return [sequence, { y: states.y, h: lane.y + lane.h - states.y }, window, rtt, goodput];
}

// Steps of the goodput: a round number of microseconds, some six pixels wide, so that they stay where they are when
// the view moves.
function goodputBin(perPixel) {
  const least = Math.max(6 * perPixel, 100);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((bin) => bin >= least);
}

// The scales that all runs on the page share. A pixel is `perPixel` microseconds.
function extents(shown, view, perPixel) {
  const result = { low: Infinity, high: 0, window: 0, rtt: 0, goodput: 0, bin: goodputBin(perPixel), rates: new Map() };
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

// Round values to put lines at: at most `most` of them, but two if that is possible, since one says nothing of the scale.
function ticks(low, high, most) {
  const least = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(least));
  const sizes = [0.2, 0.5, 1, 2, 5, 10].map((n) => n * power), fits = sizes.findIndex((size) => size >= least * 0.999);
  let step = sizes[fits], values = [];
  for (let i = fits; i >= 0 && values.length < 2; i--) {
    [step, values] = [sizes[i], []];
    for (let n = Math.ceil(low / step); n * step <= high; n++) values.push(n * step);
  }
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

// Draws all of a run; `time` has the places of times, `hidden` what is switched off.
function drawRun(ctx, run, view, time, scales, { width, height, hidden }) {
  const C = colours(), all = boxes(width, height), { X } = time;
  ctx.font = '11px system-ui, sans-serif';
  ctx.fillStyle = C.paper;
  ctx.fillRect(0, 0, width, height);
  if (!hidden.has('idle')) {
    ctx.fillStyle = C.idle;
    ctx.globalAlpha = IDLE_OPACITY;
    for (let i = 0; i < run.idle.from.length; i++) {
      const from = Math.max(X(run.idle.from[i]), all.sequence.x);
      const to = Math.min(X(run.idle.to[i]), all.sequence.x + all.sequence.w);
      for (const { y, h } of to > from ? stripes(all) : []) ctx.fillRect(from, y, to - from, h);
    }
    ctx.globalAlpha = 1;
  }
  timeAxis(ctx, view, time, all, C);

  let Y = frame(ctx, all.sequence, scales.low, scales.high, octets, C);
  clipped(ctx, all.sequence, () => drawSequence(ctx, run, view, X, Y, all.sequence, hidden, C));
  key(ctx, all.sequence, 'sequence number', [], C);
  if (HAS_STATES) drawStates(ctx, run, X, all.states, hidden, C);
  drawDecisions(ctx, run, view, X, all.lane, hidden, C);

  const lines = run.logged ? ['cwnd', 'ssthresh', 'in-flight'] : ['estimated', 'in-flight'];
  Y = frame(ctx, all.window, 0, scales.window, octets, C);
  clipped(ctx, all.window, () => {
    const range = visible(run.windows.at, view), end = Math.min(view.to, run.end);
    for (const name of [...lines].reverse()) {
      ctx.strokeStyle = C[name];
      ctx.lineWidth = name === 'in-flight' ? 1 : 1.5;
      ctx.setLineDash(LOOK[name].sign === 'dashes' ? [5, 3] : []);
      steps(ctx, run.windows.at, run.windows[name], range, X, Y, end);
    }
    ctx.setLineDash([]);
  });
  key(ctx, all.window, 'window', lines, C);

  Y = frame(ctx, all.rtt, 0, scales.rtt, (micros) => si(micros / 1e6, 's'), C);
  clipped(ctx, all.rtt, () => {
    const range = visible(run.rtt.at, view), by = (kind) => (i) => run.rtt.timestamps[i] === kind;
    dots(ctx, run.rtt.at, run.rtt.micros, range, X, Y, C['rtt-karn'], by(0), 1.2, 6);
    dots(ctx, run.rtt.at, run.rtt.micros, range, X, Y, C['rtt-timestamps'], by(1), 3, 3);
  });
  const kinds = [...new Set(run.rtt.timestamps)];
  key(ctx, all.rtt, 'RTT', kinds.sort().reverse().map((kind) => (kind ? 'rtt-timestamps' : 'rtt-karn')), C);

  Y = frame(ctx, all.goodput, 0, scales.goodput, (value) => si(value, 'bit/s'), C);
  clipped(ctx, all.goodput, () => drawGoodput(ctx, scales.rates.get(run.id), scales.bin, X, Y, C));
  key(ctx, all.goodput, `goodput, means of ${si(scales.bin / 1e6, 's')}`, [], C);
  drawBreaks(ctx, time.breaks, stripes(all), C);
}

function timeAxis(ctx, view, { X, perPixel, breaks }, all, C) {
  const { x: left, w, y: top } = all.sequence;
  const { values, step } = ticks(view.from / 1e6, view.to / 1e6, Math.max(2, (view.to - view.from) / ((breaks.length ? 45 : 80) * perPixel)));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  ctx.textBaseline = 'top';
  ctx.fillStyle = C.faint;
  ctx.strokeStyle = C.grid;
  ctx.beginPath();
  let last = -Infinity;
  for (const value of values) {
    const at = value * 1e6;
    if (breaks.some(({ from, to }) => from < at && at < to)) continue;
    const x = Math.round(X(at)) + 0.5;
    ctx.moveTo(x, top); ctx.lineTo(x, all.bottom);
    const label = `${value.toFixed(digits)} s`, half = ctx.measureText(label).width / 2;
    // Within the graph, and with some room to the one before and to breaks.
    const middle = Math.min(x, left + w - half);
    const torn = breaks.some(({ x }) => middle + half > x && middle - half < x + BREAK);
    if (torn || middle - half < last + 12) continue;
    ctx.textAlign = 'center';
    ctx.fillText(label, middle, all.bottom + 5);
    last = middle + half;
  }
  ctx.stroke();
}

// Draws those points that are `chosen`, or, where there are many in a column of pixels, a stroke from the lowest to the
// highest.
function dots(ctx, at, values, [from, to], X, Y, colour, chosen, wide, tall) {
  ctx.fillStyle = colour;
  const few = to - from < 500, w = few ? wide : Math.min(wide, 2), size = few ? tall : 2;
  let column = NaN, low = 0, high = 0;
  const done = () => ctx.fillRect(column - w / 2, high - size / 2, w, low - high + size);
  for (let i = from; i < to; i++) {
    if (!chosen(i)) continue;
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
  values.forEach((value, i) => {
    const x = X((first + i) * bin);
    if (value > 0) ctx.fillRect(x, Y(value), Math.max(1, X((first + i + 1) * bin) - x - 1), Y(0) - Y(value));
  });
  ctx.globalAlpha = 1;
}

// Over a graph: its name, and its lines or marks with theirs.
function key(ctx, box, title, names, C) {
  const y = box.y - TITLE / 2;
  let x = box.x + 1;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.fillStyle = C.text;
  ctx.font = 'bold 11px system-ui, sans-serif';
  ctx.fillText(title, x, y);
  x += ctx.measureText(title).width + 12;
  ctx.font = '11px system-ui, sans-serif';
  for (const name of names) {
    const { sign: shape, words } = LOOK[name], w = ctx.measureText(words).width;
    if (x + 18 + w > box.x + box.w) break;
    ctx.fillStyle = ctx.strokeStyle = C[name];
    ctx.lineWidth = name === 'in-flight' ? 1 : 2;
    if (shape === 'line' || shape === 'dashes') {
      ctx.setLineDash(shape === 'dashes' ? [5, 3] : []);
      ctx.beginPath(); ctx.moveTo(x, y); ctx.lineTo(x + 14, y); ctx.stroke();
      ctx.setLineDash([]);
    } else glyph(ctx, shape, x + 7, y, 4);
    ctx.fillStyle = C.text;
    ctx.fillText(words, x + 18, y);
    x += w + 30;
  }
}
