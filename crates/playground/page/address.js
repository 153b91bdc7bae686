// The page's state is in its address, after the #. A link reproduces what the page shows.

const TEXTS = ['preset', 'text', 'seed', 'bytes', 'time', 'direction', 'receiver', 'buffer'];
const LISTS = ['senders', 'set'];
const NAMES = { senders: 'sender' };

export const EMPTY = {
  preset: 'wcdma-384', text: null, set: [], senders: ['newreno'], seed: '1', bytes: '', time: '', direction: '', receiver: '', buffer: '',
  shared: false, scene: null, step: null, view: null, at: null, ladder: null,
};

// Characters that are allowed after a # stay readable.
function encoded(text) { return encodeURIComponent(text).replace(/%(2B|3D|40|2C|2F|3A)/g, (escaped) => decodeURIComponent(escaped)); }

export function toAddress(state) {
  const words = [], add = (name, value) => words.push(`${name}=${encoded(value)}`);
  for (const name of TEXTS) if (state[name] !== null && state[name] !== '' && (name !== 'preset' || state.text === null)) add(name, state[name]);
  for (const name of LISTS) for (const value of state[name]) add(NAMES[name] ?? name, value);
  if (state.shared) add('shared', 'yes');
  if (state.scene !== null) add('scene', String(state.scene + 1));
  if (state.step !== null) add('step', String(state.step + 1));
  if (state.ladder !== null) add('ladder', state.ladder ? 'yes' : 'no');
  if (state.view) add('view', state.view.map((micros) => (micros / 1e6).toFixed(6)).join(','));
  if (state.at !== null) add('at', (state.at / 1e6).toFixed(6));
  return `#${words.join('&')}`;
}

// Parses an address. Missing values are taken from EMPTY. An address with only a scene,
// and perhaps a step, yields the state of that scene from `stateOf`, and an address without any value yields
// `null`. Strangers may have written the address: values become text in fields, or are ignored.
export function fromAddress(hash, scenes, stateOf) {
  const alone = /^#scene=(\d+)(?:&step=(\d+))?$/.exec(hash);
  if (alone && scenes[alone[1] - 1]) return stateOf(alone[1] - 1, alone[2] ? alone[2] - 1 : null);
  const state = { ...structuredClone(EMPTY), senders: [], set: [] };
  let said = false;
  for (const word of hash.replace(/^#/, '').split('&')) {
    const at = word.indexOf('=');
    if (at < 0) continue;
    const name = word.slice(0, at), value = decoded(word.slice(at + 1));
    if (value === null) continue;
    const list = LISTS.find((known) => (NAMES[known] ?? known) === name);
    const seconds = value.split(',').map(Number).filter((number) => Number.isFinite(number) && number >= 0);
    if (TEXTS.includes(name)) state[name] = value;
    else if (list) state[list].push(value);
    else if (name === 'shared') state.shared = value === 'yes';
    else if (name === 'scene' && scenes[Number(value) - 1]) state.scene = Number(value) - 1;
    else if (name === 'step' && /^[1-9]\d?$/.test(value)) state.step = Number(value) - 1;
    else if (name === 'ladder') state.ladder = value === 'yes';
    else if (name === 'view' && seconds.length === 2 && seconds[0] < seconds[1]) state.view = seconds.map((it) => it * 1e6);
    else if (name === 'at' && seconds.length === 1) state.at = seconds[0] * 1e6;
    else continue;
    said = true;
  }
  if (!said) return null;
  if (!state.senders.length) state.senders = [...EMPTY.senders];
  return state;
}

function decoded(text) { try { return decodeURIComponent(text); } catch { return null; } }

// The part of the state that the core reads.
export function setupOf({ preset, text, set, senders, shared, seed, bytes, time, direction, receiver, buffer }) {
  return { preset, text, set: set.filter((typed) => typed.trim()), senders, shared, seed, bytes, time, direction, receiver, buffer };
}
