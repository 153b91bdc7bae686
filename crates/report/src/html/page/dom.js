// Finds elements of the page by their id, and creates elements.

export function $(id) { return document.getElementById(id); }

export function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
