// Finds elements of the page by their id, creates elements, and scrolls them into view.

export function $(id) { return document.getElementById(id); }

export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Scrolls one element, so that one of its rows is visible below the table's heading.
export function revealIn(scrolling, row) {
  if (scrolling.scrollHeight <= scrolling.clientHeight || getComputedStyle(scrolling).overflowY === 'visible') return;
  const heading = scrolling.querySelector(':scope > table > thead')?.offsetHeight ?? 0;
  const outer = scrolling.getBoundingClientRect(), inner = row.getBoundingClientRect();
  const over = inner.top - (outer.top + heading), under = inner.bottom - outer.bottom;
  if (over < 0) scrolling.scrollTop += over;
  else if (under > 0) scrolling.scrollTop += Math.min(under + scrolling.clientHeight / 3, over);
}
