// Draws the four graphs of a run on one canvas. Of many points in one pixel column, only the lowest and the
// highest are drawn, so that the drawing time does not grow with the amount of data.

import { clipped, dots, frame, key, steps, stripes, timeAxis } from './axes.js';
import { goodput, lowerBound, visible } from './data.js';
import { IDLE_OPACITY, LOOK } from './marks.js';
import { drawDecisions, drawSequence, drawStates } from './sequence.js';
import { drawBreaks } from './time.js';
import { octets, si } from './words.js';

// Returns the width of the goodput's steps: a round number of microseconds, about six pixels wide. Round
// steps keep their position when the view moves.
function goodputBin(perPixel) {
  const least = Math.max(6 * perPixel, 100);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((bin) => bin >= least);
}

// Returns the scales that all runs on the page share. One pixel is `perPixel` microseconds.
export function extents(shown, view, perPixel) {
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
    result.rates.set(run, goodput(run, view, result.bin));
    for (const value of result.rates.get(run).values) if (value > result.goodput) result.goodput = value;
  }
  if (result.low > result.high) [result.low, result.high] = [0, 1];
  const span = Math.max(result.high - result.low, 100);
  result.low = Math.max(0, result.low - 0.03 * span);
  result.high += 0.05 * span;
  for (const name of ['window', 'rtt', 'goodput']) result[name] = result[name] * 1.08 || 1;
  return result;
}

// Draws a run. `time` converts times to positions, `all` has the boxes of the graphs, and `hidden` has the
// names of hidden items. An `extra` graph draws itself: draw(ctx, box, view, X, C) gets its box, the
// conversion from times to positions, and the colours. Its height `h` is a share, relative to the other
// graphs' 0.52, 0.2, 0.14 and 0.14. axes.js has building blocks for such graphs (frame, clipped, steps,
// dots).
export function drawRun(ctx, run, view, time, scales, { width, height, all, hidden, C }) {
  const { X } = time;
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

  const { mss } = run, number = (value) => String(Number(value.toPrecision(6))), unit = mss ? number : octets;
  // The label of a segment is at its middle.
  const counted = mss ? { per: mss, zero: 1 - mss / 2, closest: 1 } : {};
  let Y = frame(ctx, all.sequence, scales.low, scales.high, unit, C, counted);
  clipped(ctx, all.sequence, () => drawSequence(ctx, run, view, X, Y, all.sequence, hidden, C));
  key(ctx, all.sequence, mss ? 'segment' : 'sequence number', [], C);
  if (all.states) drawStates(ctx, run, X, all.states, hidden, C);
  drawDecisions(ctx, run, view, X, all.lane, hidden, C);

  const lines = run.logged ? ['cwnd', 'ssthresh', 'in-flight'] : ['estimated', 'in-flight'];
  Y = frame(ctx, all.window, 0, scales.window, unit, C, mss ? { per: mss } : {});
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
  const isKnown = run.windows.at.length > 0;
  key(ctx, all.window, `window${mss ? ', segments' : ''}${isKnown ? '' : ': not visible at this capture point'}`, isKnown ? lines : [], C);

  Y = frame(ctx, all.rtt, 0, scales.rtt, (micros) => si(micros / 1e6, 's'), C);
  clipped(ctx, all.rtt, () => {
    const range = visible(run.rtt.at, view), by = (kind) => (i) => run.rtt.timestamps[i] === kind;
    dots(ctx, run.rtt.at, run.rtt.micros, range, X, Y, C['rtt-karn'], by(0), 1.2, 6);
    dots(ctx, run.rtt.at, run.rtt.micros, range, X, Y, C['rtt-timestamps'], by(1), 3, 3);
  });
  const kinds = [...new Set(run.rtt.timestamps)];
  key(ctx, all.rtt, run.measures, kinds.sort().reverse().map((kind) => (kind ? 'rtt-timestamps' : 'rtt-karn')), C);

  Y = frame(ctx, all.goodput, 0, scales.goodput, (value) => si(value, 'bit/s'), C);
  clipped(ctx, all.goodput, () => drawGoodput(ctx, scales.rates.get(run), scales.bin, X, Y, C));
  key(ctx, all.goodput, `goodput, averaged over ${si(scales.bin / 1e6, 's')}`, [], C);
  (run.extra ?? []).forEach(({ title, draw }, i) => {
    const box = all.extra[i];
    ctx.save();
    draw(ctx, box, view, X, C);
    ctx.restore();
    key(ctx, box, title, [], C);
  });
  drawBreaks(ctx, time.breaks, stripes(all), C);
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
