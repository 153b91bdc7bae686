// The guided tour: ten scenes, each with a setup, a few steps, a question with its answer, and the relevant
// settings.

import { EMPTY } from './address.js';
import { $, element } from './dom.js';
import { knobNode } from './knobs.js';
import { SCENES } from './scenes.js';

export function stateOf(number, step = null) {
  const { setup, view } = SCENES[number];
  return { ...structuredClone(EMPTY), ...structuredClone(setup), scene: number, step, view: view ? view.map((seconds) => seconds * 1e6) : null };
}

// Everything that a presentation of the scene shows, one after another.
export function slidesOf({ steps, question, answer }) {
  return [...steps, { title: 'Question', text: question }, { title: 'Answer', text: answer }];
}

export class Tour {
  // `go` is called with the state of the scene that the user selects, `turn` with the change of a knob, and
  // `select` with the number of a step.
  constructor({ go, turn, select }) {
    Object.assign(this, { go, turn, select });
    SCENES.forEach(({ name }, i) => {
      const button = element('button', { type: 'button', 'data-scene': i + 1, 'aria-pressed': 'false', title: name }, String(i + 1));
      button.addEventListener('click', () => go(stateOf(i)));
      $('present').before(button);
    });
    const free = element('button', { type: 'button', 'data-scene': '0', 'aria-pressed': 'false', title: 'leave the tour' }, 'free');
    free.addEventListener('click', () => go(null));
    $('present').before(free);
  }

  // Shows the scene of a state. If `happens` is false, the run has no event for the current step.
  show(state, happens) {
    for (const button of $('tour').querySelectorAll('[data-scene]')) button.setAttribute('aria-pressed', String(Number(button.dataset.scene) === (state.scene ?? -1) + 1));
    const scene = SCENES[state.scene];
    $('scene').hidden = !scene;
    $('present').disabled = !scene;
    if (!scene) return;
    const steps = scene.steps.map(({ text }, i) => this.step(text, i, state.step, happens));
    const answer = element('details', state.step === scene.steps.length + 1 ? { open: '' } : {}, element('summary', {}, 'Answer'), element('p', {}, scene.answer));
    const next = element('button', { type: 'button' }, state.scene + 1 < SCENES.length ? 'next scene' : 'end of the tour: try your own');
    next.addEventListener('click', () => this.go(state.scene + 1 < SCENES.length ? stateOf(state.scene + 1) : null));
    // The element that the user operates keeps the focus.
    const controls = () => [...$('scene').querySelectorAll('button, input, summary')], focused = controls().indexOf(document.activeElement);
    $('scene').replaceChildren(element('h2', {}, `${state.scene + 1}. ${scene.name}`), element('ol', { class: 'steps' }, ...steps),
      ...scene.knobs.map((knob) => knobNode(knob, state, this.turn)), element('p', {}, element('b', {}, 'Question: '), scene.question), answer, next);
    if (focused >= 0) controls()[focused]?.focus();
  }

  step(text, i, current, happens) {
    const isCurrent = i === current, more = isCurrent && !happens ? [` ${ABSENT}`] : [];
    const button = element('button', { type: 'button', ...(isCurrent ? { 'aria-current': 'step' } : {}) }, text, ...more);
    button.addEventListener('click', () => this.select(i));
    return element('li', {}, button);
  }
}

export const ABSENT = '(This run has no such event.)';
