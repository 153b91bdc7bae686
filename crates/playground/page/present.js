// The presentation: one step of a scene after another, in full screen and with large text.

import { $ } from './dom.js';
import { graphs } from './graphs.js';
import { knobNode } from './knobs.js';
import { SCENES } from './scenes.js';
import { ABSENT, slidesOf, stateOf } from './tour.js';

export class Presentation {
  // `tour` changes the step and the scene, `decision` moves to the next or previous decision, and `play` plays
  // or pauses.
  constructor(tour, { decision, play }) {
    Object.assign(this, { tour, on: false, state: null });
    const [next, back, leave] = [() => this.move(1), () => this.move(-1), () => this.leave()];
    // Remote controls of presentations send PageDown and PageUp.
    this.keys = {
      ArrowRight: next, PageDown: next, ArrowLeft: back, PageUp: back, Home: () => tour.select(0),
      ArrowDown: () => decision(1), ArrowUp: () => decision(-1), ' ': play, Escape: leave, f: leave,
    };
    $('slide-next').addEventListener('click', next);
    $('slide-back').addEventListener('click', back);
    $('slide-leave').addEventListener('click', leave);
    graphs.keys.f = () => this.enter();
    document.addEventListener('keydown', (event) => this.key(event), true);
    document.addEventListener('fullscreenchange', () => { if (!document.fullscreenElement) this.leave(); });
  }

  // Handles a key before the graphs do.
  key(event) {
    if (!this.on || event.ctrlKey || event.metaKey || event.altKey || $('help').open) return;
    if (event.key !== 'Escape' && event.target.closest?.('input, select, textarea')) return;
    if (!Object.hasOwn(this.keys, event.key)) return;
    this.keys[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }

  enter() {
    if (this.state.scene === null) return;
    this.turn(true);
    // Some browsers refuse. The presentation then fills the window.
    document.documentElement.requestFullscreen?.()?.catch(() => {});
    this.tour.select(this.state.step ?? 0);
  }

  leave() {
    if (!this.on) return;
    this.turn(false);
    if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
  }

  turn(on) {
    this.on = on;
    document.body.classList.toggle('presenting', on);
    $('slide').hidden = !on;
    graphs.schedule();
  }

  // Moves to the next or previous slide, if necessary of another scene.
  move(direction) {
    const { scene, step } = this.state, next = (step ?? 0) + direction;
    if (next >= 0 && next < slidesOf(SCENES[scene]).length) this.tour.select(next);
    else if (SCENES[scene + direction]) this.tour.go(stateOf(scene + direction, direction > 0 ? 0 : slidesOf(SCENES[scene - 1]).length - 1));
  }

  // Shows the current step of a state. `happens` is as in `Tour.show`.
  show(state, happens) {
    this.state = state;
    const scene = SCENES[state.scene];
    if (!scene) { this.leave(); return; }
    const slides = slidesOf(scene), step = Math.min(state.step ?? 0, slides.length - 1), { title, text } = slides[step];
    $('slide-place').textContent = `${state.scene + 1}. ${scene.name} · ${title ?? 'Step'} ${title ? '' : `${step + 1} of ${scene.steps.length}`}`.trim();
    $('slide-text').textContent = happens ? text : `${text} ${ABSENT}`;
    $('slide-knobs').replaceChildren(...(title ? scene.knobs.map((knob) => knobNode(knob, state, this.tour.turn)) : []));
  }
}
