// What time is shown, and how people move in it: by mouse, fingers and keys; and how it is printed.

const view = { from: 0, to: 1, end: 1 };
const hidden = new Set(['window']);
const panels = [];
let cursor = null, active = null, folded = false, due = false;
const $ = (id) => document.getElementById(id);
const LEAST = 200; // microseconds, in which a fast link carries some packets

function schedule() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => { due = false; redraw(); });
}

function redraw() {
  if (performance.getEntriesByName('redraw').length > 500) performance.clearMeasures('redraw');
  const start = performance.now();
  if (panels.length) {
    for (const panel of panels) panel.measure(view, folded);
    const perPixel = Math.max(...panels.map((panel) => panel.time.perPixel));
    const scales = extents(panels.map((panel) => panel.run), view, perPixel);
    for (const panel of panels) {
      panel.draw(scales, hidden);
      panel.setCursor(cursor);
    }
    drawOverview();
  }
  $('range').textContent = `${seconds(view.from, 3)} – ${seconds(view.to, 3)}`;
  $('folds').textContent = folded ? foldedInWords() : '';
  performance.measure('redraw', { start });
}

function setView(from, to) {
  const span = Math.min(Math.max(to - from, LEAST), view.end);
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(0, middle - span / 2), view.end - span);
  view.to = view.from + span;
  schedule();
}

// Zooms around the time `at`; a `factor` below 1 shows less time.
function zoom(factor, at = cursor !== null && cursor >= view.from && cursor <= view.to ? cursor : (view.from + view.to) / 2) {
  const span = Math.min(Math.max((view.to - view.from) * factor, LEAST), view.end);
  const left = (at - view.from) / (view.to - view.from);
  setView(at - left * span, at + (1 - left) * span);
}

// Zooms so that the time under the pointer stays there, also where folding moves what is beside it.
function zoomAt(panel, factor, x) {
  const at = panel.timeAt(x);
  zoom(factor, at);
  if (!folded) return;
  // What is folded at the edges differs with each step: the right one is between one view to the left and one to the right.
  const { from, to } = view, moved = (by) => ({ from: from + by, to: to + by });
  let [low, high] = [from - to, to - from];
  for (let i = 0; i < 30; i++) {
    const middle = (low + high) / 2;
    if (timeline(panel.run, moved(middle), panel.box.sequence, folded).at(x) < at) low = middle; else high = middle;
  }
  setView(from + low, to + low);
}

function pan(share) { const by = share * (view.to - view.from); setView(view.from + by, view.to + by); }
function reset() { setView(0, view.end); }

function setCursor(time) {
  cursor = time;
  for (const panel of panels) if (panel.view) panel.setCursor(time);
}

function listen(panel) {
  const { stage } = panel, pointers = new Map();
  let drag = null, pinch = null;
  const x = (event) => event.clientX - stage.getBoundingClientRect().left;
  const y = (event) => event.clientY - stage.getBoundingClientRect().top;
  const pinched = () => (pointers.size === 2 ? { points: [...pointers.values()].map((x) => panel.timeAt(x)) } : null);
  stage.addEventListener('focus', () => activate(panel));
  stage.addEventListener('wheel', (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : 1;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX * unit) / panel.width);
    else zoomAt(panel, Math.exp(Math.max(-300, Math.min(300, event.deltaY * unit)) * (event.ctrlKey ? 0.01 : 0.002)), x(event));
  }, { passive: false });
  stage.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, x(event));
    stage.setPointerCapture(event.pointerId);
    activate(panel);
    drag = { x: x(event), from: view.from, to: view.to, time: panel.time, selects: event.shiftKey, moved: false };
    pinch = pinched();
  });
  stage.addEventListener('pointermove', (event) => {
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, x(event));
    const { x: left, w } = panel.box.sequence;
    if (pinch && pointers.size === 2) {
      // What was under a finger stays under it.
      const [a, b] = [...pointers.values()].map((x) => (x - left) / w), [s, t] = pinch.points;
      if (Math.abs(b - a) > 0.02) { const span = (t - s) / (b - a); if (span > 0) setView(s - a * span, s + (1 - a) * span); }
      return;
    }
    if (drag && pointers.size === 1) {
      // A finger is never quite still.
      drag.moved ||= Math.abs(drag.x - x(event)) > (event.pointerType === 'touch' ? 6 : 0);
      if (drag.selects) select(panel, drag.x, x(event));
      else if (drag.moved) { const by = drag.time.at(drag.x) - drag.time.at(x(event)); setView(drag.from + by, drag.to + by); }
      return;
    }
    pointAt(event);
  });
  const pointAt = (event) => {
    const { x: left, w } = panel.box.sequence;
    setCursor(panel.timeAt(Math.min(Math.max(x(event), left), left + w)));
    for (const other of panels) if (other !== panel) other.setFocus(null);
    panel.setFocus(panel.nearest(x(event), y(event)));
  };
  const up = (event) => {
    if (drag?.selects && pointers.size === 1) {
      const times = [drag.x, x(event)].map((x) => panel.timeAt(x)).sort((a, b) => a - b);
      if (Math.abs(drag.x - x(event)) > 4) setView(...times);
      select(panel, null);
    }
    // A finger does not hover: it touches what it asks about.
    if (event.type === 'pointerup' && event.pointerType === 'touch' && drag && !drag.moved && !pinch) pointAt(event);
    pointers.delete(event.pointerId);
    // Fingers that stay go on from what is in view by now, and ask about nothing.
    const [rest] = pointers.values();
    drag = pointers.size > 0 ? { x: rest, from: view.from, to: view.to, time: panel.time, selects: false, moved: true } : null;
    pinch = pinched();
  };
  stage.addEventListener('pointerup', up);
  stage.addEventListener('pointercancel', up);
  stage.addEventListener('pointerleave', (event) => { if (!drag && event.pointerType !== 'touch') { setCursor(null); panel.setFocus(null); } });
  stage.addEventListener('dblclick', reset);
}

function select(panel, from, to) {
  let band = panel.stage.querySelector('.band');
  if (from === null) { band?.remove(); return; }
  if (!band) panel.stage.append(band = element('div', { class: 'band' }));
  Object.assign(band.style, { left: `${Math.min(from, to)}px`, width: `${Math.abs(to - from)}px` });
}

// The overview of the whole time is drawn when the runs change; the part that is in view is marked every time.
const strip = { canvas: document.createElement('canvas'), of: '' };

function drawOverview() {
  const canvas = $('overview'), ratio = Math.min(3, devicePixelRatio || 1), C = colours();
  const [w, h] = [canvas.clientWidth, canvas.clientHeight];
  if (!w || !h) return; // On paper there is none.
  const of = JSON.stringify([shownIds(), w, h, ratio, C.paper]);
  if (strip.of !== of) drawStrip(w, h, ratio, C);
  strip.of = of;
  Object.assign(canvas, { width: strip.canvas.width, height: strip.canvas.height });
  const ctx = canvas.getContext('2d'), X = (at) => (at / view.end) * w;
  ctx.drawImage(strip.canvas, 0, 0);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = C.shade;
  ctx.fillRect(0, 0, X(view.from), h);
  ctx.fillRect(X(view.to), 0, w - X(view.to), h);
  ctx.strokeStyle = C.new;
  ctx.lineWidth = 2;
  ctx.strokeRect(X(view.from) + 1, 1, Math.max(2, X(view.to) - X(view.from) - 2), h - 2);
}

function drawStrip(w, h, ratio, C) {
  Object.assign(strip.canvas, { width: Math.round(w * ratio), height: Math.round(h * ratio) });
  const ctx = strip.canvas.getContext('2d'), X = (at) => (at / view.end) * w;
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

function listenToOverview() {
  const canvas = $('overview');
  const time = (event) => ((event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth) * view.end;
  let drag = null;
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    const at = time(event), reach = (7 / canvas.clientWidth) * view.end, { from, to } = view;
    if (Math.abs(at - from) < reach) drag = (now) => setView(Math.min(now, to - LEAST), to);
    else if (Math.abs(at - to) < reach) drag = (now) => setView(from, Math.max(now, from + LEAST));
    else if (at > from && at < to && to - from < view.end * 0.999) drag = (now) => setView(from + now - at, to + now - at);
    else drag = (now) => { if (Math.abs(now - at) > reach) setView(Math.min(at, now), Math.max(at, now)); };
  });
  canvas.addEventListener('pointermove', (event) => drag?.(time(event)));
  for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { drag = null; });
  canvas.addEventListener('dblclick', reset);
}

function foldedInWords() {
  const breaks = panels.flatMap((panel) => panel.time.breaks), sum = breaks.reduce((sum, { silent }) => sum + silent, 0);
  if (!breaks.length) return 'no silence here is long enough to fold';
  return `${breaks.length} ${breaks.length === 1 ? 'silence' : 'silences'} folded: ${duration(sum)}`;
}

// Folds silences, or shows all of the time.
function fold(on) {
  folded = on;
  document.querySelector('[data-key=i]').setAttribute('aria-pressed', String(on));
  schedule();
}

// Goes to a packet in the panel that was used last: shows its note and moves the view there.
function goTo(panel, i) {
  const at = panel.run.segments.at[i], span = view.to - view.from;
  if (at < view.from + span * 0.05 || at > view.to - span * 0.05) setView(at - span / 2, at + span / 2);
  cursor = at;
  redraw();
  for (const other of panels) other.setFocus(null);
  setCursor(at);
  panel.setFocus({ kind: 'segment', i });
  reveal(panel);
}

function here(panel) {
  if (panel.focus?.kind === 'segment') return panel.focus.i;
  return lowerBound(panel.run.segments.at, cursor ?? view.from) - 0.5;
}

function step(direction, events) {
  if (!active) return;
  const from = here(active);
  let next = direction > 0 ? Math.floor(from) + 1 : Math.ceil(from) - 1;
  if (events) next = direction > 0 ? events.find((i) => i >= next) : events.findLast((i) => i <= next);
  if (next >= 0 && next < active.run.segments.at.length) goTo(active, next);
}

const KEYS = {
  ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15),
  '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1 / 0.6), _: () => zoom(1 / 0.6),
  0: reset,
  n: () => step(1, active?.run.events), p: () => step(-1, active?.run.events),
  '.': () => step(1), ',': () => step(-1),
  i: () => fold(!folded),
  j: () => nextRun(1), k: () => nextRun(-1),
  t: () => document.body.classList.toggle('graphs-alone'),
  l: () => document.body.classList.toggle('with-legend'),
  '?': () => $('help').showModal(),
  Escape: () => { setCursor(null); for (const panel of panels) panel.setFocus(null); },
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $('help').open) return;
  if (event.target.closest('select, textarea, input:not([type=checkbox])')) return;
  // hasOwn, since the name of a key may be that of a method.
  if (!Object.hasOwn(KEYS, event.key)) return;
  KEYS[event.key]();
  event.preventDefault();
});

for (const button of document.querySelectorAll('[data-key]')) {
  button.addEventListener('click', () => KEYS[button.dataset.key]());
}

// On paper each run has a page, in the colours of the light theme. Folded parts are opened, since nothing can be clicked.
function print(on) {
  printing = on;
  for (const details of document.querySelectorAll('details:not(.scenario)')) {
    if (on) details.dataset.was = details.open ? 'open' : '';
    details.open = on || details.dataset.was === 'open';
  }
  document.documentElement.classList.toggle('printing', on);
  legends();
  redraw();
}
addEventListener('beforeprint', () => print(true));
addEventListener('afterprint', () => print(false));
darkness.addEventListener('change', () => { legends(); schedule(); });
new ResizeObserver(schedule).observe($('panels'));

