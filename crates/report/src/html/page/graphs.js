// The runs on display: which part of their time is shown, where the cursor is, and how people move in them by keys and buttons.
// What a page with graphs needs of HTML is in html/graphs.rs. The page does the rest through `graphs`, the only one:
//
//   show(runs, { first, keep })  shows runs of `decodeRun`, from left to right; keys move in the graphs of `first`. All of their time
//                                is shown, unless a part was, and one of them was on display or `keep` is true
//   panels, active               a Panel for each run (`panel.run`), and the one that keys move in
//   view, setView(from, to)      { from, to, end } in microseconds; end is that of the longest run
//   reset()                      shows all of the time
//   cursor, setCursor(micros)    null for none; setFocus(panel, focus) shows a note: { kind: 'segment', i }, or 'ack', 'decision', 'episode'
//   schedule()                   draws everything in the next frame
//   on(name, callback)           'view' (the view), 'cursor' (micros or null), 'focus' ({ run, kind, i } or null): something else is
//                                shown than before. Called at once, many times a second while people move
//   keys                         what each key does, by `KeyboardEvent.key`; a button with this `data-key` does the same
//   roomForStates                true: there is room for states even if no run on display has any
//
// From outside, in tests and on the console, all of that is `airtcp.graphs`. Nothing else of the page is global.

import { layout } from './axes.js';
import { lowerBound } from './data.js';
import { $ } from './dom.js';
import { legends } from './legend.js';
import { darkness } from './marks.js';
import { Overview } from './overview.js';
import { Panel } from './panel.js';
import { extents } from './plots.js';
import { listen } from './pointers.js';
import { timeline } from './time.js';
import { duration, seconds } from './words.js';

const LEAST = 200; // microseconds, in which a fast link carries some packets

class Graphs {
  constructor() {
    this.view = { from: 0, to: 1, end: 1 };
    this.panels = [];
    this.active = null;
    this.cursor = null;
    this.hidden = new Set(['window']);
    this.folded = false;
    this.printing = false;
    this.roomForStates = false;
    this.due = false;
    // What was told last, by the name of the event.
    this.told = { cursor: 'null', focus: 'null' };
    this.callbacks = [];
    this.overview = new Overview(this, LEAST);
    this.keys = {
      ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15),
      '+': () => this.zoom(0.6), '=': () => this.zoom(0.6), '-': () => this.zoom(1 / 0.6), _: () => this.zoom(1 / 0.6),
      0: () => this.reset(),
      n: () => this.step(1, this.active?.run.events), p: () => this.step(-1, this.active?.run.events),
      '.': () => this.step(1), ',': () => this.step(-1),
      i: () => this.fold(!this.folded),
      l: () => document.body.classList.toggle('with-legend'),
      '?': () => $('help').showModal(),
      Escape: () => { this.setCursor(null); this.setFocus(null, null); },
    };
    this.listenToPage();
  }

  show(runs, { first = runs[0], keep = false } = {}) {
    // What is under the cursor, and the part of the time that is shown, says nothing about other runs.
    const { view, panels } = this, before = panels.map((panel) => panel.run);
    const whole = (view.from === 0 && view.to === view.end) || !(keep || runs.some((run) => before.includes(run)));
    const focused = panels.some((panel) => panel.stage === document.activeElement);
    this.setCursor(null);
    for (const panel of panels.splice(0)) panel.node.remove();
    for (const run of runs) {
      const panel = new Panel(run, run.id + 1);
      panels.push(panel);
      listen(this, panel);
      $('panels').append(panel.node);
    }
    this.activate(panels.find((panel) => panel.run === first) ?? null);
    if (focused) this.active?.stage.focus({ preventScroll: true });
    $('panels').dataset.count = String(panels.length);
    $('nothing').hidden = panels.length > 0;
    view.end = Math.max(1000, ...runs.map((run) => run.end)) * 1.005;
    if (whole) this.reset(); else this.setView(view.from, view.to);
    this.overview.forget();
    this.tellFocus();
    legends(this);
    this.redraw();
  }

  on(name, callback) { this.callbacks.push({ name, callback }); }

  // Calls those who want to know, if it is something else than what they were told before.
  tell(name, value, key = JSON.stringify(value)) {
    if (this.told[name] === key) return;
    this.told[name] = key;
    for (const listener of this.callbacks) if (listener.name === name) listener.callback(value);
  }

  schedule() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; this.redraw(); });
  }

  redraw() {
    if (performance.getEntriesByName('redraw').length > 500) performance.clearMeasures('redraw');
    const start = performance.now(), { panels, view, folded } = this;
    if (panels.length) {
      const runs = panels.map((panel) => panel.run), room = layout(runs, this.roomForStates);
      for (const panel of panels) panel.measure(view, folded, room);
      const perPixel = Math.max(...panels.map((panel) => panel.time.perPixel));
      const scales = extents(runs, view, perPixel);
      for (const panel of panels) {
        panel.draw(scales, this.hidden, this.printing);
        panel.setCursor(this.cursor);
      }
      this.overview.draw();
    }
    $('range').textContent = `${seconds(view.from, 3)} – ${seconds(view.to, 3)}`;
    $('folds').textContent = folded ? this.foldedInWords() : '';
    performance.measure('redraw', { start });
  }

  setView(from, to) {
    const { view } = this, span = Math.min(Math.max(to - from, LEAST), view.end);
    const middle = (from + to) / 2;
    view.from = Math.min(Math.max(0, middle - span / 2), view.end - span);
    view.to = view.from + span;
    this.schedule();
    this.tell('view', view);
  }

  // Zooms around the time `at`; a `factor` below 1 shows less time.
  zoom(factor, at = this.cursorInView() ?? (this.view.from + this.view.to) / 2) {
    const { view } = this, span = Math.min(Math.max((view.to - view.from) * factor, LEAST), view.end);
    const left = (at - view.from) / (view.to - view.from);
    this.setView(at - left * span, at + (1 - left) * span);
  }

  cursorInView() {
    const { cursor, view } = this;
    return cursor !== null && cursor >= view.from && cursor <= view.to ? cursor : null;
  }

  // Zooms so that the time under the pointer stays there, also where folding moves what is beside it.
  zoomAt(panel, factor, x) {
    const at = panel.timeAt(x);
    this.zoom(factor, at);
    if (!this.folded) return;
    // What is folded at the edges differs with each step: the right one is between one view to the left and one to the right.
    const { from, to } = this.view, moved = (by) => ({ from: from + by, to: to + by });
    let [low, high] = [from - to, to - from];
    for (let i = 0; i < 30; i++) {
      const middle = (low + high) / 2;
      if (timeline(panel.run, moved(middle), panel.box.sequence, true).at(x) < at) low = middle; else high = middle;
    }
    this.setView(from + low, to + low);
  }

  pan(share) {
    const { from, to } = this.view, by = share * (to - from);
    this.setView(from + by, to + by);
  }

  reset() { this.setView(0, this.view.end); }

  setCursor(time) {
    this.cursor = time;
    for (const panel of this.panels) if (panel.view) panel.setCursor(time);
    this.tell('cursor', time);
  }

  // There is a note in this panel, if there is anything to say, and in no other one.
  setFocus(panel, focus) {
    for (const other of this.panels) if (other !== panel) other.setFocus(null);
    panel?.setFocus(focus);
    this.tellFocus();
  }

  dropFocus(panel) {
    panel.setFocus(null);
    this.tellFocus();
  }

  tellFocus() {
    const at = this.panels.findIndex((panel) => panel.focus), panel = this.panels[at];
    const focus = panel ? { run: panel.run, ...panel.focus } : null;
    this.tell('focus', focus, JSON.stringify(panel ? [at, panel.focus] : null));
  }

  // The panel that the keys move in.
  activate(panel) {
    this.active = panel;
    for (const other of this.panels) other.node.classList.toggle('active', other === panel);
  }

  // Scrolls so far that all of a panel is to be seen under the bar.
  reveal(panel) {
    const top = panel.node.getBoundingClientRect().top, { bottom } = panel.stage.getBoundingClientRect(), bar = $('bar').offsetHeight;
    if (top < bar || bottom > innerHeight) scrollBy({ top: top - bar - 4 });
  }

  foldedInWords() {
    const breaks = this.panels.flatMap((panel) => panel.time.breaks), sum = breaks.reduce((sum, { silent }) => sum + silent, 0);
    if (!breaks.length) return 'no silence is long enough to fold';
    return `${breaks.length} ${breaks.length === 1 ? 'silence' : 'silences'} folded: ${duration(sum)}`;
  }

  // Folds silences, or shows all of the time.
  fold(on) {
    this.folded = on;
    document.querySelector('[data-key=i]').setAttribute('aria-pressed', String(on));
    this.schedule();
  }

  // Goes to a packet in the panel that was used last: shows its note and moves the view there.
  goTo(panel, i) {
    const { view } = this, at = panel.run.segments.at[i], span = view.to - view.from;
    if (at < view.from + span * 0.05 || at > view.to - span * 0.05) this.setView(at - span / 2, at + span / 2);
    this.redraw();
    this.setCursor(at);
    this.setFocus(panel, { kind: 'segment', i });
    this.reveal(panel);
  }

  here(panel) {
    if (panel.focus?.kind === 'segment') return panel.focus.i;
    return lowerBound(panel.run.segments.at, this.cursor ?? this.view.from) - 0.5;
  }

  // To the next segment of the active panel or the one before; of `events`, if they are given.
  step(direction, events) {
    const { active } = this;
    if (!active) return;
    const from = this.here(active);
    let next = direction > 0 ? Math.floor(from) + 1 : Math.ceil(from) - 1;
    if (events) next = direction > 0 ? events.find((i) => i >= next) : events.findLast((i) => i <= next);
    if (next >= 0 && next < active.run.segments.at.length) this.goTo(active, next);
  }

  // On paper each run has a page, in the colours of the light theme. Folded parts are opened, since nothing can be clicked.
  print(on) {
    this.printing = on;
    for (const details of document.querySelectorAll('details:not(.scenario)')) {
      if (on) details.dataset.was = details.open ? 'open' : '';
      details.open = on || details.dataset.was === 'open';
    }
    document.documentElement.classList.toggle('printing', on);
    legends(this);
    this.redraw();
  }

  listenToPage() {
    document.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || $('help').open) return;
      if (event.target.closest('select, textarea, input:not([type=checkbox])')) return;
      // hasOwn, since the name of a key may be that of a method.
      if (!Object.hasOwn(this.keys, event.key)) return;
      this.keys[event.key]();
      event.preventDefault();
    });
    for (const button of document.querySelectorAll('[data-key]')) {
      button.addEventListener('click', () => this.keys[button.dataset.key]());
    }
    addEventListener('beforeprint', () => this.print(true));
    addEventListener('afterprint', () => this.print(false));
    darkness.addEventListener('change', () => { legends(this); this.schedule(); });
    new ResizeObserver(() => this.schedule()).observe($('panels'));
    new ResizeObserver(() => document.body.style.setProperty('--bar', `${$('bar').offsetHeight}px`)).observe($('bar'));
  }
}

export const graphs = new Graphs();
window.airtcp = { graphs };
