// Keeps the form, the address and the runs consistent. After each change by the user, the core checks the
// setup, and a valid setup is run.

import { fromAddress, setupOf, toAddress } from './address.js';
import { Core, Refused, Stopped } from './core.js';
import { $, element } from './dom.js';
import { graphs } from './graphs.js';
import { Ladder } from './ladder.js';
import { Moment } from './moment.js';
import { Player } from './player.js';
import { Presentation } from './present.js';
import { Runs } from './runs.js';
import { SCENES } from './scenes.js';
import { Seeds } from './seeds.js';
import { Senders } from './senders.js';
import { showStep } from './steps.js';
import { Tour, slidesOf, stateOf } from './tour.js';
import { showTroubles } from './troubles.js';

// One core keeps the displayed runs. The other one answers while the first is busy.
const runner = new Core(), words = new Core();
const TYPED = ['seed', 'bytes', 'time', 'direction', 'receiver', 'buffer'];
let state = fromAddress(location.hash, SCENES, stateOf) ?? stateOf(0);
const about = JSON.parse($('about').textContent);
let generation = 0, timer = null;

const ask = (request) => words.ask(request);
const senders = new Senders(about, ask, () => { read(); changed(); });
const tour = new Tour({
  go: (next) => restore({ ...(next ?? { ...state, scene: null, step: null }), ladder: state.ladder }),
  // The present step moves to its event in the new run.
  turn: (change) => { state = { ...state, ...change, at: state.step === null ? state.at : null }; fill(); changed(0); },
  select: (step) => { state = { ...state, step }; showCurrentStep(); remember(); },
});
const moment = new Moment((request) => runner.ask(request)), runs = new Runs(runner), player = new Player(), ladder = new Ladder();
const presentation = new Presentation(tour, { decision: (direction) => moment.step(direction), play: () => player.toggle() });
new Seeds(() => setupOf(state), failed);

// ----- form and state -----

// Copies the state to the form.
function fill() {
  $('preset').value = state.text === null ? state.preset : '';
  $('text').value = state.text ?? textOf(state.preset);
  $('restore').hidden = state.text === null;
  $('description').textContent = state.text === null ? about.presets.find(({ name }) => name === state.preset)?.description ?? '' : 'custom scenario';
  $('set').value = state.set.join('\n');
  $('set').rows = Math.max(1, state.set.length);
  // No knob shows these.
  if (state.scene === null && (state.text !== null || state.set.length)) $('edit').open = true;
  for (const name of TYPED) $(name).value = state[name];
  $('shared').checked = state.shared;
  senders.values = state.senders;
  showScene(true);
  ladder.show(hasLadder());
}

// Unless the user decides, a single sender has a ladder diagram next to its graphs.
function hasLadder() { return state.ladder ?? (state.senders.length === 1 && innerWidth >= 1000); }

function showScene(happens) {
  tour.show(state, happens);
  presentation.show(state, happens);
}

// Shows the current step of the scene, if any, in the graphs.
function showCurrentStep() {
  const scene = SCENES[state.scene], slide = scene && slidesOf(scene)[state.step];
  showScene(!slide || showStep(slide));
}

function textOf(preset) { return about.presets.find(({ name }) => name === preset)?.text ?? ''; }

// Copies the form to the state. A text that equals the preset's text counts as the preset.
function read() {
  const text = $('text').value, preset = state.preset;
  state = { ...state, text: text === textOf(preset) ? null : text, set: $('set').value.split('\n').filter((line) => line.trim()), senders: senders.values, shared: $('shared').checked };
  for (const name of TYPED) state[name] = $(name).value.trim();
  $('restore').hidden = state.text === null;
}

function listen() {
  $('preset').addEventListener('change', () => { state = { ...state, preset: $('preset').value, text: null, set: [], view: null }; fill(); changed(0); });
  $('restore').addEventListener('click', () => { state = { ...state, text: null }; fill(); changed(0); });
  for (const name of ['text', 'set', 'shared', ...TYPED]) $(name).addEventListener('input', () => { read(); changed(); });
  $('setup').addEventListener('submit', (event) => { event.preventDefault(); read(); changed(0); });
  $('copy-command').addEventListener('click', () => copy($('command').textContent, 'the command'));
  $('copy-link').addEventListener('click', () => copy(location.href, 'the link'));
  addEventListener('hashchange', () => { if (location.hash !== toAddress(state)) restore(fromAddress(location.hash, SCENES, stateOf) ?? stateOf(0)); });
  graphs.keys.d = () => { state = { ...state, ladder: !hasLadder() }; ladder.show(state.ladder); remember(); };
  graphs.on('view', ({ from, to, end }) => { state.view = from > 0 || to < end ? [from, to] : null; remember(); });
  graphs.on('cursor', (micros) => { if (micros !== null) { state.at = micros; remember(); } });
}

// Replaces the whole state by one from the address or a scene.
function restore(next) {
  const moves = next.scene !== state.scene;
  state = next;
  fill();
  if (moves) history.pushState(null, '', toAddress(state));
  changed(0);
}

let remembering = null;
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => history.replaceState(null, '', toAddress(state)), 200);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    $('copied').textContent = `${what} was copied`;
  } catch {
    // Some browsers refuse this for local files. Then select the text, so that it can be copied by keyboard.
    if (what === 'the command') getSelection().selectAllChildren($('command'));
    $('copied').textContent = `press Ctrl+C to copy ${what}`;
    if (what === 'the link') prompt('Link', text);
  }
}

// ----- running -----

function changed(wait = 250) {
  clearTimeout(timer);
  remember();
  timer = setTimeout(() => check(), wait);
}

// Checks the setup, shows its command lines, and runs it if it is valid. When the page opens (`atOnce`), the
// run starts first: most addresses are valid, and two cores would only slow each other down.
async function check({ atOnce = false } = {}) {
  const mine = ++generation, setup = setupOf(state);
  ladder.show(hasLadder());
  // Results of a running simulation would belong to the previous setup.
  runs.stop();
  let error = atOnce ? await run(mine, setup) : null;
  try {
    const { commands, remarks } = await ask({ ask: 'check', setup });
    if (mine !== generation) return;
    showTroubles([]);
    $('remarks').replaceChildren(...remarks.map((remark) => element('li', {}, remark)));
    $('command').textContent = commands.join('\n');
    if (!atOnce) error = await run(mine, setup);
  } catch (refused) {
    error = refused;
  }
  if (error && mine === generation) failed(error);
}

// Runs the setup. Returns the error, if any.
async function run(mine, setup) {
  const { view, at } = state;
  let error = null;
  try { await runs.run(setup, view); } catch (thrown) { error = thrown; }
  if (mine !== generation) return error;
  player.reset();
  moment.reset(at);
  if (!error && at === null) showCurrentStep();
  return error;
}

function failed(error) {
  $('said').textContent = error instanceof Stopped ? 'stopped' : '';
  if (error instanceof Stopped) return;
  showTroubles(error instanceof Refused ? error.troubles : [{ field: 'run', index: 0, message: String(error) }]);
}

// ----- start -----

for (const { name } of about.presets) $('preset').append(new Option(name, name));
$('preset').append(new Option('custom scenario', ''));
fill();
listen();
check({ atOnce: true });
