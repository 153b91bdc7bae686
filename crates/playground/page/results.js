// The results of each run, with a row of numbers, its files, and its lost packets.

import { $, element } from './dom.js';
import { graphs } from './graphs.js';
import { segmentAt, seconds, si } from './words.js';

const COLUMNS = ['sender', 'goodput', 'duration', 'segments', 'retransmissions', 'timeouts', 'lost: radio', 'lost: queue', 'files', 'decisions'];

// `shown` are the answers of the core, each with the slot that stores the run; `runs` are the displayed runs;
// `ask` sends a request to this core.
export function showResults(shown, runs, ask) {
  const head = element('thead', {}, element('tr', {}, ...COLUMNS.map((name) => element('th', { scope: 'col' }, name))));
  const body = element('tbody');
  for (const { slot, answer } of shown) {
    answer.report.flows.forEach((flow, i) => {
      const { counters } = flow, lost = answer.flows[i].lost, of = (cause) => String(lost.filter((it) => it.cause === cause).length);
      const again = counters.resent_fast + counters.resent_recovery + counters.resent_timeout + counters.resent_probe;
      const files = i === 0 ? [file('pcap', `run-${slot + 1}.pcap`, () => ask({ ask: 'capture', slot })), ' ', file('log', `run-${slot + 1}.jsonl`, () => ask({ ask: 'decisions', slot }))] : [];
      const digest = element('code', { title: `SHA-256 of the log: ${answer.digest}`, 'data-digest': answer.digest }, answer.digest.slice(0, 10));
      body.append(element('tr', {},
        element('th', { scope: 'row' }, flow.recipe + (flow.profile === 'default' ? '' : `@${flow.profile}`)),
        ...[si(flow.goodput_bit_per_s, 'bit/s'), flow.took_seconds === null ? flow.ended ?? '–' : `${flow.took_seconds.toFixed(3)} s`, String(flow.data_segments), String(again), String(counters.timeouts), of('radio'), of('congestion')].map((text) => element('td', { class: 'number' }, text)),
        element('td', {}, ...files), element('td', {}, digest)));
      for (const notice of flow.notices ?? []) body.append(element('tr', {}, element('td', { class: 'notice', colspan: String(COLUMNS.length) }, notice)));
    });
  }
  $('results').replaceChildren(head, body);
  showLosses(runs);
}

function file(label, name, ask) {
  const button = element('button', { type: 'button', title: `save ${name}` }, label);
  button.addEventListener('click', async () => {
    let octets = null;
    try { octets = await ask(); } catch (error) { $('copied').textContent = error.message; return; }
    const link = element('a', { download: name, href: URL.createObjectURL(new Blob([octets])) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  return button;
}

const MOST = 500; // rows

function showLosses(runs) {
  const rows = runs.flatMap(({ name, mss, lost }) => lost.map((one) => ({ sender: name, segment: segmentAt(one.offset, mss), ...one })));
  rows.sort((a, b) => a.at - b.at);
  const head = element('tr', {}, ...['time', 'sender', 'segment', 'copy', 'stage', 'cause'].map((name) => element('th', { scope: 'col' }, name)));
  const body = rows.slice(0, MOST).map(({ at, sender, segment, offset, length, copy, stage, why }) => {
    const time = element('button', { type: 'button', class: 'show' }, seconds(at));
    time.addEventListener('click', () => {
      const span = Math.min(graphs.view.to - graphs.view.from, 2e6);
      graphs.setView(at - span / 2, at + span / 2);
      graphs.setCursor(at);
    });
    const cells = [sender, `${segment}`, copy === 1 ? 'original' : `retransmission ${copy - 1}`, stage, why].map((text) => element('td', {}, text));
    return element('tr', { title: `bytes ${offset}–${offset + length}` }, element('td', {}, time), ...cells);
  });
  const more = rows.length > MOST ? [element('tr', {}, element('td', { colspan: '6' }, `and ${rows.length - MOST} more`))] : [];
  $('lost').replaceChildren(element('thead', {}, head), element('tbody', {}, ...body, ...more));
  $('losses').querySelector('summary').textContent = `Lost packets (${rows.length})`;
}
