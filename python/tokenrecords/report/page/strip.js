// The tokens of a sequence, a block for each call's prompt and generation. Blocks are cut into portions, which have
// elements only while they are near what is seen.

const TOKENS = 256;
const LINE = 26; // pixels, as the style sheet has it

class Strip {
  constructor(sequence, scroller, showsIds) {
    this.sequence = sequence;
    this.scroller = scroller;
    this.showsIds = showsIds || !PIECES;
    this.portions = [];
    this.marked = null;
    scroller.replaceChildren(...sequence.path.flatMap((call) => this.blocks(call)));
    this.watch = new IntersectionObserver((seen) => this.seen(seen), { root: scroller, rootMargin: "600px 0px" });
    for (const portion of this.portions) this.watch.observe(portion.element);
  }

  close() {
    this.watch.disconnect();
  }

  blocks(call) {
    const facts = [call.version && `weights ${call.version}`, call.model].filter(Boolean).join(" · ");
    const head = make("div", { class: "call-head" }, span("call-name", call.id), make("span", {}, facts));
    const parts = [
      ["prompt", call.start, call.prompt],
      ["generated", call.prompt, call.length],
    ];
    return [head, ...parts.filter(([, from, to]) => to > from).map(([role, from, to]) => this.block(role, from, to))];
  }

  block(role, from, to) {
    const block = make("div", { class: `block ${role}-block` });
    block.append(make("div", { class: "block-name" }, role, make("span", {}, count(to - from))));
    const tokens = make("div", { class: "tokens" });
    for (let at = from; at < to; at += TOKENS) {
      const element = make("div", { class: "portion", "data-from": at > from ? count(at) : null });
      const portion = { from: at, to: Math.min(at + TOKENS, to), element, isBuilt: false };
      element.style.minHeight = `${this.guess(portion)}px`;
      element.portion = portion;
      this.portions.push(portion);
      tokens.append(element);
    }
    block.append(tokens);
    return block;
  }

  // Before a portion is drawn, nobody knows its height.
  guess(portion) {
    const width = Math.max(this.scroller.clientWidth - 110, 200);
    return Math.ceil(((portion.to - portion.from) * (this.showsIds ? 52 : 38)) / width) * LINE;
  }

  seen(changes) {
    for (const { target, isIntersecting } of changes) {
      if (isIntersecting) this.build(target.portion);
      else this.empty(target.portion);
    }
  }

  build(portion) {
    if (portion.isBuilt) return;
    portion.isBuilt = true;
    const tokens = document.createDocumentFragment();
    for (let position = portion.from; position < portion.to; position += 1) {
      const token = this.sequence.at(position);
      tokens.append(tokenElement(token, this.showsIds));
      if (!this.showsIds && endsLine(token.id)) tokens.append(make("br"));
    }
    portion.element.replaceChildren(tokens);
    portion.element.style.minHeight = "";
  }

  empty(portion) {
    if (!portion.isBuilt) return;
    portion.isBuilt = false;
    portion.element.style.minHeight = `${portion.element.offsetHeight}px`;
    portion.element.replaceChildren();
  }

  portionOf(position) {
    let low = 0;
    let high = this.portions.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (position < this.portions[middle].to) high = middle;
      else low = middle + 1;
    }
    return this.portions[low];
  }

  elementAt(position) {
    const portion = this.portionOf(position);
    this.build(portion);
    return portion.element.querySelector(`[data-p="${position}"]`);
  }

  mark(position, scroll) {
    this.marked?.classList.remove("cursor");
    this.marked = this.elementAt(position);
    this.marked.classList.add("cursor");
    if (scroll) this.show(this.marked, scroll);
    return this.marked;
  }

  // What lies between is drawn while it is passed, and then is not as high as it was guessed: so it is asked again.
  show(element, block) {
    element.scrollIntoView({ block });
    requestAnimationFrame(() => requestAnimationFrame(() => element.isConnected && element.scrollIntoView({ block })));
  }

  // The positions that are seen, as far as portions tell.
  range() {
    const { top, bottom } = this.scroller.getBoundingClientRect();
    const within = (portion, y) => {
      const box = portion.element.getBoundingClientRect();
      const part = Math.min(Math.max((y - box.top) / (box.height || 1), 0), 1);
      return portion.from + part * (portion.to - portion.from);
    };
    const first = this.portions.find((portion) => portion.element.getBoundingClientRect().bottom > top);
    const last = this.portions.findLast((portion) => portion.element.getBoundingClientRect().top < bottom);
    return first && last ? [within(first, top), within(last, bottom)] : [0, 0];
  }
}

function tokenElement(token, showsIds) {
  const heat = token.logProb === null ? "" : ` h${heatOf(token.logProb)}`;
  const element = make("span", { class: `t ${token.role}${heat}`, "data-p": token.position });
  const piece = showsIds ? null : pieceOf(token.id);
  if (piece) element.append(...pieceNodes(piece));
  else element.append(span("id", token.id));
  return element;
}

const pieceNodes = (piece) => piece.map((part, at) => (at % 2 ? make("b", { class: "esc" }, part) : part));

const endsLine = (id) => {
  const piece = pieceOf(id);
  return piece !== null && piece.length % 2 === 0 && piece.at(-1).endsWith("\\n");
};
