// The upper graph: segments, their outcomes, and ACKs. Below it are the states of loss recovery and the
// decisions.

import { steps } from './axes.js';
import { NEW } from './codes.js';
import { isSpurious, lowerBound, visible } from './data.js';
import { DECISION_RANK, LOOK, LOOK_OF_LOSS, LOOK_OF_SENDING, band, decisionLook, sign } from './marks.js';

export function drawSequence(ctx, run, view, X, Y, box, hidden, C) {
  const { segments, acks } = run, end = Math.min(view.to, run.end);
  const acked = visible(acks.at, view);
  ctx.lineWidth = 1;
  if (!hidden.has('window')) {
    ctx.strokeStyle = C.window;
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
  // Where marks are dense they are small, and each square of a few pixels shows one mark of a kind.
  const { start, length, sending, fate, at } = segments;
  const first = lowerBound(run.events, from), last = lowerBound(run.events, to);
  const crowded = last - first > box.w / 3, size = crowded ? 2.5 : 4.5, square = crowded ? 5 : 1;
  const taken = new Map();
  const once = (name, x, y) => {
    const places = taken.get(name) ?? taken.set(name, new Set()).get(name);
    return places.size < places.add(Math.round(x / square) * 8192 + Math.round(y / square)).size;
  };
  if (!hidden.has('duplicate-ack')) {
    ctx.strokeStyle = C['duplicate-ack'];
    ctx.lineWidth = 1.3;
    ctx.beginPath();
    for (let i = acked[0]; i < acked[1]; i++) {
      if (!acks.duplicate[i] || !once('duplicate-ack', X(acks.at[i]), 0)) continue;
      const y = Y(acks.ack[i]);
      ctx.moveTo(X(acks.at[i]), y); ctx.lineTo(X(acks.at[i]), y + 4);
    }
    ctx.stroke();
  }
  for (let e = first; e < last; e++) {
    const i = run.events[e];
    const x = X(at[i]), y = Y(start[i] + length[i] / 2), look = LOOK_OF_SENDING[sending[i]];
    if (sending[i] !== NEW && !hidden.has(look) && once(look, x, y)) {
      ctx.lineWidth = 1.5;
      ctx.strokeStyle = C[look];
      const top = Y(start[i] + length[i]), bottom = Y(start[i]);
      if (bottom - top > 8) { ctx.beginPath(); ctx.moveTo(x, top); ctx.lineTo(x, bottom); ctx.stroke(); }
      sign(ctx, look, x, y, size, C);
    }
    if (isSpurious(fate[i]) && !hidden.has('spurious') && once('spurious', x, y)) {
      ctx.lineWidth = 1.3;
      sign(ctx, 'spurious', x, y, size + 0.5, C);
    }
    const loss = LOOK_OF_LOSS[fate[i]];
    if (loss && !hidden.has(loss) && once(loss, x, y)) {
      ctx.lineWidth = crowded ? 1 : 1.5;
      sign(ctx, loss, x, y, size - 0.5, C);
    }
  }
}

// New segments are bars. If there are too many, one stroke per pixel column replaces them.
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

// Draws the blocks of the last ACK in each pixel column.
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

// Draws the bands of the states. A band contains the state's name if there is enough space.
export function drawStates(ctx, run, X, box, hidden, C) {
  const { from, to } = run.episodes, right = box.x + box.w, middle = box.y + box.h / 2 + 0.5;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'right';
  ctx.fillStyle = C.faint;
  ctx.fillText('state', box.x - 5, middle);
  ctx.textAlign = 'center';
  for (let i = 0, drawn = -Infinity; i < from.length; i++) {
    const [name] = run.states[i], start = Math.max(X(from[i]), box.x);
    // Even the shortest state is visible. Of many states in one pixel column, only the first is drawn.
    const end = Math.min(Math.max(X(to[i]), start + 2), right);
    if (end <= Math.max(box.x, drawn) || start >= right || hidden.has(name)) continue;
    drawn = end;
    ctx.fillStyle = ctx.strokeStyle = C[name] ?? C.decision;
    band(ctx, LOOK[name]?.sign ?? 'full', start, box.y, end - start - (end - start > 4 ? 1 : 0), box.h);
    const width = ctx.measureText(name).width;
    if (end - start > width + 12) {
      ctx.fillStyle = C.paper;
      ctx.fillRect((start + end - width) / 2 - 3, box.y + 1, width + 6, box.h - 2);
      ctx.fillStyle = C.text;
      ctx.fillText(name, (start + end) / 2, middle);
    }
  }
}

export function drawDecisions(ctx, run, view, X, lane, hidden, C) {
  const { at } = run.decisions, y = lane.y + lane.h / 2;
  ctx.strokeStyle = C.grid;
  ctx.lineWidth = 1;
  ctx.beginPath(); ctx.moveTo(lane.x, y); ctx.lineTo(lane.x + lane.w, y); ctx.stroke();
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.fillStyle = C.faint;
  ctx.fillText(run.decided ? 'decisions' : 'no log', lane.x - 5, y);
  // Of several decisions at one place, the one with the highest rank is drawn, in the frame of a timer if one
  // fired.
  let last = null;
  const draw = () => {
    ctx.lineWidth = 1.4;
    if (last) sign(ctx, last.look, last.x, y, 4.5, C);
  };
  for (let i = lowerBound(at, view.from); i < at.length && at[i] <= view.to; i++) {
    const look = decisionLook(run, i), x = X(at[i]), rank = DECISION_RANK.indexOf(look);
    if (hidden.has(look)) continue;
    if (look === 'timer-fired') {
      ctx.lineWidth = 1.4;
      sign(ctx, look, x, y, 4.5, C);
      continue;
    }
    if (last && x - last.x < 5 && rank <= last.rank) continue;
    if (!last || x - last.x >= 5) draw();
    last = { look, x, rank };
  }
  draw();
}
