// The packets between the two hosts of a run, for the ladder diagram.

import { columns, lowerBound } from './data.js';

// The looks of the outcomes in ladder.rs; the first one is an arrival.
export const LOSSES = [null, 'lost-congestion', 'lost-radio', 'lost-between'];

// Decodes the packets as ladder.rs writes them, in the order in which they left. `of` has the index of each
// one in the segments or ACKs of the run, or -1.
export function decodePackets(run, encoded) {
  const packets = columns(encoded), { sent, ended, ack, start } = packets;
  const last = { segments: -1, acks: -1 };
  packets.of = Int32Array.from(sent, (at, i) => {
    const kind = ack[i] ? 'acks' : 'segments';
    const found = ack[i] ? indexOf(run.acks.at, run.acks.ack, ended[i], start[i], last.acks) : indexOf(run.segments.at, run.segments.start, at, start[i], last.segments);
    if (found >= 0) last[kind] = found;
    return found;
  });
  packets.slowest = sent.reduce((most, at, i) => Math.max(most, ended[i] - at), 0);
  return packets;
}

// Returns the index of the item with this time and value. Of several, the first one after `last`.
function indexOf(times, values, at, value, last) {
  let found = -1;
  for (let i = lowerBound(times, at); i < times.length && times[i] === at; i++) {
    if (values[i] !== value) continue;
    if (found < 0) found = i;
    if (i > last) return i;
  }
  return found;
}

// Calls `use` with the index of each packet that is on its way between two times.
export function eachBetween({ sent, ended, slowest }, from, to, use) {
  for (let i = lowerBound(sent, from - slowest); i < sent.length && sent[i] <= to; i++) if (ended[i] >= from) use(i);
}

// Returns the median round-trip time in microseconds, or a second if there is no sample.
export function medianRtt({ rtt }) {
  const sorted = Float64Array.from(rtt.micros).sort();
  return sorted.length ? Math.max(sorted[sorted.length >> 1], 100) : 1e6;
}
