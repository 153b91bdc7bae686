// Plays a run: moves the cursor through virtual time at a constant speed.

import { $ } from './dom.js';
import { graphs } from './graphs.js';
import { medianRtt } from './packets.js';

// A round trip takes this number of seconds at the initial speed.
const ROUND_TRIP = 3;

export class Player {
  constructor() {
    // Virtual seconds per second, the time of the cursor, and the time of the last frame while it plays.
    Object.assign(this, { speed: 1, isChosen: false, at: null, last: null });
    $('play').addEventListener('click', () => this.toggle());
    $('slower').addEventListener('click', () => this.choose(-1));
    $('faster').addEventListener('click', () => this.choose(1));
    graphs.keys.a = () => this.toggle();
    graphs.on('cursor', (micros) => { if (micros !== null) this.at = micros; });
  }

  // Called when other runs are on display. The speed fits their round-trip time, unless the user chose one.
  reset() {
    this.turn(false);
    const run = graphs.panels[0]?.run;
    if (run && !this.isChosen) this.setSpeed(round(medianRtt(run) / 1e6 / ROUND_TRIP, 0));
  }

  toggle() { this.turn(this.last === null); }

  turn(on) {
    const { view } = graphs;
    this.last = on ? performance.now() : null;
    $('play').textContent = on ? '❚❚ pause' : '▶ play';
    // A screen reader cannot follow every change.
    $('moment-state').setAttribute('aria-live', on ? 'off' : 'polite');
    if (!on) return;
    if (this.at === null || this.at >= 0.99 * view.end) this.at = view.from;
    graphs.setFocus(null, null);
    requestAnimationFrame((now) => this.frame(now));
  }

  frame(now) {
    if (this.last === null) return;
    const { view } = graphs, span = view.to - view.from;
    // A hidden page gets no frames. The run continues where it was.
    const passed = Math.min(Math.max(now - this.last, 0), 100), at = Math.min(this.at + passed * 1e3 * this.speed, view.end);
    this.last = now;
    if (at < view.from || (at > view.to - 0.05 * span && view.to < view.end)) graphs.setView(at - 0.2 * span, at + 0.8 * span);
    graphs.setCursor(at);
    if (at < view.end) requestAnimationFrame((next) => this.frame(next)); else this.turn(false);
  }

  choose(direction) {
    this.isChosen = true;
    this.setSpeed(round(this.speed, direction));
  }

  setSpeed(speed) {
    this.speed = speed;
    $('speed').textContent = speed >= 1 ? `${speed}×` : `1/${Math.round(1 / speed)}`;
  }
}

// Returns the speed in the series 1, 2, 5, 10 … that is `steps` after the largest one up to this speed.
function round(speed, steps) {
  const at = Math.floor(3 * Math.log10(speed) + 0.1) + steps, limited = Math.min(Math.max(at, -12), 9);
  return [1, 2, 5][((limited % 3) + 3) % 3] * 10 ** Math.floor(limited / 3);
}
