// The guided tour: eight scenes, each with a setup, a few sentences, a question, and the relevant settings.

import { EMPTY } from './address.js';
import { $, element } from './dom.js';
import { knobNode } from './knobs.js';
import { SCENES } from './scenes.js';

export function stateOf(number) {
  const { setup, view } = SCENES[number];
  return { ...structuredClone(EMPTY), ...structuredClone(setup), scene: number, view: view ? view.map((seconds) => seconds * 1e6) : null };
}

export class Tour {
  // `go` is called with the state of the scene that the user selects, `turn` with the change of a knob.
  constructor(go, turn) {
    Object.assign(this, { go, turn });
    SCENES.forEach(({ name }, i) => {
      const button = element('button', { type: 'button', 'data-scene': i + 1, 'aria-pressed': 'false', title: name }, String(i + 1));
      button.addEventListener('click', () => go(stateOf(i)));
      $('tour').append(button);
    });
    const free = element('button', { type: 'button', 'data-scene': '0', 'aria-pressed': 'false', title: 'leave the tour' }, 'free');
    free.addEventListener('click', () => go(null));
    $('tour').append(free);
  }

  show(state) {
    for (const button of $('tour').querySelectorAll('button')) button.setAttribute('aria-pressed', String(Number(button.dataset.scene) === (state.scene ?? -1) + 1));
    const scene = SCENES[state.scene];
    $('scene').hidden = !scene;
    if (!scene) return;
    const answer = element('details', {}, element('summary', {}, 'Answer'), element('p', {}, scene.answer));
    const next = element('button', { type: 'button' }, state.scene + 1 < SCENES.length ? 'next scene' : 'end of the tour: try your own');
    next.addEventListener('click', () => this.go(state.scene + 1 < SCENES.length ? stateOf(state.scene + 1) : null));
    // The element that the user operates keeps the focus.
    const controls = () => [...$('scene').querySelectorAll('button, input, summary')], focused = controls().indexOf(document.activeElement);
    $('scene').replaceChildren(element('h2', {}, `${state.scene + 1}. ${scene.name}`), ...scene.text.map((text) => element('p', {}, text)),
      ...scene.knobs.map((knob) => knobNode(knob, state, this.turn)), element('p', {}, element('b', {}, 'Question: '), scene.question), answer, next);
    if (focused >= 0) controls()[focused]?.focus();
  }
}
