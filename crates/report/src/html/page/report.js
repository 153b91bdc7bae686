// The report: its tables, the chart of senders and keys select the runs on display. Selected runs are
// scrolled into view.

import { decodeRun } from './data.js';
import { $, revealIn } from './dom.js';
import { graphs } from './graphs.js';

const decoded = new Map();

function runOf(id) {
  if (!decoded.has(id)) decoded.set(id, decodeRun(JSON.parse($(`run-${id}`).textContent), id));
  return decoded.get(id);
}

// Displays runs from left to right. Keys act on the graphs of `first`.
function show(ids, first = ids[0]) {
  const runs = ids.map(runOf);
  graphs.show(runs, { first: runs[ids.indexOf(first)] });
  for (const tick of document.querySelectorAll('input.tick')) tick.checked = ids.includes(Number(tick.dataset.run));
  for (const node of document.querySelectorAll('[data-runs]')) {
    const of = runsOf(node), all = of.length > 0 && of.every((id) => ids.includes(id));
    node.classList.toggle('shown', all);
    if (node.matches('button')) node.setAttribute('aria-pressed', String(all));
  }
}

// Displays runs at the user's request: also scrolls the graphs and their table row into view.
function choose(ids, first) {
  show(ids, first);
  const { active } = graphs;
  const row = active && document.querySelector(`input.tick[data-run="${active.run.id}"]`)?.closest('tr');
  for (let node = row; node && node !== document.body; node = node.parentElement) revealIn(node.parentElement, row);
  if (active) graphs.reveal(active);
}

function shownIds() { return graphs.panels.map((panel) => panel.run.id); }
function runsOf(node) { return node.dataset.runs.split(' ').filter(Boolean).map(Number); }

// Selects the run below or above the displayed one, in the order of the tables.
function nextRun(direction) {
  const ids = [...document.querySelectorAll('input.tick')].map((tick) => Number(tick.dataset.run));
  const at = graphs.active ? ids.indexOf(graphs.active.run.id) : direction > 0 ? -1 : ids.length;
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

graphs.keys.j = () => nextRun(1);
graphs.keys.k = () => nextRun(-1);
graphs.keys.t = () => document.body.classList.toggle('graphs-alone');

const scripts = [...document.querySelectorAll('script.run')];
// The graphs keep their position while the user moves from run to run.
graphs.roomForStates = scripts.some((script) => script.dataset.states !== undefined);
const opening = $('tables').dataset.opening.split(' ').filter(Boolean).map(Number);
show((opening.length ? opening : scripts.map((_, id) => id)).slice(0, innerWidth < 1100 ? 1 : 2));
