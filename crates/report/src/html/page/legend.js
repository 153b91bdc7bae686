// The legend lists the kinds of items in the displayed runs with their counts, and shows or hides them. In
// print each run has its own legend.

import { $, element } from './dom.js';
import { LAYERS, colours, sign } from './marks.js';

// The kinds whose count is shown. Counts of ACKs, SACK blocks and others are not useful.
const COUNTED = ['new', 'fast', 'timeout', 'tail', 'probe', 'unexplained', 'lost-radio', 'lost-congestion', 'lost-between', 'spurious', 'duplicate-ack'];

function legend(graphs, node, buttons) {
  const { panels, hidden, printing } = graphs;
  const C = colours(printing), total = (name) => panels.reduce((sum, { run }) => sum + (run.counts[name] ?? 0), 0);
  const always = ['new', 'ack', 'window', ...(panels.some(({ run }) => run.decided) ? ['decision'] : [])];
  for (const { name, sign: shape, words } of LAYERS) {
    const count = total(name);
    if ((!count && !always.includes(name)) || (!buttons && hidden.has(name))) continue;
    const sample = element('canvas', { 'aria-hidden': 'true' });
    const item = buttons ? element('button', { type: 'button', 'aria-pressed': String(!hidden.has(name)), title: `${count} in the displayed runs, including SYN and FIN` }, sample, words) : element('span', {}, sample, words);
    if (COUNTED.includes(name)) item.dataset.count = String(count);
    node.append(item);
    if (buttons) {
      item.addEventListener('click', () => {
        if (!hidden.delete(name)) hidden.add(name);
        item.setAttribute('aria-pressed', String(!hidden.has(name)));
        graphs.schedule();
      });
    }
    const ctx = sample.getContext('2d');
    Object.assign(sample, { width: 48, height: 42 });
    ctx.setTransform(3, 0, 0, 3, 0, 0);
    ctx.lineWidth = 1.5;
    sign(ctx, name, 8, 7, shape === 'ring' || shape.startsWith('cross-in') ? 3.7 : 5, C);
  }
}

export function legends(graphs) {
  $('legend').replaceChildren();
  legend(graphs, $('legend'), true);
  for (const panel of graphs.panels) {
    const node = panel.node.querySelector('.print-legend');
    node.replaceChildren();
    if (graphs.printing) legend(graphs, node, false);
  }
}
