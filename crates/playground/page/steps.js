// Finds the packet or decision that a step of a scene is about, and shows it in the graphs.

import { isLost } from './data.js';
import { graphs } from './graphs.js';
import { LOOK_OF_SENDING } from './marks.js';

// The items of a run, by the kind of a note in the graphs: their number, and whether an item has a name.
const ITEMS = {
  segment: { count: (run) => run.segments.at.length, is: ({ segments }, i, name) => (name === 'lost' ? isLost(segments.fate[i]) : LOOK_OF_SENDING[segments.sending[i]] === name) },
  ack: { count: (run) => run.acks.at.length, is: ({ acks }, i, name) => name === 'duplicate' && acks.duplicate[i] === 1 },
  episode: { count: (run) => run.states.length, is: ({ states }, i, name) => states[i][0] === name },
  decision: { count: (run) => run.texts.length, is: ({ texts }, i, name) => texts[i][1] === name },
};

// Returns the `nth` item with this name, counted from 1, or `null`.
function find(run, [kind, name, nth]) {
  const { count, is } = ITEMS[kind];
  for (let i = 0, left = nth; i < count(run); i++) if (is(run, i, name) && --left === 0) return { kind, i };
  return null;
}

// Shows the event of a step in the graphs of its sender, or moves to its time in seconds. Returns `false` if
// this run has no such event.
export function showStep({ sender = 0, event, at }) {
  const panel = graphs.panels[sender];
  if (!panel) return true;
  graphs.activate(panel);
  const focus = event ? find(panel.run, event) : null;
  if (focus) {
    graphs.goTo(panel, focus);
    return true;
  }
  graphs.setFocus(null, null);
  if (at !== undefined) graphs.moveTo(at * 1e6);
  return !event;
}
