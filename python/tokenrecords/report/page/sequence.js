// The ids of calls, out of the page's arrays, and the sequence along a path of calls.

const STORED = {
  int32: Int32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
  uint8: Uint8Array,
};

async function inflated(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

// Each call keeps the ids that it adds to its parent's, so that what calls share is here once.
async function readRollout(place) {
  const details = embedded(`details-${place}`);
  const buffer = await inflated(byId(`arrays-${place}`).textContent);
  let at = 0;
  const take = (stored, length) => {
    const start = at;
    at += length * STORED[stored].BYTES_PER_ELEMENT;
    return new STORED[stored](buffer.slice(start, at));
  };
  details.calls.forEach((call, index) => {
    call.index = index;
    call.ids = take(call.stored.ids, call.length - call.start);
    call.logProbs = take(call.stored.log_probs, call.length - call.prompt);
    call.mask = call.stored.mask ? take("uint8", call.length - call.prompt) : null;
  });
  return details;
}

class Sequence {
  constructor(calls, last) {
    this.path = [];
    for (let at = last; at !== null; at = calls[at].parent) this.path.unshift(calls[at]);
    this.length = calls[last].length;
  }

  // The call that brought the position.
  callAt(position) {
    let low = 0;
    let high = this.path.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (position < this.path[middle].length) high = middle;
      else low = middle + 1;
    }
    return this.path[low];
  }

  at(position) {
    const call = this.callAt(position);
    const id = String(call.ids[position - call.start]);
    const generated = position - call.prompt;
    if (generated < 0) return { position, id, call, role: "prompt", logProb: null };
    const role = call.mask && !call.mask[generated] ? "masked" : "generated";
    return { position, id, call, role, logProb: call.logProbs[generated] };
  }
}

const PIECES = embedded("pieces");

// The text of an id in parts, every other of which is written out; null where none is known.
const pieceOf = (id) => (PIECES && PIECES[id]) || null;

const textOf = (id) => {
  const piece = pieceOf(id);
  return piece && piece.join("");
};

// From the likeliest to the least likely; a log-prob that is none has a step of its own.
const STEPS = [0.9, 0.5, 0.1, 0.01];

function heatOf(logProb) {
  if (!Number.isFinite(logProb) || logProb > 1e-4 || logProb <= -9999) return "x";
  const probability = Math.exp(logProb);
  const step = STEPS.findIndex((least) => probability >= least);
  return step < 0 ? STEPS.length : step;
}

const shownLogProb = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(6))) : String(value));
