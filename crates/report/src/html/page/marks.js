// Colours and marks. LOOKS defines the look of each kind of item, also for pictures in SVG and PNG. The
// colours are from Okabe and Ito's palette, which colour-blind readers can distinguish. Each kind also has
// its own shape, for printing in grey.

import {
  DECISION_LOOKS, FAST, GROUND, LOOKS, LOST_BETWEEN, LOST_CONGESTION, LOST_RADIO, NEW, PROBE, TAIL, TIMEOUT, UNEXPLAINED,
} from './codes.js';

export const LOOK = Object.fromEntries(LOOKS.map((look) => [look.name, look]));
export const LOOK_OF_SENDING = {
  [NEW]: 'new', [FAST]: 'fast', [TIMEOUT]: 'timeout', [TAIL]: 'tail', [PROBE]: 'probe', [UNEXPLAINED]: 'unexplained',
};
export const LOOK_OF_LOSS = { [LOST_BETWEEN]: 'lost-between', [LOST_CONGESTION]: 'lost-congestion', [LOST_RADIO]: 'lost-radio' };
// The items of the legend. The lines of the other graphs are named above these graphs.
export const LAYERS = LOOKS.slice(0, LOOKS.findIndex(({ name }) => name === 'decision') + 1);

// The colours of all items, and of the paper, frames and text.
const coloursOn = (ground) => Object.fromEntries([
  ...LOOKS.map((look) => [look.name, look[ground]]),
  ...Object.entries(GROUND).map(([name, colours]) => [name, colours[ground]]),
]);
const COLOURS = { light: coloursOn('light'), dark: coloursOn('dark') };
export const IDLE_OPACITY = 0.16;
export const darkness = matchMedia('(prefers-color-scheme: dark)');
// Paper uses the light theme.
export function colours(printing) { return darkness.matches && !printing ? COLOURS.dark : COLOURS.light; }

// Draws an item of this kind in its colour, about 2 × r pixels large.
export function sign(ctx, name, x, y, r, C) {
  ctx.fillStyle = ctx.strokeStyle = C[name];
  glyph(ctx, LOOK[name].sign, x, y, r);
}

// Draws a mark of about 2 × r pixels at (x, y).
export function glyph(ctx, shape, x, y, r) {
  ctx.beginPath();
  switch (shape) {
    case 'up':
      ctx.moveTo(x, y - r); ctx.lineTo(x + r, y + 0.8 * r); ctx.lineTo(x - r, y + 0.8 * r); ctx.closePath(); ctx.fill();
      break;
    case 'down':
      ctx.moveTo(x, y + r); ctx.lineTo(x + r, y - 0.8 * r); ctx.lineTo(x - r, y - 0.8 * r); ctx.closePath(); ctx.fill();
      break;
    case 'square': ctx.rect(x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r); ctx.fill(); break;
    // Surrounds other marks at the same place.
    case 'frame': ctx.strokeRect(x - 1.2 * r, y - 1.2 * r, 2.4 * r, 2.4 * r); break;
    case 'diamond':
      ctx.moveTo(x, y - r); ctx.lineTo(x + r, y); ctx.lineTo(x, y + r); ctx.lineTo(x - r, y); ctx.closePath(); ctx.fill();
      break;
    case 'disc': ctx.arc(x, y, 0.8 * r, 0, 2 * Math.PI); ctx.fill(); break;
    case 'dot': ctx.rect(x - 1.5, y - 1.5, 3, 3); ctx.fill(); break;
    case 'ring': ctx.arc(x, y, 1.4 * r, 0, 2 * Math.PI); ctx.stroke(); break;
    case 'plus':
      ctx.moveTo(x - r, y); ctx.lineTo(x + r, y); ctx.moveTo(x, y - r); ctx.lineTo(x, y + r); ctx.stroke();
      break;
    case 'cross':
      ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x - r, y + r); ctx.lineTo(x + r, y - r); ctx.stroke();
      break;
    // Losses at a known place: the cross in a circle is a loss on the radio link, the cross in a square a
    // loss by congestion.
    case 'cross-in-ring': glyph(ctx, 'cross', x, y, 0.8 * r); glyph(ctx, 'ring', x, y, r); break;
    case 'cross-in-square':
      glyph(ctx, 'cross', x, y, 0.9 * r);
      ctx.strokeRect(x - 1.3 * r, y - 1.3 * r, 2.6 * r, 2.6 * r);
      break;
    case 'tick': ctx.moveTo(x, y - r); ctx.lineTo(x, y + r); ctx.stroke(); break;
    case 'bar':
      ctx.moveTo(x, y - r); ctx.lineTo(x, y + r);
      ctx.moveTo(x - 2, y - r); ctx.lineTo(x + 2, y - r); ctx.moveTo(x - 2, y + r); ctx.lineTo(x + 2, y + r); ctx.stroke();
      break;
    case 'line': ctx.moveTo(x - r, y + r / 2); ctx.lineTo(x, y + r / 2); ctx.lineTo(x, y - r / 2); ctx.lineTo(x + r, y - r / 2); ctx.stroke(); break;
    case 'dashes': ctx.moveTo(x - r, y); ctx.lineTo(x - r / 3, y); ctx.moveTo(x + r / 3, y); ctx.lineTo(x + r, y); ctx.stroke(); break;
    case 'full': case 'hatched': case 'half': band(ctx, shape, x - r - 1, y - r - 1, 2 * r + 2, 2 * r + 2); break;
    case 'area': ctx.save(); ctx.globalAlpha = 2 * IDLE_OPACITY; ctx.fillRect(x - r - 1, y - r - 1, 2 * r + 2, 2 * r + 2); ctx.restore(); break;
  }
}

// Draws the band of a state: full, hatched, or half as high.
export function band(ctx, shape, x, y, w, h) {
  if (shape === 'half') ctx.fillRect(x, y + h / 2, w, h / 2);
  else if (shape === 'full' || w < 5) ctx.fillRect(x, y, w, h);
  else {
    ctx.save();
    ctx.beginPath(); ctx.rect(x, y, w, h); ctx.clip();
    ctx.lineWidth = 1.6;
    ctx.beginPath();
    for (let left = x - h; left < x + w; left += 5) { ctx.moveTo(left, y + h); ctx.lineTo(left + h, y); }
    ctx.stroke();
    ctx.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    ctx.restore();
  }
}

// The look of a decision. Of several decisions at one place, only the one with the highest rank is drawn,
// which is the last one in this list. The frame of a timer is drawn around it.
export function decisionLook(run, i) { return DECISION_LOOKS[run.texts[i][1]] ?? 'decision'; }
export const DECISION_RANK = ['decision', 'judged', 'declared-lost', 'lowered', 'raised'];
