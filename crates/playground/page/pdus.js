// The lowest graph: the PDUs of the radio link in the direction of the data, in the order of their first
// transmission.

import { columns, lowerBound } from './data.js';
import { scale } from './axes.js';

const DIRECTIONS = { down: 0, up: 1 };

// Returns the graph for `run.extra`, or nothing if the path has no recorded radio link. Like the other
// graphs, it starts with the first packet.
export function pduGraph({ pdus, incidents }, direction, origin) {
  const all = columns(pdus), up = DIRECTIONS[direction] ?? 0;
  const chosen = [];
  for (let i = 0; i < all.at.length; i++) if (all.up[i] === up) chosen.push(i);
  if (!chosen.length) return [];
  const pick = (values) => Float64Array.from(chosen, (i) => values[i]);
  const at = pick(all.at).map((micros) => micros - origin), number = pick(all.number), transmission = pick(all.transmission), lost = pick(all.lost);
  const resets = incidents.filter(({ text }) => text.includes('RESET')).map((incident) => incident.at - origin);
  const draw = (ctx, box, view, X, C) => {
    ctx.strokeStyle = C.frame;
    ctx.lineWidth = 1;
    ctx.strokeRect(box.x + 0.5, box.y + 0.5, box.w - 1, box.h - 1);
    const from = lowerBound(at, view.from), to = lowerBound(at, view.to);
    let low = Infinity, high = 0;
    for (let i = from; i < to; i++) if (number[i]) { low = Math.min(low, number[i]); high = Math.max(high, number[i]); }
    if (low > high) return;
    const span = Math.max(high - low, 10), Y = scale(box, low - 0.06 * span, high + 0.06 * span);
    const few = to - from < 4 * box.w, size = few ? 2.5 : 1.5;
    const dots = (colour, wanted, size) => {
      ctx.fillStyle = colour;
      for (let i = from; i < to; i++) if (number[i] && wanted(i)) ctx.fillRect(X(at[i]) - size / 2, Y(number[i]) - size / 2, size, size);
    };
    dots(C.new, (i) => transmission[i] === 1 && !lost[i], size);
    dots(C.fast, (i) => transmission[i] > 1 && !lost[i], size + 1);
    // Lost PDUs are crosses, which are smaller where many PDUs are in view.
    ctx.strokeStyle = ctx.fillStyle = C['lost-radio'];
    ctx.lineWidth = 1;
    const r = few ? 2.5 : 1;
    ctx.beginPath();
    for (let i = from; i < to; i++) {
      if (!number[i] || !lost[i]) continue;
      const x = X(at[i]), y = Y(number[i]);
      ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x - r, y + r); ctx.lineTo(x + r, y - r);
    }
    ctx.stroke();
    // Control PDUs are ticks at the bottom, and a RESET is a line over the full height.
    ctx.fillStyle = C.ack;
    for (let i = from; i < to; i++) if (!number[i]) ctx.fillRect(X(at[i]) - 0.5, box.y + box.h - 5, 1, 5);
    ctx.strokeStyle = C.timeout;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    for (const reset of resets) if (reset >= view.from && reset <= view.to) { ctx.moveTo(X(reset), box.y); ctx.lineTo(X(reset), box.y + box.h); }
    ctx.stroke();
  };
  return [{ title: 'RLC PDUs: retransmitted (larger), damaged (×), control (bottom), RESET (line)', h: 0.24, draw }];
}
