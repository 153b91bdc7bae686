// What is shown, and how people move in it: by mouse, fingers, keys and tables; and how it is printed.

const view = { from: 0, to: 1, end: 1 };
const hidden = new Set(['edge']);
const panels = [];
let cursor = null, active = null, due = false;
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
    const width = Math.min(...panels.map((panel) => panel.measure()));
    const scales = extents(panels.map((panel) => panel.run), view, width);
    for (const panel of panels) {
      panel.draw({ ...view }, scales, hidden);
      panel.setCursor(cursor);
    }
    drawOverview();
  }
  $('range').textContent = `${seconds(view.from, 3)} – ${seconds(view.to, 3)}`;
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

function pan(share) { const by = share * (view.to - view.from); setView(view.from + by, view.to + by); }
function reset() { setView(0, view.end); }

function setCursor(time) {
  cursor = time;
  for (const panel of panels) if (panel.view) panel.setCursor(time);
}

// Chooses the runs that are on the page.
function show(ids) {
  const whole = view.from === 0 && view.to === view.end;
  for (const panel of panels.splice(0)) panel.node.remove();
  for (const id of ids) {
    const panel = new Panel(loadRun(id), id + 1);
    panels.push(panel);
    listen(panel);
    $('panels').append(panel.node);
  }
  active = panels[0] ?? null;
  $('panels').dataset.count = String(panels.length);
  $('nothing').hidden = panels.length > 0;
  view.end = Math.max(1000, ...panels.map((panel) => panel.run.end)) * 1.005;
  if (whole) reset(); else setView(view.from, view.to);
  for (const tick of document.querySelectorAll('input.tick')) tick.checked = ids.includes(Number(tick.dataset.run));
  for (const row of document.querySelectorAll('tr[data-runs]')) {
    const of = row.dataset.runs.split(' ').filter(Boolean).map(Number);
    row.classList.toggle('shown', of.length > 0 && of.every((id) => ids.includes(id)));
  }
  schedule();
}

function shownIds() { return panels.map((panel) => panel.run.id); }

function listen(panel) {
  const { stage } = panel, pointers = new Map();
  let drag = null, pinch = null;
  const x = (event) => event.clientX - stage.getBoundingClientRect().left;
  const y = (event) => event.clientY - stage.getBoundingClientRect().top;
  stage.addEventListener('focus', () => { active = panel; });
  stage.addEventListener('wheel', (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : 1;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX * unit) / panel.width);
    else zoom(Math.exp(Math.max(-300, Math.min(300, event.deltaY * unit)) * (event.ctrlKey ? 0.01 : 0.002)), panel.timeAt(x(event)));
  }, { passive: false });
  stage.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, x(event));
    stage.setPointerCapture(event.pointerId);
    active = panel;
    drag = { x: x(event), from: view.from, to: view.to, selects: event.shiftKey };
    pinch = pointers.size === 2 ? { points: [...pointers.values()].map((x) => panel.timeAt(x)) } : null;
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
      if (drag.selects) select(panel, drag.x, x(event));
      else { const by = ((drag.x - x(event)) / w) * (drag.to - drag.from); setView(drag.from + by, drag.to + by); }
      return;
    }
    setCursor(panel.timeAt(Math.min(Math.max(x(event), left), left + w)));
    for (const other of panels) if (other !== panel) other.setFocus(null);
    panel.setFocus(panel.nearest(x(event), y(event)));
  });
  const up = (event) => {
    if (drag?.selects && pointers.size === 1) {
      const times = [drag.x, x(event)].map((x) => panel.timeAt(x)).sort((a, b) => a - b);
      if (Math.abs(drag.x - x(event)) > 4) setView(...times);
      select(panel, null);
    }
    pointers.delete(event.pointerId);
    if (pointers.size === 0) drag = null;
    pinch = null;
  };
  stage.addEventListener('pointerup', up);
  stage.addEventListener('pointercancel', up);
  stage.addEventListener('pointerleave', () => { if (!drag) { setCursor(null); panel.setFocus(null); } });
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
  const of = JSON.stringify([shownIds(), w, h, ratio, C.paper]);
  if (strip.of !== of) drawStrip(w, h, ratio, C);
  strip.of = of;
  Object.assign(canvas, { width: strip.canvas.width, height: strip.canvas.height });
  const ctx = canvas.getContext('2d'), X = (at) => (at / view.end) * w;
  ctx.drawImage(strip.canvas, 0, 0);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = darkness.matches ? '#00000088' : '#00000026';
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
      const layer = isLost(run.segments.fate[i]) ? 'lost' : LAYER_OF_SENDING[run.segments.sending[i]];
      ctx.fillStyle = C[layer];
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

// Goes to a packet in the panel that was used last: shows its note and moves the view there.
function goTo(panel, i) {
  const at = panel.run.segments.at[i], span = view.to - view.from;
  if (at < view.from + span * 0.05 || at > view.to - span * 0.05) setView(at - span / 2, at + span / 2);
  cursor = at;
  redraw();
  for (const other of panels) other.setFocus(null);
  setCursor(at);
  panel.setFocus({ kind: 'segment', i });
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

// The legend also switches layers off and on.
function legend(node, buttons) {
  for (const [name, shape, label] of LAYERS) {
    if (!buttons && hidden.has(name)) continue;
    const sample = element('canvas', { 'aria-hidden': 'true' });
    const item = buttons ? element('button', { type: 'button', 'aria-pressed': String(!hidden.has(name)) }, sample, label) : element('span', {}, sample, label);
    node.append(item);
    if (buttons) {
      item.addEventListener('click', () => {
        if (!hidden.delete(name)) hidden.add(name);
        item.setAttribute('aria-pressed', String(!hidden.has(name)));
        schedule();
      });
    }
    const C = colours(), ctx = sample.getContext('2d');
    Object.assign(sample, { width: 48, height: 42 });
    ctx.setTransform(3, 0, 0, 3, 0, 0);
    ctx.fillStyle = ctx.strokeStyle = C[name === 'idle' ? 'frame' : name];
    ctx.lineWidth = 1.5;
    glyph(ctx, shape, 8, 7, name === 'unneeded' ? 3.5 : 5);
  }
}

function legends() {
  $('legend').replaceChildren();
  legend($('legend'), true);
  for (const panel of panels) {
    const node = panel.node.querySelector('.print-legend');
    node.replaceChildren();
    if (printing) legend(node, false);
  }
}

for (const table of document.querySelectorAll('table')) {
  table.addEventListener('click', (event) => {
    const heading = event.target.closest('button.sort');
    if (heading) { sort(table, heading.closest('th')); return; }
    const tick = event.target.closest('input.tick'), row = event.target.closest('tr[data-runs]');
    if (tick) {
      const id = Number(tick.dataset.run);
      show(tick.checked ? [...shownIds(), id].sort((a, b) => a - b) : shownIds().filter((other) => other !== id));
    } else if (row?.dataset.runs) show(row.dataset.runs.split(' ').map(Number));
  });
}

function sort(table, heading) {
  const at = [...heading.parentNode.children].indexOf(heading), body = table.tBodies[0];
  const down = heading.getAttribute('aria-sort') === 'ascending';
  for (const other of heading.parentNode.children) other.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const value = (row) => (row.cells[at].dataset.value === undefined ? null : Number(row.cells[at].dataset.value));
  const order = (a, b) => {
    const [x, y] = [value(a), value(b)];
    // Rows without a number come last in either order.
    if ((x === null) !== (y === null)) return x === null ? 1 : -1;
    const result = x === null ? a.cells[at].textContent.localeCompare(b.cells[at].textContent) : x - y;
    return down ? -result : result;
  };
  body.append(...[...body.rows].sort(order));
}

// On paper each run has a page, in the colours of the light theme. Folded parts are opened, since nothing can be clicked.
function print(on) {
  printing = on;
  for (const details of document.querySelectorAll('details.facts')) {
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

listenToOverview();
legends();
const all = [...document.querySelectorAll('script.run')].map((_, id) => id);
show(all.slice(0, innerWidth < 1100 ? 1 : 2));
