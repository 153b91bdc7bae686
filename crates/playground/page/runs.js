// Runs the senders of a setup one after another, and shows the results so far after each.

import { decodeRun } from './data.js';
import { $ } from './dom.js';
import { graphs } from './graphs.js';
import { decodePackets } from './packets.js';
import { pduGraph } from './pdus.js';
import { showResults } from './results.js';

export class Runs {
  // `core` executes and keeps the runs.
  constructor(core) {
    Object.assign(this, { core, current: null });
    $('stop').addEventListener('click', () => this.stop());
  }

  // Stops the present run, whose promise is then rejected. The core loses all runs.
  stop() { if (this.current) this.core.stop(); }

  // Runs a setup instead of the present one. The graphs show the time range `view`, or everything.
  async run(setup, view) {
    this.stop();
    const mine = {}, shown = [], begin = performance.now();
    const groups = setup.shared ? [setup.senders.map((_, i) => i)] : setup.senders.map((_, i) => [i]);
    this.busy(mine);
    try {
      for (const [slot, group] of groups.entries()) {
        const place = groups.length > 1 ? ` (${slot + 1} of ${groups.length})` : '';
        $('said').textContent = `running ${group.map((i) => setup.senders[i]).join(', ')}${place}`;
        const progress = ({ share, seconds }) => {
          $('done').value = (slot + share) / groups.length;
          $('reached').textContent = `${seconds.toFixed(1)} s of virtual time, ${Math.floor(100 * share)} %`;
        };
        const answer = await this.core.ask({ ask: 'run', slot, setup, senders: group }, { progress });
        shown.push({ slot, answer });
        $('done').value = (slot + 1) / groups.length;
        this.show(shown, setup, view);
      }
      $('said').textContent = `done in ${((performance.now() - begin) / 1000).toFixed(2)} s`;
    } finally {
      if (this.current === mine) this.busy(null);
    }
  }

  busy(current) {
    this.current = current;
    $('reached').textContent = '';
    $('stop').disabled = current === null;
    document.body.classList.toggle('busy', current !== null);
  }

  show(shown, setup, view) {
    const of = ({ slot, answer }) => answer.flows.map(({ run: json, lost, packets }, flow) => {
      const extra = pduGraph(answer.below, setup.direction || 'down', json.origin / 1e3);
      return { json, slot, flow, lost, packets, decided: true, extra };
    });
    const runs = shown.flatMap(of).map(({ json, packets, ...more }, id) => {
      const run = Object.assign(decodeRun(json, id), more);
      // Scenes and decisions count segments. All segments except the last have the full size.
      run.mss = run.segments.length.reduce((most, length) => Math.max(most, length), 1);
      run.packets = decodePackets(run, packets);
      return run;
    });
    graphs.show(runs, { keep: true });
    if (!performance.getEntriesByName('first picture').length) requestAnimationFrame(() => performance.mark('first picture'));
    if (view) graphs.setView(...view); else graphs.reset();
    showResults(shown, runs, (request) => this.core.ask(request, { file: true }));
  }
}
