// Which runs are shown: tables, the chart of senders and keys choose them. What is chosen comes into view.

// Chooses the runs that are on the page, from left to right. Keys move in the graphs of `first`.
function show(ids, first = ids[0]) {
  // What is under the cursor, and the part of the time that is shown, says nothing about other runs.
  const before = shownIds(), whole = (view.from === 0 && view.to === view.end) || !ids.some((id) => before.includes(id));
  const focused = panels.some((panel) => panel.stage === document.activeElement);
  setCursor(null);
  for (const panel of panels.splice(0)) panel.node.remove();
  for (const id of ids) {
    const panel = new Panel(loadRun(id), id + 1);
    panels.push(panel);
    listen(panel);
    $('panels').append(panel.node);
  }
  activate(panels.find((panel) => panel.run.id === first) ?? null);
  if (focused) active?.stage.focus({ preventScroll: true });
  $('panels').dataset.count = String(panels.length);
  $('nothing').hidden = panels.length > 0;
  view.end = Math.max(1000, ...panels.map((panel) => panel.run.end)) * 1.005;
  if (whole) reset(); else setView(view.from, view.to);
  for (const tick of document.querySelectorAll('input.tick')) tick.checked = ids.includes(Number(tick.dataset.run));
  for (const node of document.querySelectorAll('[data-runs]')) {
    const of = runsOf(node), all = of.length > 0 && of.every((id) => ids.includes(id));
    node.classList.toggle('shown', all);
    if (node.matches('button')) node.setAttribute('aria-pressed', String(all));
  }
  legends();
  redraw();
}

// The same, because somebody asked for it: these graphs and their row come into view.
function choose(ids, first) {
  show(ids, first);
  const row = active && document.querySelector(`input.tick[data-run="${active.run.id}"]`)?.closest('tr');
  for (let node = row; node && node !== document.body; node = node.parentElement) revealIn(node.parentElement, row);
  if (active) reveal(active);
}

function shownIds() { return panels.map((panel) => panel.run.id); }
function runsOf(node) { return node.dataset.runs.split(' ').filter(Boolean).map(Number); }

// The panel that the keys move in.
function activate(panel) {
  active = panel;
  for (const other of panels) other.node.classList.toggle('active', other === panel);
}

// Scrolls so far that all of a panel is to be seen under the bar.
function reveal(panel) {
  const top = panel.node.getBoundingClientRect().top, { bottom } = panel.stage.getBoundingClientRect(), bar = $('bar').offsetHeight;
  if (top < bar || bottom > innerHeight) scrollBy({ top: top - bar - 4 });
}

// Scrolls one element alone, so that a row in it is to be seen below its heading.
function revealIn(scrolling, row) {
  if (scrolling.scrollHeight <= scrolling.clientHeight || getComputedStyle(scrolling).overflowY === 'visible') return;
  const heading = scrolling.querySelector(':scope > table > thead')?.offsetHeight ?? 0;
  const outer = scrolling.getBoundingClientRect(), inner = row.getBoundingClientRect();
  const over = inner.top - (outer.top + heading), under = inner.bottom - outer.bottom;
  if (over < 0) scrolling.scrollTop += over;
  else if (under > 0) scrolling.scrollTop += Math.min(under + scrolling.clientHeight / 3, over);
}

// The run below or above the one that is shown, in the order of the tables.
function nextRun(direction) {
  const ids = [...document.querySelectorAll('input.tick')].map((tick) => Number(tick.dataset.run));
  const at = active ? ids.indexOf(active.run.id) : direction > 0 ? -1 : ids.length;
  const next = ids[at + direction];
  if (next !== undefined) choose([next]);
}

for (const table of document.querySelectorAll('table')) {
  table.addEventListener('click', (event) => {
    const heading = event.target.closest('button.sort');
    if (heading) { sort(table, heading.closest('th')); return; }
    const tick = event.target.closest('input.tick'), row = event.target.closest('tr[data-runs]');
    if (tick) {
      const id = Number(tick.dataset.run);
      if (tick.checked) choose([...shownIds(), id].sort((a, b) => a - b), id);
      else show(shownIds().filter((other) => other !== id));
    } else if (row?.dataset.runs) choose(runsOf(row));
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

for (const sender of document.querySelectorAll('button.sender')) {
  sender.addEventListener('click', () => choose(runsOf(sender)));
}

// The legend has what occurs in the runs on the page, says how often, and switches it off and on.
function legend(node, buttons) {
  const C = colours(), total = (name) => panels.reduce((sum, { run }) => sum + (run.counts[name] ?? 0), 0);
  const always = ['new', 'ack', 'window', ...(panels.some(({ run }) => run.decided) ? ['decision'] : [])];
  for (const { name, sign: shape, words } of LAYERS) {
    const count = total(name);
    if ((!count && !always.includes(name)) || (!buttons && hidden.has(name))) continue;
    const sample = element('canvas', { 'aria-hidden': 'true' });
    const item = buttons ? element('button', { type: 'button', 'aria-pressed': String(!hidden.has(name)), title: `${count} in the runs below, SYN and FIN included` }, sample, words) : element('span', {}, sample, words);
    if (COUNTED.includes(name)) item.dataset.count = String(count);
    node.append(item);
    if (buttons) {
      item.addEventListener('click', () => {
        if (!hidden.delete(name)) hidden.add(name);
        item.setAttribute('aria-pressed', String(!hidden.has(name)));
        schedule();
      });
    }
    const ctx = sample.getContext('2d');
    Object.assign(sample, { width: 48, height: 42 });
    ctx.setTransform(3, 0, 0, 3, 0, 0);
    ctx.lineWidth = 1.5;
    sign(ctx, name, 8, 7, shape === 'ring' || shape.startsWith('cross-in') ? 3.7 : 5, C);
  }
}
// Of ACKs, SACK blocks and the like nobody asks how many there are.
const COUNTED = ['new', 'fast', 'timeout', 'tail', 'probe', 'unexplained', 'lost-radio', 'lost-congestion', 'lost-between', 'spurious', 'duplicate-ack'];

function legends() {
  $('legend').replaceChildren();
  legend($('legend'), true);
  for (const panel of panels) {
    const node = panel.node.querySelector('.print-legend');
    node.replaceChildren();
    if (printing) legend(node, false);
  }
}

new ResizeObserver(() => document.body.style.setProperty('--bar', `${$('bar').offsetHeight}px`)).observe($('bar'));
listenToOverview();
const all = [...document.querySelectorAll('script.run')].map((_, id) => id);
show(all.slice(0, innerWidth < 1100 ? 1 : 2));
