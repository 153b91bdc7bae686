// The strip above the graphs shows the whole time range. It is drawn when the runs change; the mark of the
// current view is drawn every time.

import { steps } from './axes.js';
import { $ } from './dom.js';
import { LOOK_OF_LOSS, LOOK_OF_SENDING, colours } from './marks.js';

export class Overview {
  // `least` is the shortest time range that can be selected.
  constructor(graphs, least) {
    this.graphs = graphs;
    this.strip = document.createElement('canvas');
    this.forget();
    this.listen(least);
  }

  // Called when other runs are on display.
  forget() { this.of = null; }

  draw() {
    const { view, printing } = this.graphs;
    const canvas = $('overview'), ratio = Math.min(3, devicePixelRatio || 1), C = colours(printing);
    const [w, h] = [canvas.clientWidth, canvas.clientHeight];
    if (!w || !h) return; // Hidden in print.
    const of = JSON.stringify([w, h, ratio, C.paper]);
    if (this.of !== of) this.drawStrip(w, h, ratio, C);
    this.of = of;
    Object.assign(canvas, { width: this.strip.width, height: this.strip.height });
    const ctx = canvas.getContext('2d'), X = (at) => (at / view.end) * w;
    ctx.drawImage(this.strip, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = C.shade;
    ctx.fillRect(0, 0, X(view.from), h);
    ctx.fillRect(X(view.to), 0, w - X(view.to), h);
    ctx.strokeStyle = C.new;
    ctx.lineWidth = 2;
    ctx.strokeRect(X(view.from) + 1, 1, Math.max(2, X(view.to) - X(view.from) - 2), h - 2);
  }

  drawStrip(w, h, ratio, C) {
    const { view, panels } = this.graphs;
    Object.assign(this.strip, { width: Math.round(w * ratio), height: Math.round(h * ratio) });
    const ctx = this.strip.getContext('2d'), X = (at) => (at / view.end) * w;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const high = Math.max(1, ...panels.map(({ run }) => run.acks.ack[run.acks.ack.length - 1] ?? 1));
    const Y = (value) => h - 9 - (value / high) * (h - 14);
    panels.forEach(({ run }, at) => {
      ctx.strokeStyle = C.ack;
      ctx.lineWidth = 1.2;
      ctx.setLineDash(at === 0 ? [] : [3 + 2 * at, 2 + at]);
      steps(ctx, run.acks.at, run.acks.ack, [0, run.acks.at.length], X, Y, run.end);
      ctx.setLineDash([]);
      for (const i of run.events) {
        ctx.fillStyle = C[LOOK_OF_LOSS[run.segments.fate[i]] ?? LOOK_OF_SENDING[run.segments.sending[i]]];
        ctx.fillRect(Math.round(X(run.segments.at[i])), h - 6, 1, 6);
      }
    });
  }

  listen(least) {
    const canvas = $('overview'), { graphs } = this, { view } = graphs;
    const time = (event) => ((event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth) * view.end;
    let drag = null;
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      const at = time(event), reach = (7 / canvas.clientWidth) * view.end, { from, to } = view;
      if (Math.abs(at - from) < reach) drag = (now) => graphs.setView(Math.min(now, to - least), to);
      else if (Math.abs(at - to) < reach) drag = (now) => graphs.setView(from, Math.max(now, from + least));
      else if (at > from && at < to && to - from < view.end * 0.999) drag = (now) => graphs.setView(from + now - at, to + now - at);
      else drag = (now) => { if (Math.abs(now - at) > reach) graphs.setView(Math.min(at, now), Math.max(at, now)); };
    });
    canvas.addEventListener('pointermove', (event) => drag?.(time(event)));
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { drag = null; });
    canvas.addEventListener('dblclick', () => graphs.reset());
  }
}
