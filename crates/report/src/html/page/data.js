// Decodes the columns of a run. Times are microseconds since the first packet of the capture; octets count from the
// SYN, which is 0.

import {
  ARRIVED, FAST, LOST_BETWEEN, LOST_CONGESTION, LOST_RADIO, NEW, PROBE, TAIL, TIMEOUT, UNEXPLAINED, UNKNOWN,
  UNNEEDED_ACKED, UNNEEDED_ARRIVAL, UNNEEDED_DSACK, UNNEEDED_TIMESTAMP,
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
  [UNNEEDED_TIMESTAMP]: () => 'spurious (the ACK echoes an older timestamp)',
  [UNNEEDED_DSACK]: () => 'spurious (the receiver reported a duplicate with D-SACK)',
  [UNNEEDED_ARRIVAL]: () => 'spurious (both copies are in the other capture)',
  [UNNEEDED_ACKED]: () => 'spurious (the data was already acknowledged)',
};

// What a sender does about losses; otherwise it is `open`, and nothing is drawn.
export const STATES = {
  reduced: 'the window was reduced, and no segment is missing',
  recovery: 'fast recovery: lost segments are retransmitted, new ones replace those that arrived',
  restarted: 'restart: everything that the receiver has not reported is retransmitted',
};

// Undoes `column` of html/columns.rs: differences, zigzag, seven bits an octet.
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

// The first index whose value is not below `value`.
export function lowerBound(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

// The indices that a view shows, and one more at either end, for lines that come in and go out.
export function visible(at, view) {
  return [Math.max(0, lowerBound(at, view.from) - 1), Math.min(at.length, lowerBound(at, view.to) + 1)];
}

// A run as html/mod.rs writes it, under the number that people know it by, less one. A page may add `extra` graphs, which are
// drawn below the others: [{ title, h, draw }], see `drawRun` of plots.js.
export function decodeRun(json, id) {
  const run = { id, name: json.name, facts: json.facts, connection: json.connection, texts: json.texts, states: json.states, measures: json.measures };
  for (const part of ['segments', 'acks', 'sack', 'rtt', 'windows', 'idle', 'decisions', 'episodes']) run[part] = columns(json[part]);
  const { segments, acks, windows, decisions } = run;
  const last = (values) => (values.length ? values[values.length - 1] : 0);
  run.end = Math.max(last(segments.at), last(acks.at), last(windows.at), 1000);
  // The segments that the keys n and p go to.
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

// How many there are of each kind of thing that the legend names.
function counts({ segments, acks, sack, idle, states, texts }) {
  const counts = {};
  const one = (look) => { counts[look] = (counts[look] ?? 0) + 1; };
  for (let i = 0; i < segments.at.length; i++) {
    one(LOOK_OF_SENDING[segments.sending[i]]);
    if (isLost(segments.fate[i])) one(LOOK_OF_LOSS[segments.fate[i]]);
    if (isUnneeded(segments.fate[i])) one('spurious');
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
export function isUnneeded(fate) { return fate === UNNEEDED_TIMESTAMP || fate === UNNEEDED_DSACK || fate === UNNEEDED_ARRIVAL || fate === UNNEEDED_ACKED; }

// Steps of `bin` microseconds, each with the bits per second that were acknowledged in it.
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
