// Decodes the columns of a run. Times are in microseconds since the first packet of the capture. Byte
// positions are relative to the SYN, which has position 0.

import {
  ARRIVED, FAST, LOST_BETWEEN, LOST_CONGESTION, LOST_RADIO, NEW, PROBE, TAIL, TIMEOUT, UNEXPLAINED, UNKNOWN,
  SPURIOUS_ACKED, SPURIOUS_ARRIVAL, SPURIOUS_DSACK, SPURIOUS_TIMESTAMP,
} from './codes.js';
import { LOOK_OF_LOSS, LOOK_OF_SENDING, decisionLook } from './marks.js';
import { duration } from './words.js';

export const SENDING = {
  [NEW]: 'first transmission',
  [FAST]: 'fast retransmission',
  [TIMEOUT]: 'retransmission after a timeout',
  [TAIL]: 'tail loss probe',
  [PROBE]: 'window probe',
  [UNEXPLAINED]: 'retransmission of unknown cause',
};
export const FATE = {
  [UNKNOWN]: () => '',
  [ARRIVED]: (micros) => `arrived ${duration(micros)} later`,
  [LOST_BETWEEN]: (before) => `lost before capture ${before + 1}`,
  [LOST_CONGESTION]: () => 'lost: congestion',
  [LOST_RADIO]: () => 'lost: radio',
  [SPURIOUS_TIMESTAMP]: () => 'spurious (the ACK echoes an older timestamp)',
  [SPURIOUS_DSACK]: () => 'spurious (the receiver reported a duplicate with D-SACK)',
  [SPURIOUS_ARRIVAL]: () => 'spurious (both copies are in the other capture)',
  [SPURIOUS_ACKED]: () => 'spurious (the data was already acknowledged)',
};

// The states of loss recovery that are drawn. In any other case the state is `open`.
export const STATES = {
  reduced: 'the window was reduced, and no segment is missing',
  recovery: 'fast recovery: lost segments are retransmitted, new ones replace those that arrived',
  restarted: 'restart: everything that the receiver has not reported is retransmitted',
};

// Reverses `column` in html/columns.rs: differences, zigzag encoding, seven bits per byte.
function column(text) {
  const octets = atob(text);
  let count = 0;
  for (let i = 0; i < octets.length; i++) count += octets.charCodeAt(i) < 128 ? 1 : 0;
  const values = new Float64Array(count);
  let at = 0, sum = 0, rest = 0, scale = 1;
  for (let i = 0; i < octets.length; i++) {
    const octet = octets.charCodeAt(i);
    rest += (octet & 127) * scale;
    scale *= 128;
    if (octet < 128) {
      sum += rest % 2 ? -(rest + 1) / 2 : rest / 2;
      values[at++] = sum;
      rest = 0;
      scale = 1;
    }
  }
  return values;
}

export function columns(encoded) {
  return Object.fromEntries(Object.entries(encoded).map(([name, text]) => [name, column(text)]));
}

// Returns the first index whose value is not less than `value`.
export function lowerBound(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

// Returns the range of indexes in view, with one more at either end for lines that cross the edge.
export function visible(at, view) {
  return [Math.max(0, lowerBound(at, view.from) - 1), Math.min(at.length, lowerBound(at, view.to) + 1)];
}

// Decodes a run in the format of html/mod.rs. `id` is the number that the page displays, minus one. A page
// may add `extra` graphs, which are drawn below all other graphs: [{ title, h, draw }], see `drawRun` in
// plots.js. It may also add `mss`: then the graphs count in segments of this size, not in bytes.
export function decodeRun(json, id) {
  const run = { id, name: json.name, facts: json.facts, connection: json.connection, texts: json.texts, states: json.states, measures: json.measures };
  for (const part of ['segments', 'acks', 'sack', 'rtt', 'windows', 'idle', 'decisions', 'episodes']) run[part] = columns(json[part]);
  const { segments, acks, windows, decisions } = run;
  const last = (values) => (values.length ? values[values.length - 1] : 0);
  run.end = Math.max(last(segments.at), last(acks.at), last(windows.at), 1000);
  // The segments that the keys n and p select.
  run.events = [];
  for (let i = 0; i < segments.at.length; i++) {
    if (segments.sending[i] !== NEW || isLost(segments.fate[i])) run.events.push(i);
  }
  const none = (values) => values.map((value) => (value === 0 ? NaN : value - 1));
  windows.cwnd = none(windows.cwnd);
  windows.ssthresh = none(windows.ssthresh);
  windows['in-flight'] = windows.flight;
  run.logged = windows.cwnd.some((value) => !isNaN(value));
  run.edge = acks.ack.map((ack, i) => ack + acks.window[i]);
  run.decided = decisions.at.length > 0;
  run.counts = counts(run);
  return run;
}

// Counts the items of each kind in the legend.
function counts({ segments, acks, sack, idle, states, texts }) {
  const counts = {};
  const one = (look) => { counts[look] = (counts[look] ?? 0) + 1; };
  for (let i = 0; i < segments.at.length; i++) {
    one(LOOK_OF_SENDING[segments.sending[i]]);
    if (isLost(segments.fate[i])) one(LOOK_OF_LOSS[segments.fate[i]]);
    if (isSpurious(segments.fate[i])) one('spurious');
  }
  counts['duplicate-ack'] = acks.duplicate.reduce((sum, one) => sum + one, 0);
  counts.ack = acks.at.length;
  counts.sack = sack.of.length;
  counts.idle = idle.from.length;
  for (const [name] of states) one(name);
  texts.forEach((_, i) => one(decisionLook({ texts }, i)));
  return counts;
}

export function isLost(fate) { return fate === LOST_BETWEEN || fate === LOST_CONGESTION || fate === LOST_RADIO; }
export function isSpurious(fate) { return fate === SPURIOUS_TIMESTAMP || fate === SPURIOUS_DSACK || fate === SPURIOUS_ARRIVAL || fate === SPURIOUS_ACKED; }

// Returns the goodput in steps of `bin` microseconds: the acknowledged bits per second of each step.
export function goodput(run, view, bin) {
  const { at, ack } = run.acks;
  const first = Math.floor(view.from / bin), count = Math.ceil(view.to / bin) - first + 1;
  const sums = new Float64Array(count);
  let i = lowerBound(at, first * bin);
  let high = i > 0 ? ack[i - 1] : 0;
  for (; i < at.length && at[i] < (first + count) * bin; i++) {
    if (ack[i] > high) {
      sums[Math.floor(at[i] / bin) - first] += ack[i] - high;
      high = ack[i];
    }
  }
  return { first, values: sums.map((octets) => (octets * 8e6) / bin) };
}
