// Navigation in a graph by mouse, wheel and touch.

import { element } from './dom.js';

export function listen(graphs, panel) {
  const { stage } = panel, { view } = graphs, pointers = new Map();
  let drag = null, pinch = null;
  const x = (event) => (event.clientX - stage.getBoundingClientRect().left) / panel.enlarged;
  const y = (event) => (event.clientY - stage.getBoundingClientRect().top) / panel.enlarged;
  const pinched = () => (pointers.size === 2 ? { points: [...pointers.values()].map((x) => panel.timeAt(x)) } : null);
  stage.addEventListener('focus', () => graphs.activate(panel));
  stage.addEventListener('wheel', (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : 1;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) graphs.pan((event.deltaX * unit) / panel.width);
    else graphs.zoomAt(panel, Math.exp(Math.max(-300, Math.min(300, event.deltaY * unit)) * (event.ctrlKey ? 0.01 : 0.002)), x(event));
  }, { passive: false });
  stage.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, x(event));
    stage.setPointerCapture(event.pointerId);
    graphs.activate(panel);
    drag = { x: x(event), from: view.from, to: view.to, time: panel.time, selects: event.shiftKey, moved: false };
    pinch = pinched();
  });
  stage.addEventListener('pointermove', (event) => {
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, x(event));
    const { x: left, w } = panel.box.sequence;
    if (pinch && pointers.size === 2) {
      // Each finger keeps the time under it.
      const [a, b] = [...pointers.values()].map((x) => (x - left) / w), [s, t] = pinch.points;
      if (Math.abs(b - a) > 0.02) { const span = (t - s) / (b - a); if (span > 0) graphs.setView(s - a * span, s + (1 - a) * span); }
      return;
    }
    if (drag && pointers.size === 1) {
      // A finger always moves a little.
      drag.moved ||= Math.abs(drag.x - x(event)) > (event.pointerType === 'touch' ? 6 : 0);
      if (drag.selects) select(panel, drag.x, x(event));
      else if (drag.moved) { const by = drag.time.at(drag.x) - drag.time.at(x(event)); graphs.setView(drag.from + by, drag.to + by); }
      return;
    }
    pointAt(event);
  });
  const pointAt = (event) => {
    const { x: left, w } = panel.box.sequence;
    graphs.setCursor(panel.timeAt(Math.min(Math.max(x(event), left), left + w)));
    graphs.setFocus(panel, panel.nearest(x(event), y(event)));
  };
  const up = (event) => {
    if (drag?.selects && pointers.size === 1) {
      const times = [drag.x, x(event)].map((x) => panel.timeAt(x)).sort((a, b) => a - b);
      if (Math.abs(drag.x - x(event)) > 4) graphs.setView(...times);
      select(panel, null);
    }
    // Touch has no hovering, so a tap shows the note.
    if (event.type === 'pointerup' && event.pointerType === 'touch' && drag && !drag.moved && !pinch) pointAt(event);
    pointers.delete(event.pointerId);
    // The remaining fingers continue from the current view, and do not show a note.
    const [rest] = pointers.values();
    drag = pointers.size > 0 ? { x: rest, from: view.from, to: view.to, time: panel.time, selects: false, moved: true } : null;
    pinch = pinched();
  };
  stage.addEventListener('pointerup', up);
  stage.addEventListener('pointercancel', up);
  stage.addEventListener('pointerleave', (event) => { if (!drag && event.pointerType !== 'touch') { graphs.setCursor(null); graphs.dropFocus(panel); } });
  stage.addEventListener('dblclick', () => graphs.reset());
}

function select(panel, from, to) {
  let band = panel.stage.querySelector('.band');
  if (from === null) { band?.remove(); return; }
  if (!band) panel.stage.append(band = element('div', { class: 'band' }));
  Object.assign(band.style, { left: `${Math.min(from, to)}px`, width: `${Math.abs(to - from)}px` });
}
