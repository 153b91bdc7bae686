// The settings that a scene exposes: choices in plain words, and a number with its unit and range. The values
// behind them are TOML, as in the advanced fields.

import { element } from './dom.js';

// Returns the elements of a knob for this state. `turn` is called with the change of the state.
export function knobNode(knob, state, turn) {
  const { label, given, choices, number } = knob, value = valueOf(knob, state);
  const chosen = value === undefined ? given : choices.findIndex((choice) => choice.value === value);
  const buttons = choices.map((choice, i) => {
    const button = element('button', { type: 'button', 'aria-pressed': String(i === chosen) }, choice.label);
    button.addEventListener('click', () => turn(changeTo(knob, state, choice.value)));
    return button;
  });
  const present = value ?? choices[given].value;
  const more = number ? [numberNode(knob, present, (typed) => turn(changeTo(knob, state, typed)))] : [];
  // A value from the advanced fields that no choice has.
  const other = chosen < 0 && (!number || read(number, present) === null) ? [element('code', {}, present)] : [];
  return element('div', { class: 'knob', role: 'group', 'aria-label': label }, element('span', {}, `${label}: `), ...buttons, ...more, ...other);
}

function numberNode({ label, number }, present, typed) {
  const { min, max, step, unit } = number;
  const input = element('input', { type: 'number', min, max, step, value: read(number, present) ?? '', 'aria-label': `${label}${unit && `, ${unit}`}, ${min} to ${max}` });
  input.addEventListener('change', () => { if (input.value !== '' && input.reportValidity()) typed(write(number, input.valueAsNumber)); });
  return element('span', { class: 'number' }, 'or ', input, ` ${unit} (${min}–${max})`);
}

// The value of the setting or field in this state; `undefined` if the scenario's own value applies.
function valueOf({ set, field }, state) {
  return set ? state.set.findLast((typed) => typed.startsWith(`${set}=`))?.slice(set.length + 1) : state[field];
}

function changeTo({ set, field }, state, value) {
  return set ? { set: [...state.set.filter((typed) => !typed.startsWith(`${set}=`)), `${set}=${value}`] } : { [field]: value };
}

function write({ value, times = 1 }, number) { return value.replace('{}', String(number * times)); }

// Reads a value back as a number in the knob's unit. Returns `null` if it has another form.
function read({ value: format, times = 1 }, value) {
  const [before, after] = format.split('{}');
  if (!value.startsWith(before) || !value.endsWith(after)) return null;
  const text = value.slice(before.length, value.length - after.length);
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) / times : null;
}
