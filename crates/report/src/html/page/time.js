// Converts times to horizontal positions. On request, the silences of a run are folded: each takes a few
// pixels, regardless of its length. The graphs show a break with its length there.

import { lowerBound } from './data.js';
import { duration } from './words.js';

export const BREAK = 14; // pixels
// Pixels of a silence that remain at either side of its break, so that the marks at its ends are not cut.
const MARGIN = 7;

// Periods without packets in either direction: before a timeout, or much longer than a round trip.
function silences(run) {
  if (run.silences) return run.silences;
  const { segments, acks, idle, rtt } = run;
  const sorted = Float64Array.from(rtt.micros).sort();
  const median = sorted.length ? sorted[sorted.length >> 1] : 0;
  const least = Math.max(2 * median, run.end / 100, 1000);
  const ended = new Set(idle.to);
  run.silences = [];
  let last = -1;
  for (let s = 0, a = 0; s < segments.at.length || a < acks.at.length;) {
    const at = a >= acks.at.length || segments.at[s] <= acks.at[a] ? segments.at[s++] : acks.at[a++];
    if (last >= 0 && at > last && (at - last > least || ended.has(at))) run.silences.push({ from: last, to: at });
    last = at;
  }
  return run.silences;
}

// Returns the silences in view that are long enough for a break, and the microseconds per pixel outside these
// breaks.
function folds(run, view, width) {
  const span = view.to - view.from;
  let cuts = silences(run).filter(({ from, to }) => to > view.from && from < view.to)
    .map(({ from, to }) => ({ from: Math.max(from, view.from), to: Math.min(to, view.to), length: to - from }));
  // At least 40 % of the width remains for the rest of the run.
  const room = BREAK + 2 * MARGIN, most = Math.floor((0.6 * width) / room);
  if (cuts.length > most) {
    cuts = [...cuts].sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, most).sort((a, b) => a.from - b.from);
  }
  for (;;) {
    const rest = cuts.reduce((rest, { from, to }) => rest - (to - from), span);
    const perPixel = rest / (width - room * cuts.length);
    // The view contains only silence.
    if (cuts.length && perPixel < span / width / 1000) return { cuts: [], perPixel: span / width };
    const worth = cuts.filter(({ from, to }) => to - from > room * perPixel);
    if (worth.length === cuts.length) {
      const margin = MARGIN * perPixel;
      return { cuts: cuts.map(({ from, to, length }) => ({ from: from + margin, to: to - margin, silent: to - from, length })), perPixel };
    }
    cuts = worth;
  }
}

// Returns the conversions from times to positions in a box and back.
export function timeline(run, view, { x: left, w }, folded) {
  const { cuts, perPixel } = folded ? folds(run, view, w) : { cuts: [], perPixel: (view.to - view.from) / w };
  if (!cuts.length) {
    return { breaks: [], perPixel, X: (at) => left + (at - view.from) / perPixel, at: (x) => view.from + (x - left) * perPixel };
  }
  // The starts of the pieces: parts drawn to scale alternate with breaks.
  const times = [view.from], places = [left], breaks = [];
  for (const { from, to, silent, length } of cuts) {
    const x = places[places.length - 1] + (from - times[times.length - 1]) / perPixel;
    breaks.push({ from, to, silent, length, x });
    times.push(from, to);
    places.push(x, x + BREAK);
  }
  const piece = (starts, value) => { const i = lowerBound(starts, value); return starts[i] === value ? i : Math.max(0, i - 1); };
  const step = (i) => (i % 2 === 1 ? (times[i + 1] - times[i]) / BREAK : perPixel);
  return {
    breaks,
    perPixel,
    X: (time) => { const i = piece(times, time); return places[i] + (time - times[i]) / step(i); },
    at: (x) => { const i = piece(places, x); return times[i] + (x - places[i]) * step(i); },
  };
}

// Draws each break as two jagged edges through each graph. The highest graph also shows the length of the
// silence.
export function drawBreaks(ctx, breaks, graphs, C) {
  const edge = (x, top, ys) => ys.forEach((y) => ctx.lineTo(x + (Math.round((y - top) / 5) % 2 ? 1.5 : -1.5), y));
  for (const { x, length } of breaks) {
    const middle = x + BREAK / 2;
    for (const { y: top, h } of graphs) {
      const bottom = top + h, ys = [];
      for (let y = top; y < bottom; y += 5) ys.push(y);
      ys.push(bottom);
      const [left, right] = [x + 1.5, x + BREAK - 1.5];
      ctx.fillStyle = C.paper;
      ctx.beginPath(); edge(left, top, ys); edge(right, top, [...ys].reverse()); ctx.fill();
      ctx.strokeStyle = C.frame;
      ctx.lineWidth = 1;
      ctx.beginPath(); edge(left, top, ys); ctx.stroke();
      ctx.beginPath(); edge(right, top, ys); ctx.stroke();
    }
    ctx.save();
    ctx.translate(middle, graphs[0].y + 4);
    ctx.rotate(-Math.PI / 2);
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    ctx.fillStyle = C.text;
    ctx.fillText(`${duration(length)} of silence`, 0, 0.5);
    ctx.restore();
    // On the axis, two strokes mark a break, as in hand-drawn graphs.
    const { y, h } = graphs[graphs.length - 1], bottom = y + h;
    ctx.strokeStyle = C.text;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    for (const dx of [-3.5, 0.5]) { ctx.moveTo(middle + dx, bottom + 5); ctx.lineTo(middle + dx + 3, bottom - 5); }
    ctx.stroke();
  }
}
