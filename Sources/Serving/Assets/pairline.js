// The timeline of two sessions: one map for each, over the same instants. For assistive technology it is a slider.

import {SessionMap} from './map.js';

const leastSpanMs = 1_000;

export class PairLine {
  #root;
  #panes;
  #maps;
  #seek;
  #playhead;
  #whole;
  /** The visible part, in unix milliseconds. */
  #view;
  #isDragged = false;
  #isRedrawing = false;

  /**
   * @param whole - {fromMs, toMs}, in unix milliseconds.
   * @param seek - called with unix milliseconds.
   */
  constructor(root, panes, whole, seek) {
    this.#root = root;
    this.#panes = panes;
    this.#whole = this.#view = whole;
    this.#seek = seek;
    const canvases = root.querySelectorAll('canvas');
    this.#maps = panes.map((pane, number) => new SessionMap(canvases[number], pane.session));
    this.#playhead = root.querySelector('.playhead');
    root.setAttribute('aria-valuemax', whole.toMs - whole.fromMs);
    root.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      this.#isDragged = true;
      root.setPointerCapture(event.pointerId);
      this.#go(event);
    });
    root.addEventListener('pointermove', event => this.#isDragged && this.#go(event));
    for (const name of ['pointerup', 'pointercancel']) root.addEventListener(name, () => (this.#isDragged = false));
    new ResizeObserver(() => this.redraw()).observe(root);
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
      matchMedia(query).addEventListener('change', () => this.redraw());
    }
  }

  /** Takes over another whole. A timeline that shows the whole goes on to do so. */
  renew(whole) {
    const {fromMs, toMs} = this.#view;
    if (toMs - fromMs >= this.#whole.toMs - this.#whole.fromMs) this.#view = whole;
    this.#whole = whole;
    this.#root.setAttribute('aria-valuemax', whole.toMs - whole.fromMs);
    this.redraw();
  }

  #go(event) {
    const box = this.#root.getBoundingClientRect();
    const share = Math.min(Math.max(0, (event.clientX - box.left) / box.width), 1);
    this.#seek(Math.floor(this.#view.fromMs + share * (this.#view.toMs - this.#view.fromMs)));
  }

  /** Moves the playhead. A timeline that is zoomed scrolls by a page when it leaves the visible part. */
  update(nowMs, text) {
    const {fromMs, toMs} = this.#view;
    if (nowMs < fromMs || nowMs > toMs) this.#look(nowMs - (toMs - fromMs) * 0.1, toMs - fromMs);
    const x = ((nowMs - this.#view.fromMs) / (this.#view.toMs - this.#view.fromMs)) * this.#root.clientWidth;
    this.#playhead.hidden = false;
    this.#playhead.style.transform = `translateX(${Math.max(0, Math.min(x, this.#root.clientWidth - 2))}px)`;
    this.#root.setAttribute('aria-valuenow', Math.round(nowMs - this.#whole.fromMs));
    this.#root.setAttribute('aria-valuetext', text);
  }

  /** Multiplies the visible time span by `factor`, around an instant. */
  zoom(factor, aroundMs) {
    const {fromMs, toMs} = this.#view;
    const span = Math.min(Math.max((toMs - fromMs) * factor, leastSpanMs), this.#whole.toMs - this.#whole.fromMs);
    this.#look(aroundMs - ((aroundMs - fromMs) / (toMs - fromMs)) * span, span);
  }

  #look(fromMs, span) {
    const from = Math.min(Math.max(this.#whole.fromMs, fromMs), this.#whole.toMs - span);
    this.#view = {fromMs: from, toMs: from + span};
    this.redraw();
  }

  redraw() {
    if (this.#isRedrawing) return;
    this.#isRedrawing = true;
    requestAnimationFrame(() => {
      this.#isRedrawing = false;
      this.#maps.forEach((map, number) => {
        const {session, lost} = this.#panes[number];
        const view = {fromMs: this.#view.fromMs - session.startMs, toMs: this.#view.toMs - session.startMs};
        map.draw(view, lost, number === 0);
      });
      this.#root.dispatchEvent(new Event('redrawn'));
    });
  }
}
