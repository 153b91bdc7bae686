// Many runs with other seeds: the mean and its interval for each sender, and the difference from the first
// sender.

import { $, element } from './dom.js';
import { Core, Stopped } from './core.js';
import { duration } from './words.js';

const MOST = 100000;

export class Seeds {
  // `setup` returns the current setup; `failed` is called with an error.
  constructor(setup, failed) {
    Object.assign(this, { setup, failed, cores: [], running: false });
    $('many').addEventListener('click', () => this.run());
    $('many-stop').addEventListener('click', () => this.stop());
  }

  stop() {
    this.running = false;
    for (const core of this.cores) core.stop();
  }

  async run() {
    if (this.running) return;
    const count = Math.round(Number($('seeds').value));
    if (!(count >= 1 && count <= MOST)) { $('many-said').textContent = `enter a number of runs from 1 to ${MOST}`; return; }
    const setup = this.setup(), names = setup.senders;
    const goodputs = names.map(() => Array(count));
    const cores = Math.max(1, Math.min(4, (navigator.hardwareConcurrency ?? 2) - 1));
    while (this.cores.length < cores) this.cores.push(new Core());
    this.running = true;
    [$('many').disabled, $('many-stop').disabled] = [true, false];
    $('many-chart').replaceChildren();
    $('many-sentences').replaceChildren();
    const all = count * names.length, begin = performance.now();
    let next = 0, done = 0, shown = 0;
    const worker = async (core) => {
      while (this.running && next < all) {
        const run = next++, k = Math.floor(run / names.length), sender = run % names.length;
        goodputs[sender][k] = await core.ask({ ask: 'goodput', setup, sender, ahead: k });
        done++;
        const left = (performance.now() - begin) / done * (all - done);
        $('many-done').value = done / all;
        $('many-said').textContent = `${done} of ${all} runs${done < all ? `, about ${duration(left * 1e3)} left` : ''}`;
        if (performance.now() - shown > 500 && done < all) { shown = performance.now(); await this.show(core, names, goodputs); }
      }
    };
    let error = null;
    try {
      await Promise.all(this.cores.slice(0, cores).map(worker));
    } catch (thrown) {
      error = thrown;
      this.stop();
    }
    if (done < all) $('many-said').textContent = `stopped after ${done} of ${all} runs`;
    try {
      if (done) await this.show(this.cores[0], names, goodputs);
    } catch (thrown) {
      error ??= thrown;
    }
    this.running = false;
    [$('many').disabled, $('many-stop').disabled] = [false, true];
    if (error && !(error instanceof Stopped)) this.failed(error);
  }

  // Shows the results so far, from the rounds in which all runs are done.
  async show(core, names, goodputs) {
    const known = goodputs[0].map((_, k) => k).filter((k) => goodputs.every((of) => of[k] !== undefined));
    if (!known.length) return;
    const { chart, senders } = await core.ask({ ask: 'compare', names, goodputs: goodputs.map((of) => known.map((k) => of[k])) });
    // The report has the same chart. The core writes the chart and escapes every name.
    $('many-chart').innerHTML = chart;
    $('many-sentences').replaceChildren(...senders.filter(({ against }) => against).map(({ against }) => element('li', {}, against.sentence)));
  }
}
