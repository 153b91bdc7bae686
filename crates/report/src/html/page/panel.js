// A run on the page, with its canvas, the line with the values at the cursor, and the note about one item.

import { boxes, scale } from './axes.js';
import { NEW } from './codes.js';
import { FATE, SENDING, STATES, lowerBound } from './data.js';
import { element } from './dom.js';
import { colours } from './marks.js';
import { drawRun } from './plots.js';
import { timeline } from './time.js';
import { amount, duration, seconds, segmentAt } from './words.js';

export class Panel {
  constructor(run, number) {
    this.run = run;
    // The segment, ACK, decision or episode that the note describes.
    this.focus = null;
    this.canvas = element('canvas');
    this.line = element('div', { class: 'cursor', hidden: '' });
    this.halo = element('div', { class: 'halo', hidden: '' });
    this.note = element('div', { class: 'note', role: 'status', 'aria-live': 'polite', hidden: '' });
    this.values = element('output', { class: 'values' });
    const label = `Graphs of run ${number}, ${run.name}. Arrow keys move, plus and minus zoom, n and p select retransmissions and losses, question mark shows the help.`;
    this.stage = element('div', { class: 'stage', tabindex: '0', role: 'group', 'aria-label': label }, this.canvas, this.line, this.halo, this.note);
    // The runs of a capture are named after their connections. Then the connection is not repeated.
    const connection = run.name.includes(run.connection) ? [] : [element('span', { class: 'connection', title: run.connection }, run.connection)];
    const facts = element('dl', { class: 'facts' });
    for (const [name, value] of run.facts) facts.append(element('dt', {}, name), element('dd', {}, value));
    this.node = element('article', { class: 'panel', 'data-run': run.id },
      element('header', {}, element('h3', { title: run.name }, run.name), ...connection),
      this.values, this.stage, element('div', { class: 'print-legend' }), facts);
  }

  // Determines the size of the graphs, and the horizontal positions of times.
  measure(view, folded, layout) {
    this.width = Math.max(240, Math.round(this.stage.clientWidth));
    this.height = Math.round(this.stage.clientHeight);
    this.box = boxes(this.width, this.height, layout);
    this.view = { ...view };
    this.time = timeline(this.run, view, this.box.sequence, folded);
  }

  // Pixels of the window per pixel of the stage, which a page may enlarge with CSS zoom.
  get enlarged() { return this.stage.getBoundingClientRect().width / this.stage.clientWidth || 1; }

  draw(scales, hidden, printing) {
    const ratio = printing ? 3 : Math.min(3, (devicePixelRatio || 1) * this.enlarged);
    const [w, h] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) Object.assign(this.canvas, { width: w, height: h });
    const ctx = this.canvas.getContext('2d');
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawRun(ctx, this.run, this.view, this.time, scales, {
      width: this.width, height: this.height, all: this.box, hidden, C: colours(printing),
    });
    this.Y = scale(this.box.sequence, scales.low, scales.high);
    this.showFocus();
  }

  X(at) { return this.time.X(at); }

  timeAt(x) { return this.time.at(x); }

  // Shows the cursor at a time, which all panels share, and the values at this time.
  setCursor(time) {
    const inside = time !== null && time >= this.view.from && time <= this.view.to;
    this.line.hidden = !inside;
    if (time === null) {
      this.values.textContent = this.run.facts.find(([name]) => name === 'goodput')?.[1] ?? '';
      return;
    }
    if (inside) {
      this.line.style.transform = `translateX(${this.X(time)}px)`;
      this.line.style.height = `${this.box.bottom - this.box.sequence.y}px`;
      this.line.style.top = `${this.box.sequence.y}px`;
    }
    const { run } = this, { windows, rtt, acks, mss } = run;
    const before = (values) => lowerBound(values, time + 0.5) - 1;
    const parts = [mss ? `${seconds(time)}, in segments` : seconds(time)];
    const window = before(windows.at), sample = before(rtt.at), ack = before(acks.at);
    if (ack >= 0) parts.push(`acknowledged ${mss ? amount(acks.ack[ack] - 1, mss) : acks.ack[ack]}`);
    if (window >= 0) {
      parts.push(`in flight ${amount(windows.flight[window], mss)}`);
      if (!isNaN(windows.cwnd[window])) parts.push(`cwnd ${amount(windows.cwnd[window], mss)}`);
      if (!isNaN(windows.ssthresh[window])) parts.push(`ssthresh ${amount(windows.ssthresh[window], mss)}`);
      if (!run.logged) parts.push(`estimated window ${amount(windows.estimated[window], mss)}`);
    }
    if (sample >= 0) parts.push(`${run.measures} ${duration(rtt.micros[sample])}`);
    this.values.textContent = parts.join(' · ');
  }

  // Returns the segment, ACK, decision or episode nearest to a point of the canvas, if there is one nearby.
  nearest(x, y) {
    const { lane, sequence, states } = this.box, { run } = this;
    if (states && y >= states.y - 1 && y <= states.y + states.h + 1) {
      const i = this.episodeAt(x);
      return i < 0 ? null : { kind: 'episode', i };
    }
    if (y >= lane.y - 2 && y <= lane.y + lane.h + 2) {
      const i = this.nearestIn(run.decisions.at, x, 8, () => 0);
      return i < 0 ? null : { kind: 'decision', i };
    }
    if (y < sequence.y || y > sequence.y + sequence.h) return null;
    const { segments, acks } = run;
    const outside = (start, end) => Math.max(0, this.Y(end) - y, y - this.Y(start));
    // A mark is easier to hit than a plain segment at the same place.
    const segment = this.nearestIn(segments.at, x, 14, (i) =>
      outside(segments.start[i], segments.start[i] + segments.length[i]) - (segments.sending[i] === NEW ? 0 : 4));
    const ack = this.nearestIn(acks.at, x, 6, (i) => outside(acks.ack[i], acks.ack[i]) + 2);
    const away = (i, at, start, end) => (i < 0 ? Infinity : Math.hypot(this.X(at[i]) - x, outside(start[i], end(i))));
    const toSegment = away(segment, segments.at, segments.start, (i) => segments.start[i] + segments.length[i]);
    const toAck = away(ack, acks.at, acks.ack, (i) => acks.ack[i]) + 2;
    if (Math.min(toSegment, toAck) > 14) return null;
    return toSegment <= toAck ? { kind: 'segment', i: segment } : { kind: 'ack', i: ack };
  }

  // Returns the band under the pointer, or a band that begins or ends within a few pixels.
  episodeAt(x) {
    const { from, to } = this.run.episodes, reach = this.timeAt(x + 3) - this.timeAt(x);
    const time = this.timeAt(x), last = lowerBound(from, time + reach) - 1;
    for (const i of [last - 1, last]) if (i >= 0 && from[i] <= time && time < to[i]) return i;
    return last >= 0 && to[last] + reach >= time ? last : -1;
  }

  nearestIn(at, x, reach, vertical) {
    let best = -1, least = Infinity;
    const from = lowerBound(at, this.timeAt(x - reach)), to = lowerBound(at, this.timeAt(x + reach));
    for (let i = from; i < to; i++) {
      const distance = Math.abs(this.X(at[i]) - x) + vertical(i);
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  place({ kind, i }) {
    const { segments, acks, decisions } = this.run;
    if (kind === 'segment') return [this.X(segments.at[i]), this.Y(segments.start[i] + segments.length[i] / 2)];
    if (kind === 'ack') return [this.X(acks.at[i]), this.Y(acks.ack[i])];
    if (kind === 'episode') {
      const { states } = this.box, begin = this.X(this.run.episodes.from[i]);
      return [this.X(this.run.episodes.to[i]) < states.x ? begin : Math.max(begin, states.x), states.y + states.h / 2];
    }
    return [this.X(decisions.at[i]), this.box.lane.y + this.box.lane.h / 2];
  }

  timeOf({ kind, i }) {
    if (kind === 'episode') return this.run.episodes.from[i];
    return this.run[{ segment: 'segments', ack: 'acks', decision: 'decisions' }[kind]].at[i];
  }

  setFocus(focus) {
    const same = focus?.kind === this.focus?.kind && focus?.i === this.focus?.i;
    this.focus = focus;
    if (!same && focus) this.note.replaceChildren(...this.describe(focus));
    this.showFocus();
  }

  showFocus() {
    const { focus, note, halo } = this;
    let [x, y] = focus ? this.place(focus) : [NaN, NaN];
    const { sequence, lane } = this.box;
    const seen = x >= sequence.x && x <= sequence.x + sequence.w && y >= sequence.y && y <= lane.y + lane.h;
    note.hidden = halo.hidden = !seen;
    if (!seen) return;
    halo.style.transform = `translate(${x - 9}px, ${y - 9}px)`;
    // The note is next to the item, on the side with more space. In a narrow panel it is above or below the
    // item.
    const { offsetWidth: w, offsetHeight: h } = note;
    let left = x > this.width / 2 ? x - w - 16 : x + 16, top = y - h / 2;
    if (left < 2 || left + w > this.width - 2) {
      left = x - w / 2;
      top = y > this.height / 2 ? y - h - 14 : y + 14;
    }
    const inside = (value, size, room) => Math.max(2, Math.min(value, room - size - 2));
    note.style.transform = `translate(${inside(left, w, this.width)}px, ${inside(top, h, this.height)}px)`;
  }

  describe({ kind, i }) {
    const { run } = this, { mss } = run;
    const lines = (...texts) => texts.filter(Boolean).map((text) => element('div', {}, text));
    if (kind === 'decision') {
      const [by, , text] = run.texts[i], about = run.decisions.start[i];
      return [element('strong', {}, `decision by ${by}`), ...lines(seconds(run.decisions.at[i]), text, mss && about && `segment ${segmentAt(about, mss)}`)];
    }
    if (kind === 'episode') {
      const { from, to } = run.episodes, [name, why] = run.states[i];
      return [element('strong', {}, name), ...lines(`${seconds(from[i])} – ${seconds(to[i])}: ${duration(to[i] - from[i])}`, STATES[name],
        why && `cause: ${why}`)];
    }
    if (kind === 'ack') {
      const { acks, sack } = run, blocks = [], block = (left, right) => (mss ? `${segmentAt(left, mss)}–${segmentAt(right - 1, mss)}` : `${left}–${right}`);
      for (let b = lowerBound(sack.of, i); b < sack.of.length && sack.of[b] === i; b++) blocks.push(block(sack.left[b], sack.right[b]));
      return [element('strong', {}, `frame ${acks.number[i]}: ${acks.duplicate[i] ? 'duplicate ACK' : 'ACK'} ${acks.ack[i]}`),
        ...lines(seconds(acks.at[i]), mss && `the receiver expects segment ${segmentAt(acks.ack[i], mss)}`,
          `receiver window ${amount(acks.window[i], mss)}${mss ? ' segments' : ''}, up to ${mss ? `segment ${segmentAt(run.edge[i] - 1, mss)}` : run.edge[i]}`, blocks.length && `SACK ${mss ? 'of segments ' : ''}${blocks.join(', ')}`)];
    }
    const { segments } = run, start = segments.start[i], length = segments.length[i];
    const count = (n, one, many) => `${n} ${n === 1 ? one : many}`;
    return [element('strong', {}, `frame ${segments.number[i]}: ${SENDING[segments.sending[i]]}`),
      ...lines(seconds(segments.at[i]), mss && `segment ${segmentAt(start, mss)}`, `bytes ${start}–${start + length} (${length})`,
        `${count(segments.dupacks[i], 'duplicate ACK', 'duplicate ACKs')}, ${count(segments.flight[i], 'segment', 'segments')} in flight`,
        FATE[segments.fate[i]](segments.detail[i])),
      ...this.decisionsBehind(i).map((d) => element('div', { class: 'why' }, `${run.texts[d][0]}: ${run.texts[d][2]}`))];
  }

  // Returns the decisions about these bytes shortly before they were sent. The log has the time of the
  // decision, the capture the time at which the packet crosses the device.
  decisionsBehind(i) {
    const { segments, decisions } = this.run, found = [];
    const start = segments.start[i], end = start + segments.length[i], at = segments.at[i];
    for (let d = lowerBound(decisions.at, at - 20e3); d < decisions.at.length && decisions.at[d] <= at + 1e3; d++) {
      if (decisions.start[d] < end && decisions.end[d] > start) found.push(d);
    }
    return found.slice(-4);
  }
}
