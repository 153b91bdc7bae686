// The senders. Each one is typed, with completion, or composed from its answers to the six questions.

import { $, element } from './dom.js';

export class Senders {
  // `ask` sends a request to the core; `changed` is called after each change by the user.
  constructor(about, ask, changed) {
    Object.assign(this, { about, ask, changed, rows: [] });
    $('add-sender').addEventListener('click', () => { this.add('newreno'); this.changed(); });
  }

  get values() { return this.rows.map(({ input }) => input.value.trim()); }

  set values(typed) {
    while (this.rows.length > typed.length) this.rows.pop().node.remove();
    typed.forEach((text, i) => { if (this.rows[i]) this.rows[i].input.value = text; else this.add(text); });
    this.number();
  }

  add(text) {
    const input = element('input', { spellcheck: 'false', role: 'combobox', 'aria-expanded': 'false', 'aria-autocomplete': 'list', 'aria-label': 'Sender: algorithms joined by +, and optionally @ with a profile' });
    input.value = text;
    const list = element('ul', { class: 'completions', role: 'listbox', hidden: '' });
    const remove = element('button', { type: 'button', 'aria-label': 'remove this sender', title: 'remove' }, '×');
    const questions = element('details', { class: 'questions' }, element('summary', {}, 'six questions'));
    const troubles = element('ul', { class: 'troubles', role: 'alert' });
    const row = { input, list, troubles, questions, node: element('div', { class: 'sender-row' }, input, remove, list, troubles, questions), chosen: -1 };
    this.rows.push(row);
    $('senders').append(row.node);
    this.number();
    remove.addEventListener('click', () => {
      if (this.rows.length < 2) return;
      this.rows.splice(this.rows.indexOf(row), 1);
      row.node.remove();
      this.number();
      this.changed();
    });
    input.addEventListener('input', () => { this.complete(row); this.changed(); });
    input.addEventListener('keydown', (event) => this.key(row, event));
    input.addEventListener('blur', () => this.close(row));
    questions.addEventListener('toggle', () => { if (questions.open) this.explain(row); });
  }

  number() {
    this.rows.forEach((row, i) => {
      row.input.id = `sender-${i}`;
      row.list.id = `sender-${i}-list`;
      row.troubles.id = `sender-${i}-troubles`;
      row.input.setAttribute('aria-controls', row.list.id);
      row.input.setAttribute('aria-describedby', row.troubles.id);
    });
  }

  // ----- completion -----

  async complete(row) {
    const word = row.input.value, fits = await this.ask({ ask: 'completions', word });
    if (row.input.value !== word || document.activeElement !== row.input) return;
    const shown = fits.filter(({ value }) => value !== word).slice(0, 12);
    row.chosen = -1;
    row.list.replaceChildren(...shown.map(({ value, summary }, i) => {
      const item = element('li', { role: 'option', id: `${row.list.id}-${i}`, 'data-value': value }, element('b', {}, value), ` ${summary}`);
      // Comes before the field loses the focus, unlike a click.
      item.addEventListener('pointerdown', (event) => { event.preventDefault(); this.take(row, value); });
      return item;
    }));
    row.list.hidden = !shown.length;
    row.input.setAttribute('aria-expanded', String(!row.list.hidden));
  }

  key(row, event) {
    const items = [...row.list.children];
    if (row.list.hidden || !items.length) return;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      row.chosen = (row.chosen + (event.key === 'ArrowDown' ? 1 : items.length)) % items.length;
      if (row.chosen < 0) row.chosen = items.length - 1;
      items.forEach((item, i) => item.setAttribute('aria-selected', String(i === row.chosen)));
      row.input.setAttribute('aria-activedescendant', items[row.chosen].id);
      items[row.chosen].scrollIntoView({ block: 'nearest' });
    } else if ((event.key === 'Enter' || event.key === 'Tab') && row.chosen >= 0) this.take(row, items[row.chosen].dataset.value);
    else if (event.key === 'Escape') this.close(row);
    else return;
    event.preventDefault();
  }

  take(row, value) {
    row.input.value = value;
    this.close(row);
    this.changed();
    if (row.questions.open) this.explain(row);
  }

  close(row) {
    row.list.hidden = true;
    row.chosen = -1;
    row.input.setAttribute('aria-expanded', 'false');
    row.input.removeAttribute('aria-activedescendant');
  }

  // ----- the six questions -----

  // Shows the answers of this sender, each with its summary and source. A click selects another answer.
  async explain(row) {
    let explained = null;
    try { explained = await this.ask({ ask: 'explain', sender: row.input.value }); } catch { /* The error is shown below the field. */ }
    const [summary] = row.questions.children;
    if (!explained) { row.questions.replaceChildren(summary, element('p', { class: 'faint' }, 'Correct the name first.')); return; }
    row.explained = explained;
    const has = new Map(explained.parts.map((part) => [part.name, part]));
    const questions = this.about.questions.map((question) => this.question(row, question, has));
    row.questions.replaceChildren(summary, ...questions, element('p', { class: 'faint' }, `On the wire: ${explained.wire}.`));
  }

  question(row, { name, text, parts }, has) {
    const answers = parts.filter(({ answer }) => answer), beside = parts.filter(({ answer }) => !answer);
    const node = element('div', { class: 'question', 'data-question': name }, element('h4', {}, text));
    if (answers.length) {
      const select = element('select', { 'aria-label': text });
      for (const part of answers) select.append(element('option', { value: part.name, ...(has.has(part.name) ? { selected: '' } : {}) }, part.name));
      const present = answers.find((part) => has.has(part.name));
      node.append(select, element('p', { class: 'faint' }, present ? `${present.summary} (${present.citation})` : ''));
      select.addEventListener('change', () => this.exchange(row, answers, select.value));
    }
    for (const part of beside) {
      const given = has.get(part.name), id = `${row.input.id}-${part.name}`;
      const box = element('input', { type: 'checkbox', id, ...(given ? { checked: '' } : {}) });
      const value = given?.value ?? part.number?.min;
      const number = part.number ? [element('input', { type: 'number', min: part.number.min, max: part.number.max, step: 'any', value, 'aria-label': `${part.name}${part.number.unit && `, ${part.number.unit}`}` })] : [];
      const line = element('div', { class: 'part' }, box, element('label', { for: id }, element('b', {}, part.name), ` ${part.summary} (${part.citation})`), ...number);
      box.addEventListener('change', () => this.toggle(row, part, box.checked, number[0]?.value));
      number[0]?.addEventListener('change', () => { if (box.checked) this.toggle(row, part, true, number[0].value); });
      node.append(line);
    }
    return node;
  }

  // Replaces the answer to one question. The default answer is omitted if other names remain.
  exchange(row, answers, chosen) {
    const others = new Set(answers.map(({ name }) => name));
    const isDefault = answers.find(({ name }) => name === chosen)?.default;
    this.rewrite(row, (words) => [...(isDefault && words.some((word) => !others.has(word)) ? [] : [chosen]), ...words.filter((word) => !others.has(word))]);
  }

  toggle(row, { name, number }, on, value) {
    this.rewrite(row, (words) => [...words.filter((word) => word.split('=')[0] !== name), ...(on ? [number ? `${name}=${value}` : name] : [])]);
  }

  rewrite(row, change) {
    let [recipe, profile] = row.input.value.split('@'), words = recipe.split('+').filter(Boolean);
    // An alias is replaced by its algorithms, and by the profile that it implies.
    if (words.some((word) => this.about.aliases.some(({ name }) => name === word))) {
      const { parts, profile: implied } = row.explained;
      words = parts.filter(({ default: isDefault }) => !isDefault).map(({ name, value }) => (value === null ? name : `${name}=${value}`));
      if (implied.name !== 'default') profile = implied.name;
    }
    const changed = change(words).join('+') || 'newreno';
    row.input.value = profile ? `${changed}@${profile}` : changed;
    this.changed();
    this.explain(row);
  }
}
