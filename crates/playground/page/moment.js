// The state of the active graphs' sender at one moment. The slider, the keys [ and ], and the cursor in the
// graphs select the moment. The core, which has all decisions, returns the state.

import { Refused } from './core.js';
import { lowerBound } from './data.js';
import { $, element, revealIn } from './dom.js';
import { graphs } from './graphs.js';
import { seconds, segmentAt } from './words.js';

export class Moment {
  // `ask` sends a request to the core that keeps the runs.
  constructor(ask) {
    Object.assign(this, { ask, at: null, asking: false, again: false });
    $('slider').addEventListener('input', () => graphs.setCursor(Number($('slider').value)));
    $('before').addEventListener('click', () => this.step(-1));
    $('after').addEventListener('click', () => this.step(1));
    graphs.keys['['] = () => this.step(-1);
    graphs.keys[']'] = () => this.step(1);
    graphs.on('cursor', (micros) => { if (micros !== null) this.show(micros); });
    graphs.on('active', () => this.show(this.at ?? 0));
    // The graphs fill the rest of the window.
    new ResizeObserver(() => document.body.style.setProperty('--moment', `${$('moment').offsetHeight}px`)).observe($('moment'));
  }

  get run() { return graphs.active?.run ?? graphs.panels[0]?.run; }

  // Called when other runs are on display.
  reset(at) {
    $('slider').max = String(Math.ceil(graphs.view.end));
    if (at !== null) graphs.setCursor(at);
    this.show(at ?? graphs.view.from);
  }

  // Moves to the next or previous decision of this sender that the graphs show, and scrolls the view there.
  step(direction) {
    const { run } = this;
    if (!run) return;
    const { at } = run.decisions, here = this.at ?? 0;
    let i = direction > 0 ? lowerBound(at, here + 0.5) : lowerBound(at, here - 0.5) - 1;
    if (direction < 0 && at[i] >= here) i--;
    if (i < 0 || i >= at.length) return;
    graphs.moveTo(at[i]);
  }

  async show(micros) {
    this.at = micros;
    $('slider').value = String(micros);
    $('moment-time').textContent = seconds(micros);
    // The pointer moves on while the core answers. Only its latest position matters.
    if (this.asking) { this.again = true; return; }
    const { run } = this;
    if (!run) return;
    this.asking = true;
    try {
      const moment = await this.ask({ ask: 'moment', slot: run.slot, flow: run.flow, micros: Math.floor(micros) });
      this.write(run, moment);
    } catch (error) {
      // The core that kept this run was stopped or has failed.
      if (error instanceof Refused) this.writeError(error.message);
    }
    this.asking = false;
    if (this.again) { this.again = false; this.show(this.at); }
  }

  writeError(message) {
    $('moment-state').textContent = message;
    $('answers').replaceChildren();
  }

  write(run, { state, window, answers }) {
    const parts = [element('b', {}, run.name), ': '];
    if (state) parts.push(element('b', { class: 'state' }, state.name), ` since ${seconds(state.since)}: ${state.meaning}. `);
    else parts.push('no decision yet. ');
    if (window) parts.push(`cwnd ${window.cwnd.toFixed(1)} segments, ssthresh ${window.ssthresh === null ? '∞' : window.ssthresh.toFixed(1)}.`);
    $('moment-state').replaceChildren(...parts);
    $('answers').replaceChildren(...answers.map(({ question, parts, last, latest }) => {
      const by = parts.map(({ name, value, summary, citation }) => element('span', { title: `${summary} (${citation})` }, value === null ? name : `${name}=${value}`));
      // The only algorithm of a question is in the column before.
      const author = parts.length === 1 && parts[0].name === last?.by ? '' : `, ${last?.by}`;
      const segment = last?.offset ? `, segment ${segmentAt(last.offset, run.mss)}` : '';
      const said = last ? [`${seconds(last.at)}${author}: ${last.text}${segment} (${last.why})`] : ['–'];
      return element('tr', latest ? { class: 'current' } : {}, element('th', { scope: 'row' }, question), element('td', {}, ...by.flatMap((node, i) => (i ? [', ', node] : [node]))), element('td', {}, ...said));
    }));
    const current = $('answers').querySelector('.current');
    if (current) revealIn($('moment-table'), current);
  }
}
