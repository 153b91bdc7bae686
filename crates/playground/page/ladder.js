// The ladder diagram: the packets between the hosts of the active run. Time runs down, and follows the
// cursor of the graphs.

import { $, element } from './dom.js';
import { graphs } from './graphs.js';
import { darkness } from './marks.js';
import { eachBetween, medianRtt } from './packets.js';
import { drawLadder, ends, sizes } from './rungs.js';

// Visible time in round trips, and the part of it that is before the cursor.
const ROUND_TRIPS = 2.5, BEFORE = 0.6;

export class Ladder {
  constructor() {
    Object.assign(this, { at: 0, cursor: null, focus: null, run: null, span: 1e6, factor: 1, due: false });
    this.canvas = $('ladder-canvas');
    graphs.on('cursor', (micros) => { this.cursor = micros; if (micros !== null) this.at = micros; this.schedule(); });
    graphs.on('view', () => this.schedule());
    graphs.on('focus', (focus) => { this.focus = focus; this.schedule(); });
    graphs.on('active', () => this.reset());
    $('ladder-sender').addEventListener('change', () => graphs.activate(graphs.panels[$('ladder-sender').selectedIndex]));
    this.canvas.addEventListener('click', (event) => this.select(event));
    this.canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      this.factor = Math.min(Math.max(this.factor * Math.exp(Math.max(-300, Math.min(300, event.deltaY)) * 0.002), 0.02), 50);
      this.schedule();
    }, { passive: false });
    darkness.addEventListener('change', () => this.schedule());
    new ResizeObserver(() => this.schedule()).observe(this.canvas);
  }

  // Shows or hides the diagram.
  show(on) {
    $('ladder').hidden = !on;
    document.body.classList.toggle('with-ladder', on);
    document.querySelector('[data-key=d]').setAttribute('aria-pressed', String(on));
    graphs.schedule();
    this.schedule();
  }

  // Called when another run is active.
  reset() {
    const { active, panels } = graphs, run = active?.run ?? null;
    $('ladder-sender').replaceChildren(...panels.map((panel) => element('option', panel === active ? { selected: '' } : {}, panel.run.name)));
    if (run && run !== this.run) this.span = ROUND_TRIPS * medianRtt(run);
    this.run = run;
    // The graphs of the other senders may be hidden.
    graphs.schedule();
    this.schedule();
  }

  schedule() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; this.draw(); });
  }

  // Pixels of the window per pixel of the canvas, which the presentation enlarges.
  get enlarged() { return this.canvas.getBoundingClientRect().width / this.canvas.clientWidth || 1; }

  draw() {
    const { canvas, run, cursor, focus } = this, { clientWidth: w, clientHeight: h } = canvas;
    if (!w || !h || !run?.packets) return;
    const ratio = Math.min(3, (devicePixelRatio || 1) * this.enlarged), span = this.span * this.factor;
    Object.assign(canvas, { width: Math.round(w * ratio), height: Math.round(h * ratio) });
    // Without a cursor, the diagram keeps its place, or begins with the view of the graphs.
    const { view } = graphs, isInView = cursor !== null || (this.at >= view.from && this.at <= view.to);
    const ctx = canvas.getContext('2d'), from = Math.max(-0.05 * span, isInView ? this.at - BEFORE * span : view.from);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.view = { from, to: from + span };
    drawLadder(ctx, run, this.view, { w, h, cursor, focus: focus?.run === run ? focus : null });
  }

  // Selects the packet at the pointer in the graphs.
  select(event) {
    const { canvas, run, view, enlarged } = this, box = canvas.getBoundingClientRect();
    if (!run?.packets || !view) return;
    const [x, y] = [(event.clientX - box.left) / enlarged, (event.clientY - box.top) / enlarged];
    const frame = sizes(canvas.clientWidth, canvas.clientHeight, view), { packets } = run;
    let best = -1, least = 8;
    eachBetween(packets, view.from, view.to, (i) => {
      const away = packets.of[i] < 0 ? Infinity : distance(x, y, ends(packets, i, frame));
      if (away < least) [best, least] = [i, away];
    });
    if (best >= 0) graphs.goTo(graphs.active, { kind: packets.ack[best] ? 'ack' : 'segment', i: packets.of[best] });
  }
}

// The distance of a point from a line between two points.
function distance(x, y, { x0, y0, x1, y1 }) {
  const [dx, dy] = [x1 - x0, y1 - y0], along = ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1);
  const part = Math.min(Math.max(along, 0), 1);
  return Math.hypot(x - x0 - part * dx, y - y0 - part * dy);
}
