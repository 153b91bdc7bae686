// The core in a worker: `new Core().ask(request)`. The page contains the compressed module, which is compiled
// once.

import { $ } from './dom.js';
import { WORKER } from './worker_text.js';

let compiled = null;
function compile() {
  compiled ??= (async () => {
    const letters = atob($('core').textContent), packed = new Uint8Array(letters.length);
    // `Uint8Array.from` takes half a second for this.
    for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
    const { writable, readable } = new DecompressionStream('gzip'), writer = writable.getWriter();
    // The reader of the stream reports errors.
    writer.write(packed).catch(() => {});
    writer.close().catch(() => {});
    return WebAssembly.compileStreaming(new Response(readable, { headers: { 'Content-Type': 'application/wasm' } }));
  })();
  return compiled;
}

// The core rejected a request. lib.rs describes `troubles`.
export class Refused extends Error {
  constructor(troubles) { super(troubles.map(({ message }) => message).join('; ')); this.troubles = troubles; }
}

// The request was stopped.
export class Stopped extends Error {}

export class Core {
  constructor() { this.waiting = new Map(); this.ids = 0; this.worker = null; this.ready = null; }

  // Resolves to the answer, or with `file` to the bytes of a file. `progress` is called with the completed
  // share of a run and its virtual time, { share, seconds }.
  ask(request, { file = false, progress = null } = {}) {
    if (!this.worker) this.start();
    const { worker } = this, id = ++this.ids;
    return new Promise((done, failed) => {
      this.waiting.set(id, { done, failed, progress });
      this.ready.then(() => worker.postMessage({ id, request, file }));
    });
  }

  start() {
    const url = URL.createObjectURL(new Blob([WORKER], { type: 'text/javascript' }));
    const worker = new Worker(url);
    URL.revokeObjectURL(url);
    worker.onmessage = ({ data }) => { if (worker === this.worker) this.take(data); };
    worker.onerror = (event) => { if (worker === this.worker) this.end(new Error(event.message)); };
    this.worker = worker;
    this.ready = compile().then((module) => worker.postMessage({ module }), (error) => this.end(error));
  }

  take({ id, answer, octets, failed, progress }) {
    if (progress !== undefined) {
      // The worker answers requests in their order, so progress belongs to the oldest one.
      this.waiting.values().next().value?.progress?.(progress);
      return;
    }
    if (failed !== undefined) {
      // The core's memory may be corrupt after a failure. The next request starts another core.
      this.end(new Refused([{ field: 'run', index: 0, message: failed }]));
      return;
    }
    const one = this.waiting.get(id);
    this.waiting.delete(id);
    if (octets) one?.done(octets);
    else if (answer.troubles) one?.failed(new Refused(answer.troubles));
    else one?.done(answer.ok);
  }

  // Stops all requests. The next request starts an empty core.
  stop() { this.end(new Stopped('stopped')); }

  end(error) {
    this.worker?.terminate();
    this.worker = null;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const { failed } of waiting) failed(error);
  }
}
