// A whole sequence in one picture: roles in the upper band, how unlikely tokens were below it, a line for each call.

const BAND = 8;
const UNLIKELY = 12; // the surprise, in nats, that a bar of full height stands for

class Minimap {
  constructor(sequence, strip, host) {
    this.sequence = sequence;
    this.strip = strip;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.window = make("div", { class: "window", "aria-hidden": "true" });
    host.replaceChildren(this.canvas, this.window);
    this.host = host;
    this.off = new AbortController();
    const { signal } = this.off;
    strip.scroller.addEventListener("scroll", () => this.follow(), { signal, passive: true });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(), { signal });
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(host);
  }

  close() {
    this.off.abort();
    this.sizes.disconnect();
  }

  positionAt(x) {
    const part = (x - this.host.getBoundingClientRect().left) / this.host.clientWidth;
    return Math.min(Math.max(Math.floor(part * this.sequence.length), 0), this.sequence.length - 1);
  }

  follow() {
    if (this.isPending) return;
    this.isPending = true;
    requestAnimationFrame(() => {
      this.isPending = false;
      const [from, to] = this.strip.range();
      this.window.style.left = `${(100 * from) / this.sequence.length}%`;
      this.window.style.width = `${(100 * (to - from)) / this.sequence.length}%`;
    });
  }

  draw() {
    const scale = window.devicePixelRatio || 1;
    const width = Math.round(this.host.clientWidth * scale);
    const height = Math.round(this.host.clientHeight * scale);
    if (!width || !height) return;
    Object.assign(this.canvas, { width, height });
    const paint = this.canvas.getContext("2d");
    const style = getComputedStyle(this.host);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    const band = BAND * scale;
    const each = width / this.sequence.length;
    for (const { from, to, role, least } of this.columns(width)) {
      const x = Math.floor(from * each);
      const wide = Math.max(Math.floor(to * each) - x, 1);
      paint.fillStyle = colour(role);
      paint.fillRect(x, 0, wide, band);
      if (least !== null) {
        const heat = heatOf(least);
        const part = heat === "x" ? 1 : Math.min(0.08 + -least / UNLIKELY, 1);
        paint.fillStyle = colour(`h${heat}`);
        paint.fillRect(x, height - part * (height - band - 2 * scale), wide, height);
      }
    }
    paint.fillStyle = colour("rule");
    for (const call of this.sequence.path.slice(1)) paint.fillRect(Math.round(call.start * each), 0, scale, height);
    this.follow();
  }

  // Runs of positions that share a column of pixels, or a role: for each its least log-prob.
  *columns(width) {
    const { length } = this.sequence;
    const step = Math.max(length / width, 1);
    for (let from = 0; from < length; ) {
      const token = this.sequence.at(from);
      const end = Math.min(Math.max(Math.ceil((Math.floor(from / step) + 1) * step), from + 1), length);
      let least = token.logProb;
      let to = from + 1;
      for (; to < end; to += 1) {
        const next = this.sequence.at(to);
        if (next.role !== token.role) break;
        if (heatOf(next.logProb) === "x" || next.logProb < least) least = next.logProb;
      }
      yield { from, to, role: token.role, least };
      from = to;
    }
  }
}
