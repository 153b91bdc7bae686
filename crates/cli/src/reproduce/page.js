'use strict';
const form = document.getElementById('filters');
const [paper, verdict] = form.querySelectorAll('select');

/** Shows the figures of the selected paper that have claims with the selected verdict, and only these claims. */
function show() {
  let claims = 0;
  for (const section of document.querySelectorAll('section')) {
    const isOfPaper = !paper.value || section.dataset.paper === paper.value;
    let found = 0;
    for (const row of section.querySelectorAll('.claims tr[class]')) {
      row.hidden = Boolean(verdict.value) && row.dataset.verdict !== verdict.value;
      found += row.dataset.verdict && !row.hidden ? 1 : 0;
    }
    section.hidden = !isOfPaper || Boolean(verdict.value) && found === 0;
    claims += section.hidden ? 0 : found;
  }
  for (const heading of document.querySelectorAll('h2[data-paper]')) {
    const figures = [...document.querySelectorAll(`section[data-paper="${heading.dataset.paper}"]`)];
    heading.hidden = figures.every((section) => section.hidden);
  }
  form.querySelector('output').textContent = claims === 1 ? '1 claim' : `${claims} claims`;
}

form.hidden = false;
form.addEventListener('change', show);
show();
