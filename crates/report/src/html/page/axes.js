// The parts that all graphs share: position, scales, frame and title; and lines and points whose drawing time
// does not grow with the amount of data.

import { LOOK, glyph } from './marks.js';
import { BREAK } from './time.js';

const MARGIN = { left: 66, right: 8 };
const TITLE = 16, AXIS = 22, LANE = 16, BANDS = 16;

// The graphs for which the displayed runs need space. All runs get the same layout, so that their graphs can
// be compared.
export function layout(runs, roomForStates) {
  const extra = [];
  for (const run of runs) (run.extra ?? []).forEach(({ h }, i) => { extra[i] = Math.max(extra[i] ?? 0, h); });
  return { states: roomForStates || runs.some((run) => run.states.length > 0), extra };
}

// The positions of the graphs in CSS pixels. The space above each graph holds its title and the names of its
// lines, so that these do not cover data.
export function boxes(width, height, { states, extra }) {
  const x = MARGIN.left, w = Math.max(50, width - MARGIN.left - MARGIN.right);
  const bands = states ? BANDS : 0;
  const parts = [['sequence', 0.52], ['window', 0.2], ['rtt', 0.14], ['goodput', 0.14], ...extra.map((share) => ['extra', share])];
  const rest = height - bands - LANE - AXIS - parts.length * TITLE - 4;
  const whole = extra.reduce((sum, share) => sum + share, 1);
  const result = { states: null, extra: [] };
  let y = 0;
  for (const [name, share] of parts) {
    y += TITLE;
    const h = Math.round((rest * share) / whole), box = { x, y, w, h };
    if (name === 'extra') result.extra.push(box); else result[name] = box;
    y += h;
    if (name === 'sequence') {
      if (states) result.states = { x, y: y + 4, w, h: bands - 4 };
      result.lane = { x, y: y + bands + 2, w, h: LANE };
      y += bands + LANE;
    }
  }
  result.bottom = y;
  return result;
}

// The areas with a time axis, from top to bottom: the graphs without their titles.
export function stripes({ sequence, lane, window, rtt, goodput, extra }) {
  const under = sequence.y + sequence.h + 4;
  return [sequence, { y: under, h: lane.y + lane.h - under }, window, rtt, goodput, ...extra];
}

export function scale(box, low, high) {
  const perUnit = box.h / (high - low);
  return (value) => box.y + box.h - (value - low) * perUnit;
}

// Round values for grid lines: at most `most`, but at least two if possible, because a single one does not
// show the scale. They are at least `closest` apart.
export function ticks(low, high, most, closest = 0) {
  const least = Math.max((high - low) / Math.max(1, most), closest);
  const power = 10 ** Math.floor(Math.log10(least));
  const sizes = [0.2, 0.5, 1, 2, 5, 10].map((n) => n * power), fits = sizes.findIndex((size) => size >= least * 0.999);
  let step = sizes[fits], values = [];
  for (let i = fits; i >= 0 && values.length < 2 && sizes[i] >= 0.999 * closest; i--) {
    [step, values] = [sizes[i], []];
    for (let n = Math.ceil(low / step); n * step <= high; n++) values.push(n * step);
  }
  return { values, step };
}

// Draws a step function: each value holds until the next one.
export function steps(ctx, at, values, [from, to], X, Y, end) {
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

// Draws the frame and grid of a graph, and returns the conversion from values to positions. `unit` formats
// the labels, which count in steps of `per` from `zero`, at least `closest` apart.
export function frame(ctx, box, low, high, unit, C, { per = 1, zero = 0, closest = 0 } = {}) {
  const Y = scale(box, low, high);
  ctx.strokeStyle = C.grid;
  ctx.fillStyle = C.faint;
  ctx.lineWidth = 1;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.beginPath();
  for (const value of ticks((low - zero) / per, (high - zero) / per, Math.max(1, Math.floor(box.h / 26)), closest).values) {
    const y = Math.round(Y(zero + value * per)) + 0.5;
    ctx.moveTo(box.x, y); ctx.lineTo(box.x + box.w, y);
    ctx.fillText(unit(value), box.x - 5, Math.min(Math.max(y, box.y + 5), box.y + box.h - 4));
  }
  ctx.stroke();
  ctx.strokeStyle = C.frame;
  ctx.strokeRect(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1);
  return Y;
}

export function clipped(ctx, box, draw) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, box.y, box.w, box.h);
  ctx.clip();
  draw();
  ctx.restore();
}

export function timeAxis(ctx, view, { X, perPixel, breaks }, all, C) {
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
    // Keep labels inside the graph, and away from the previous label and from breaks.
    const middle = Math.min(x, left + w - half);
    const torn = breaks.some(({ x }) => middle + half > x && middle - half < x + BREAK);
    if (torn || middle - half < last + 12) continue;
    ctx.textAlign = 'center';
    ctx.fillText(label, middle, all.bottom + 5);
    last = middle + half;
  }
  ctx.stroke();
}

// Draws the points that `chosen` selects. Many points in one pixel column become a bar from the lowest to the
// highest.
export function dots(ctx, at, values, [from, to], X, Y, colour, chosen, wide, tall) {
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

// Writes the title above a graph, followed by the names of its lines or marks.
export function key(ctx, box, title, names, C) {
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
