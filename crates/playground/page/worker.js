// Runs in a worker: one core, one request at a time. The first message is the compiled module.
// All others are { id, request, file } objects.
'use strict';

let core = null, panic = null, told = 0, reached = 0;
const imports = {
  page: {
    progress(share, seconds) {
      reached = seconds;
      if (performance.now() - told < 100) return;
      told = performance.now();
      postMessage({ progress: { share, seconds } });
    },
    failed(at, length) { panic = new TextDecoder().decode(new Uint8Array(core.memory.buffer, at, length)); },
  },
};

function answer(request) {
  reached = 0;
  const text = new TextEncoder().encode(JSON.stringify(request));
  const at = core.request(text.length);
  new Uint8Array(core.memory.buffer, at, text.length).set(text);
  const length = core.answer();
  return new Uint8Array(core.memory.buffer, core.answer_at(), length).slice();
}

function reply(id, octets, file) {
  // Errors may replace a requested file.
  const isFile = file && new TextDecoder().decode(octets.subarray(0, 12)) !== '{"troubles":';
  if (isFile) postMessage({ id, octets }, [octets.buffer]);
  else postMessage({ id, answer: JSON.parse(new TextDecoder().decode(octets)) });
}

// Returns the reason of a failure for the user. If memory is exhausted, the browser throws, the core panics
// with an overflow, or it traps without a panic.
function reason(error) {
  const isMemory = panic === null
    ? error instanceof RangeError || /memory|unreachable/.test(String(error))
    : /capacity overflow|memory allocation/.test(panic);
  const limit = reached > 0 ? ` than ${reached.toFixed(1)} s` : '';
  if (isMemory) return `the run needs more memory than the browser gives a page; make it shorter${limit}`;
  return panic === null ? String(error) : `the core failed: ${panic}`;
}

async function take({ module, id, request, file }) {
  try {
    if (module) core = (await WebAssembly.instantiate(module, imports)).exports;
    else reply(id, answer(request), file);
  } catch (error) {
    postMessage({ id, failed: reason(error) });
  }
}

// Requests are handled one at a time, in the order of their arrival.
let before = Promise.resolve();
onmessage = ({ data }) => { before = before.then(() => take(data)); };
