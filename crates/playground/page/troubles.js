// Shows errors next to the fields that cause them. Text from the core is inserted as text, not as HTML.

import { $, element } from './dom.js';

const FIELDS = { scenario: 'text', set: 'set', seed: 'seed', bytes: 'bytes', time: 'time', direction: 'direction', receiver: 'receiver', buffer: 'buffer', run: 'run' };

export function showTroubles(troubles) {
  for (const list of document.querySelectorAll('.troubles')) list.replaceChildren();
  for (const field of document.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid');
  for (const trouble of troubles) {
    const { field, index, message, help, line, column } = trouble;
    const name = field === 'senders' ? `sender-${index}` : FIELDS[field] ?? 'run';
    const place = line ? `${line}:${column}: ` : field === 'set' && troubles.some((other) => other.field === 'set' && other.index !== index) ? `line ${index + 1}: ` : '';
    const item = element('li', {}, element('b', {}, place), message, ...(help ? [element('span', { class: 'help' }, help)] : []));
    const list = $(`${name}-troubles`) ?? $('run-troubles');
    list.append(item);
    const input = $(name);
    input?.setAttribute('aria-invalid', 'true');
    if (line) item.addEventListener('click', () => goTo(input, line, column));
  }
  if (troubles.some(({ field }) => field === 'scenario' || field === 'set')) $('edit').open = true;
}

// Moves the cursor to the error.
function goTo(area, line, column) {
  const lines = area.value.split('\n');
  const at = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + column - 1;
  area.focus();
  area.setSelectionRange(at, at + 1);
}
