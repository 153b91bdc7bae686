// What things look like: colours of Okabe and Ito's palette, which colour-blind people can tell apart, and for each
// kind of thing a shape of its own as well, for those who print in grey.

const LAYERS = [
  // name, glyph, what it says in the legend
  ['new', 'bar', 'segment'],
  ['fast', 'triangle', 'sent again: fast'],
  ['timeout', 'square', 'after a timeout'],
  ['tail', 'diamond', 'tail'],
  ['probe', 'circle', 'probe'],
  ['unexplained', 'plus', 'again, unexplained'],
  ['lost', 'cross', 'lost'],
  ['unneeded', 'ring', 'not needed'],
  ['ack', 'line', 'ACK'],
  ['edge', 'dashes', 'window edge'],
  ['sack', 'bar', 'SACK'],
  ['idle', 'area', 'waiting for a timer'],
  ['decision', 'down', 'decision'],
];
// Without a log that names states there are no bands, and none in the legend.
if (HAS_STATES) {
  LAYERS.push(['recovery', 'full', 'recovery'], ['restarted', 'hatched', 'restarted'], ['reduced', 'half', 'reduced']);
}
const LAYER_OF_SENDING = {
  [NEW]: 'new', [FAST]: 'fast', [TIMEOUT]: 'timeout', [TAIL]: 'tail', [PROBE]: 'probe', [UNEXPLAINED]: 'unexplained',
};

const COLOURS = {
  light: {
    new: '#0072b2', fast: '#e69f00', timeout: '#d55e00', tail: '#cc79a7', probe: '#000000', unexplained: '#000000', lost: '#000000',
    unneeded: '#cc79a7', ack: '#009e73', edge: '#8a8a8a', sack: '#cc79a7', idle: '#00000012', decision: '#555555',
    raised: '#009e73', lowered: '#d55e00', cwnd: '#0072b2', ssthresh: '#e69f00', flight: '#8a8a8a', estimated: '#56b4e9',
    rtt: '#0072b2', goodput: '#009e73', recovery: '#56b4e9', restarted: '#d55e00', reduced: '#e69f00', text: '#333333', faint: '#6b6b6b', grid: '#0000001a', frame: '#00000055', paper: '#ffffff',
  },
  dark: {
    new: '#56b4e9', fast: '#e69f00', timeout: '#ff7a2e', tail: '#e39bc3', probe: '#ffffff', unexplained: '#ffffff', lost: '#ffffff',
    unneeded: '#e39bc3', ack: '#1fc296', edge: '#8f8f8f', sack: '#e39bc3', idle: '#ffffff14', decision: '#b0b0b0',
    raised: '#1fc296', lowered: '#ff7a2e', cwnd: '#56b4e9', ssthresh: '#e69f00', flight: '#9a9a9a', estimated: '#0f86c4',
    rtt: '#56b4e9', goodput: '#1fc296', recovery: '#0f86c4', restarted: '#ff7a2e', reduced: '#e69f00', text: '#e2e2e2', faint: '#a3a3a3', grid: '#ffffff1c', frame: '#ffffff55', paper: '#16181b',
  },
};
const darkness = matchMedia('(prefers-color-scheme: dark)');
let printing = false;
function colours() { return darkness.matches && !printing ? COLOURS.dark : COLOURS.light; }

// A mark of about 2 × r pixels at (x, y).
function glyph(ctx, shape, x, y, r) {
  ctx.beginPath();
  switch (shape) {
    case 'triangle':
      ctx.moveTo(x, y - r); ctx.lineTo(x + r, y + 0.8 * r); ctx.lineTo(x - r, y + 0.8 * r); ctx.closePath(); ctx.fill();
      break;
    case 'down':
      ctx.moveTo(x, y + r); ctx.lineTo(x + r, y - 0.8 * r); ctx.lineTo(x - r, y - 0.8 * r); ctx.closePath(); ctx.fill();
      break;
    case 'square': ctx.rect(x - 0.85 * r, y - 0.85 * r, 1.7 * r, 1.7 * r); ctx.fill(); break;
    case 'diamond':
      ctx.moveTo(x, y - r); ctx.lineTo(x + r, y); ctx.lineTo(x, y + r); ctx.lineTo(x - r, y); ctx.closePath(); ctx.fill();
      break;
    case 'circle': ctx.arc(x, y, 0.8 * r, 0, 2 * Math.PI); ctx.fill(); break;
    case 'ring': ctx.arc(x, y, 1.4 * r, 0, 2 * Math.PI); ctx.stroke(); break;
    case 'plus':
      ctx.moveTo(x - r, y); ctx.lineTo(x + r, y); ctx.moveTo(x, y - r); ctx.lineTo(x, y + r); ctx.stroke();
      break;
    case 'cross':
      ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r); ctx.moveTo(x - r, y + r); ctx.lineTo(x + r, y - r); ctx.stroke();
      break;
    // Lost somewhere that is known: the cross in a circle was the radio's doing, in a square congestion's.
    case 'crossed-circle': glyph(ctx, 'cross', x, y, 0.8 * r); glyph(ctx, 'ring', x, y, r); break;
    case 'crossed-square':
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
    case 'area': ctx.fillRect(x - r - 1, y - r - 1, 2 * r + 2, 2 * r + 2); break;
  }
}

// A state's band: full, hatched, or half as high.
function band(ctx, shape, x, y, w, h) {
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

function lossShape(fate) {
  if (fate === LOST_RADIO) return 'crossed-circle';
  return fate === LOST_CONGESTION ? 'crossed-square' : 'cross';
}

// A decision's mark, by what was decided.
function decisionMark(run, i) {
  switch (run.texts[i][1]) {
    case 'timeout': return ['square', 'timeout'];
    case 'lost': return ['cross', 'lost'];
    case 'window': return ['down', 'lowered'];
    case 'undo': case 'opened': return ['triangle', 'raised'];
    case 'cause': case 'judged': return ['circle', 'decision'];
    case 'resume': return ['triangle', 'raised'];
    default: return ['tick', 'decision'];
  }
}
const DECISION_RANK = ['tick', 'circle', 'cross', 'down', 'triangle', 'square'];
