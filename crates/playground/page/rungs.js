// Draws the ladder diagram, with the lines of the hosts, the arrows of packets, and their numbers.

import { ticks } from './axes.js';
import { NEW } from './codes.js';
import { LOOK_OF_SENDING, colours, sign } from './marks.js';
import { LOSSES, eachBetween } from './packets.js';
import { segmentAt } from './words.js';

const LEFT = 76, RIGHT = 62, TOP = 22, BOTTOM = 8;
// Pixels between two numbers at the same host.
const LINE = 12;
// Packets that are not sent yet at the time of the cursor are pale.
const PALE = 0.2;

// Returns the positions of the hosts, and the conversion from times to positions.
export function sizes(w, h, { from, to }) {
  const perMicro = (h - TOP - BOTTOM) / (to - from);
  return { left: LEFT, right: w - RIGHT, top: TOP, bottom: h - BOTTOM, Y: (at) => TOP + (at - from) * perMicro };
}

// Returns both ends of a packet's line. A lost packet ends on its way.
export function ends({ sent, ended, ack, depth }, i, { left, right, Y }) {
  const [x0, other] = ack[i] ? [right, left] : [left, right];
  return { x0, y0: Y(sent[i]), x1: x0 + ((other - x0) * depth[i]) / 100, y1: Y(ended[i]) };
}

export function drawLadder(ctx, run, view, { w, h, cursor, focus }) {
  const C = colours(false), frame = sizes(w, h, view), { packets } = run, labels = [];
  ctx.font = '11px system-ui, sans-serif';
  ctx.fillStyle = C.paper;
  ctx.fillRect(0, 0, w, h);
  drawHosts(ctx, run, view, frame, C);
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, frame.top, w, frame.bottom - frame.top);
  ctx.clip();
  // Retransmissions and duplicate ACKs are in front of the other packets.
  const later = [];
  const draw = (i) => drawPacket(ctx, run, i, { frame, cursor, C, focused: isFocus(packets, i, focus), labels });
  eachBetween(packets, view.from, view.to, (i) => { if (isOrdinary(run, i)) draw(i); else later.push(i); });
  later.forEach(draw);
  drawNumbers(ctx, labels, frame, C);
  if (focus) drawMoment(ctx, run, focus, frame, C);
  if (cursor !== null) drawCursor(ctx, cursor, w, frame, C);
  ctx.restore();
}

function isFocus({ ack, of }, i, focus) { return focus !== null && focus.i === of[i] && focus.kind === (ack[i] ? 'ack' : 'segment'); }

function isOrdinary({ packets: { ack, of, outcome }, segments, acks }, i) {
  if (outcome[i] !== 0) return false;
  return of[i] < 0 || (ack[i] ? !acks.duplicate[of[i]] : segments.sending[of[i]] === NEW);
}

// Draws the two hosts with the times, and the states of the sender's loss recovery.
function drawHosts(ctx, run, { from, to }, { left, right, top, bottom, Y }, C) {
  ctx.fillStyle = C.text;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'center';
  ctx.fillText('sender', left, top / 2);
  ctx.fillText('receiver', right, top / 2);
  const { values, step } = ticks(from / 1e6, to / 1e6, (bottom - top) / 60), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  ctx.textAlign = 'left';
  ctx.fillStyle = C.faint;
  ctx.strokeStyle = C.grid;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (const value of values.filter((value) => value >= 0)) {
    const y = Math.round(Y(value * 1e6)) + 0.5;
    ctx.moveTo(0, y); ctx.lineTo(right, y);
    ctx.fillText(`${value.toFixed(digits)} s`, 0, y - 6);
  }
  ctx.stroke();
  run.states.forEach(([name], i) => {
    const [y0, y1] = [Math.max(Y(run.episodes.from[i]), top), Math.min(Y(run.episodes.to[i]), bottom)];
    if (y1 <= y0) return;
    ctx.fillStyle = C[name] ?? C.decision;
    ctx.fillRect(left - 4, y0, 8, y1 - y0);
  });
  ctx.strokeStyle = C.text;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  for (const x of [left, right]) { ctx.moveTo(x, top); ctx.lineTo(x, bottom); }
  ctx.stroke();
}

function drawPacket(ctx, run, i, { frame, cursor, C, focused, labels }) {
  const { packets, segments, acks, mss } = run, { sent, ended, ack, start, outcome, of } = packets;
  const { x0, y0, x1, y1 } = ends(packets, i, frame);
  const look = lookOf(ack[i], of[i], segments, acks), loss = LOSSES[outcome[i]];
  const isPlain = !loss && (look === 'new' || look === 'ack'), colour = C[loss ?? look], width = isPlain ? 1.2 : 2.4;
  // The part of the way that it has passed at the time of the cursor.
  const part = cursor === null || cursor >= ended[i] ? 1 : Math.max(0, (cursor - sent[i]) / (ended[i] - sent[i]));
  const [x, y] = [x0 + part * (x1 - x0), y0 + part * (y1 - y0)];
  const line = (width, to) => { ctx.lineWidth = width; ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(...to); ctx.stroke(); };
  if (focused) {
    ctx.strokeStyle = C.new;
    ctx.globalAlpha = 0.25;
    line(12, [x1, y1]);
  }
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.globalAlpha = part < 1 ? PALE : 1;
  line(width, [x1, y1]);
  ctx.globalAlpha = 1;
  if (part > 0 && part < 1) {
    line(width, [x, y]);
    ctx.beginPath(); ctx.arc(x, y, 4, 0, 2 * Math.PI); ctx.fill();
  } else if (part === 1 && !loss) arrow(ctx, x0, y0, x1, y1);
  else if (part === 1) {
    ctx.lineWidth = 1.8;
    sign(ctx, loss, x1, y1, 6, C);
  }
  const text = ack[i] ? `ACK ${segmentAt(start[i], mss)}` : numberOf(start[i], mss);
  const isSent = cursor === null || cursor >= sent[i], rank = focused ? 2 : isPlain ? 0 : 1;
  labels.push({ text, rank, y: y0, isAck: ack[i] === 1, colour, alpha: isSent ? 1 : 2 * PALE });
}

function lookOf(isAck, of, segments, acks) {
  if (isAck) return of >= 0 && acks.duplicate[of] ? 'duplicate-ack' : 'ack';
  return of < 0 ? 'new' : LOOK_OF_SENDING[segments.sending[of]];
}

function numberOf(start, mss) { return start === 0 ? 'SYN' : String(segmentAt(start, mss)); }

function arrow(ctx, x0, y0, x1, y1) {
  const angle = Math.atan2(y1 - y0, x1 - x0), side = (turn) => [x1 - 8 * Math.cos(angle + turn), y1 - 8 * Math.sin(angle + turn)];
  ctx.beginPath(); ctx.moveTo(x1, y1); ctx.lineTo(...side(0.35)); ctx.lineTo(...side(-0.35)); ctx.fill();
}

// Writes the numbers that have enough space, the most important ones first.
function drawNumbers(ctx, labels, { left, right }, C) {
  const taken = [[], []];
  labels.sort((a, b) => b.rank - a.rank);
  for (const { text, rank, y, isAck, colour, alpha } of labels) {
    const others = taken[isAck ? 1 : 0];
    if (others.some((other) => Math.abs(other - y) < LINE)) continue;
    others.push(y);
    ctx.font = `${rank ? 'bold ' : ''}11px system-ui, sans-serif`;
    ctx.textAlign = isAck ? 'left' : 'right';
    ctx.globalAlpha = alpha;
    ctx.fillStyle = rank ? colour : C.text;
    ctx.fillText(text, isAck ? right + 7 : left - 8, y);
  }
  ctx.globalAlpha = 1;
}

// Marks a decision or a state of the sender that the graphs describe.
function drawMoment(ctx, run, { kind, i }, { left, Y }, C) {
  const at = { decision: run.decisions.at[i], episode: run.episodes.from[i] }[kind];
  if (at === undefined) return;
  ctx.strokeStyle = C.text;
  ctx.lineWidth = 2;
  ctx.beginPath(); ctx.arc(left, Y(at), 8, 0, 2 * Math.PI); ctx.stroke();
}

function drawCursor(ctx, cursor, w, { Y }, C) {
  ctx.strokeStyle = C.faint;
  ctx.lineWidth = 1;
  ctx.setLineDash([4, 3]);
  ctx.beginPath(); ctx.moveTo(0, Y(cursor)); ctx.lineTo(w, Y(cursor)); ctx.stroke();
  ctx.setLineDash([]);
}
