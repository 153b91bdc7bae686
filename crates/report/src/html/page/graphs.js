// The displayed runs: the time range in view, the cursor, and navigation by keys and buttons.
// html/graphs.rs writes the HTML elements that this module needs. Pages use the only instance, `graphs`:
//
//   show(runs, { first, keep })  shows runs of `decodeRun` from left to right; keys act on the graphs of
//                                `first`. Shows the whole time range, unless a part was in view, and
//                                `keep` is true or one of the runs was on display before
//   panels, active               a Panel for each run (`panel.run`), and the one that keys act on
//   view, setView(from, to)      { from, to, end } in microseconds; `end` is the end of the longest run
//   reset()                      shows the whole time range
//   cursor, setCursor(micros)    null for no cursor
//   moveTo(micros)               sets the cursor, and moves the view if necessary
//   setFocus(panel, focus)       shows a note: { kind: 'segment', i }, or 'ack', 'decision', 'episode'
//   goTo(panel, focus)           also moves there, and scrolls the panel into view
//   activate(panel)              selects the panel that keys act on
//   schedule()                   redraws everything in the next frame
//   on(name, callback)           reports changes: 'view' (the view), 'cursor' (micros or null), 'focus'
//                                ({ run, kind, i } or null), 'active' (a panel or null). Called
//                                immediately, many times a second while the user moves
//   keys                         actions by `KeyboardEvent.key`; a button with this `data-key` does the
//                                same
//   roomForStates                true: reserves space for states even if no displayed run has any
//
// Tests and the browser's console reach the instance as `airtcp.graphs`. Nothing else of the page is global.

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

const LEAST = 200; // microseconds, in which a fast link carries a few packets

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
    // The last value reported to listeners, by the name of the event.
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
    // The cursor and the time range of the previous runs do not apply to other runs.
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

  // Calls the listeners if the value differs from the last one reported.
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

  // Zooms around the time `at`. A `factor` below 1 shows a shorter time.
  zoom(factor, at = this.cursorInView() ?? (this.view.from + this.view.to) / 2) {
    const { view } = this, span = Math.min(Math.max((view.to - view.from) * factor, LEAST), view.end);
    const left = (at - view.from) / (view.to - view.from);
    this.setView(at - left * span, at + (1 - left) * span);
  }

  cursorInView() {
    const { cursor, view } = this;
    return cursor !== null && cursor >= view.from && cursor <= view.to ? cursor : null;
  }

  // Zooms so that the time under the pointer keeps its position, even if folding moves the rest.
  zoomAt(panel, factor, x) {
    const at = panel.timeAt(x);
    this.zoom(factor, at);
    if (!this.folded) return;
    // Each view folds different parts at its edges. Search for the right view by bisection, up to one view's
    // length to the left and to the right.
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

  // Shows a note in this panel if `focus` is set, and removes the notes of all other panels.
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

  // Selects the panel that keys act on.
  activate(panel) {
    this.active = panel;
    for (const other of this.panels) other.node.classList.toggle('active', other === panel);
    this.tell('active', panel, panel);
  }

  // Scrolls until the whole panel is visible below the bar.
  reveal(panel) {
    const top = panel.node.getBoundingClientRect().top, { bottom } = panel.stage.getBoundingClientRect(), bar = $('bar').offsetHeight;
    if (top < bar || bottom > innerHeight) scrollBy({ top: top - bar - 4 });
  }

  foldedInWords() {
    const breaks = this.panels.flatMap((panel) => panel.time.breaks), sum = breaks.reduce((sum, { silent }) => sum + silent, 0);
    if (!breaks.length) return 'no silence is long enough to fold';
    return `${breaks.length} ${breaks.length === 1 ? 'silence' : 'silences'} folded: ${duration(sum)}`;
  }

  // Turns the folding of silences on or off.
  fold(on) {
    this.folded = on;
    document.querySelector('[data-key=i]').setAttribute('aria-pressed', String(on));
    this.schedule();
  }

  // Sets the cursor, and moves the view if the time is not well inside it.
  moveTo(at) {
    const { view } = this, span = view.to - view.from;
    if (at < view.from + span * 0.05 || at > view.to - span * 0.05) this.setView(at - span / 2, at + span / 2);
    this.redraw();
    this.setCursor(at);
  }

  // Selects an item in a panel: shows its note, and moves the view to the item.
  goTo(panel, focus) {
    this.moveTo(panel.timeOf(focus));
    this.setFocus(panel, focus);
    this.reveal(panel);
  }

  here(panel) {
    if (panel.focus?.kind === 'segment') return panel.focus.i;
    return lowerBound(panel.run.segments.at, this.cursor ?? this.view.from) - 0.5;
  }

  // Selects the next or previous segment of the active panel. If `events` is given, only among these
  // segments.
  step(direction, events) {
    const { active } = this;
    if (!active) return;
    const from = this.here(active);
    let next = direction > 0 ? Math.floor(from) + 1 : Math.ceil(from) - 1;
    if (events) next = direction > 0 ? events.find((i) => i >= next) : events.findLast((i) => i <= next);
    if (next >= 0 && next < active.run.segments.at.length) this.goTo(active, { kind: 'segment', i: next });
  }

  // Prints each run on its own page, in the colours of the light theme. Collapsed parts are opened, because
  // they cannot be clicked on paper.
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
      // hasOwn, because a key may have the name of a method of all objects.
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
