// The timeline: a zoomable map of a session with a playhead, and a tip with the time and a small picture, at the pointer or,
// for the keyboard, at the playhead. For assistive technology it is a slider.

import {areaText} from './changes.js';
import {Lanes} from './lanes.js';
import {SessionMap} from './map.js';
import {Preview} from './preview.js';
import {element, exact, hold, kindTitle} from './text.js';
import {clock, instant, utcBeside} from './time.js';

const leastSpanMs = 200;

export class Timeline {
  #element;
  #session;
  #map;
  #overview;
  #overviewCanvas;
  #lanes;
  #parts;
  #seek;
  #lost = [];
  #view;
  #redrawing = false;
  #pointers = new Map();
  #preview;
  /** Whether the tip follows the playhead: the timeline has the keyboard's focus. */
  #isKeyed = false;
  /** Centre of the tip, in pixels from the left. */
  #tipX = 0;
  /** The marked part, {fromMs, toMs}; undefined for none. */
  part;

  /** @param seek - called with milliseconds from the session's start. */
  constructor(root, session, seek) {
    this.#element = root;
    this.#session = session;
    this.#seek = seek;
    this.#view = {fromMs: 0, toMs: session.lengthMs};
    const part = id => root.querySelector(`#${id}`);
    this.#overviewCanvas = part('overview');
    this.#map = new SessionMap(part('map'), session);
    this.#overview = new SessionMap(this.#overviewCanvas, session);
    this.#lanes = new Lanes(part('lanes'), session);
    const current = element('div', {className: 'current'});
    const range = element('div', {className: 'range', hidden: true});
    part('cursor').before(range, current);
    this.#parts = {range, current, cursor: part('cursor'), playhead: part('playhead'), tip: part('tip'), lines: part('tip-lines')};
    this.#preview = new Preview(part('preview'), session, () => this.#placeTip());
    root.setAttribute('aria-valuemax', session.lengthMs);
    this.#listen();
  }

  /** Reads the session again, which has grown. The whole stays the whole. */
  renew(lengthMs) {
    const {fromMs, toMs} = this.#view;
    if (toMs - fromMs >= lengthMs - 0.5) this.#view = {fromMs: 0, toMs: this.#session.lengthMs};
    this.#element.setAttribute('aria-valuemax', this.#session.lengthMs);
    this.redraw();
  }

  /**
   * Moves the playhead.
   * @param isFollowed - whether a zoomed timeline scrolls to it.
   * @param isPlaying - then no tip is at the playhead.
   */
  update(positionMs, step, isFollowed, isPlaying) {
    const {current, playhead, range} = this.#parts;
    if (isFollowed && this.isZoomed) this.#follow(positionMs);
    this.#place(playhead, positionMs);
    this.#span(current, step.atMs, step.endMs);
    if (this.part) this.#span(range, this.part.fromMs, this.part.toMs);
    else range.hidden = true;
    this.#element.setAttribute('aria-valuenow', Math.round(positionMs));
    if (this.#isKeyed && isPlaying) this.#hideTip();
    else if (this.#isKeyed && isFollowed) this.#tell(positionMs, this.#x(positionMs));
  }

  set valueText(text) {
    if (this.#element.getAttribute('aria-valuetext') !== text) this.#element.setAttribute('aria-valuetext', text);
  }

  /** Segments that cannot be shown. */
  set lost(segments) {
    if (segments.length === this.#lost.length) return;
    this.#lost = segments;
    this.redraw();
  }

  /** The visible part, {fromMs, toMs}. */
  get view() {
    return this.#view;
  }

  get isZoomed() {
    return this.#view.toMs - this.#view.fromMs < this.#session.lengthMs - 0.5;
  }

  /** Multiplies the visible time span by `factor`, around a time. */
  zoom(factor, aroundMs) {
    const {fromMs, toMs} = this.#view;
    const span = Math.min(Math.max((toMs - fromMs) * factor, leastSpanMs), this.#session.lengthMs);
    const around = Math.min(Math.max(aroundMs, fromMs), toMs);
    this.#look(around - ((around - fromMs) / (toMs - fromMs)) * span, span);
  }

  redraw() {
    if (this.#redrawing) return;
    this.#redrawing = true;
    requestAnimationFrame(() => {
      this.#redrawing = false;
      this.#overviewCanvas.hidden = !this.isZoomed;
      this.#map.draw(this.#view, this.#lost, true);
      this.#lanes.draw(this.#view);
      if (this.isZoomed) this.#drawOverview();
      this.#element.dispatchEvent(new Event('redrawn'));
    });
  }

  #drawOverview() {
    const whole = {fromMs: 0, toMs: this.#session.lengthMs};
    this.#overview.draw(whole, this.#lost, false);
    const canvas = this.#overviewCanvas;
    const scale = canvas.width / this.#session.lengthMs;
    const context = canvas.getContext('2d');
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.strokeStyle = getComputedStyle(canvas).getPropertyValue('--text').trim();
    context.lineWidth = 3;
    const {fromMs, toMs} = this.#view;
    context.strokeRect(fromMs * scale + 1.5, 1.5, Math.max(3, (toMs - fromMs) * scale - 3), canvas.height - 3);
  }

  #look(fromMs, span) {
    const from = Math.min(Math.max(0, fromMs), this.#session.lengthMs - span);
    this.#view = {fromMs: from, toMs: from + span};
    this.redraw();
  }

  /** Scrolls by a page when the playhead leaves the visible part. */
  #follow(ms) {
    const {fromMs, toMs} = this.#view;
    const span = toMs - fromMs;
    if (ms < fromMs || ms > toMs) this.#look(ms - span * 0.1, span);
  }

  #x(ms) {
    return ((ms - this.#view.fromMs) / (this.#view.toMs - this.#view.fromMs)) * this.#map.width;
  }

  #place(mark, ms) {
    const x = this.#x(ms);
    mark.hidden = x < -1 || x > this.#map.width + 1;
    mark.style.transform = `translateX(${Math.min(x, this.#map.width - 2)}px)`;
  }

  #span(mark, fromMs, toMs) {
    const [from, to] = [Math.max(0, this.#x(fromMs)), Math.min(this.#x(toMs), this.#map.width)];
    mark.hidden = to <= 0 || from >= this.#map.width;
    mark.style.transform = `translateX(${from}px)`;
    mark.style.width = `${Math.max(2, to - from)}px`;
  }

  #msUnder(event) {
    const canvas = event.target === this.#overviewCanvas ? event.target : this.#element.querySelector('#map');
    const box = canvas.getBoundingClientRect();
    const share = Math.min(Math.max(0, (event.clientX - box.left) / box.width), 1);
    if (canvas === this.#overviewCanvas) return share * this.#session.lengthMs;
    return this.#view.fromMs + share * (this.#view.toMs - this.#view.fromMs);
  }

  #listen() {
    const root = this.#element;
    root.addEventListener('pointerdown', event => {
      if (event.button !== 0) return;
      this.#pointers.set(event.pointerId, event);
      event.target.setPointerCapture(event.pointerId);
      if (this.#pointers.size === 1) this.#seek(Math.floor(this.#msUnder(event)));
    });
    root.addEventListener('pointermove', event => {
      const ms = Math.floor(this.#msUnder(event));
      this.#place(this.#parts.cursor, ms);
      this.#tell(ms, event.clientX - root.getBoundingClientRect().left);
      const before = this.#pointers.get(event.pointerId);
      if (!before) return;
      if (this.#pointers.size === 2) this.#pinch(before, event);
      else this.#seek(Math.floor(this.#msUnder(event)));
      this.#pointers.set(event.pointerId, event);
    });
    for (const name of ['pointerup', 'pointercancel']) {
      root.addEventListener(name, event => this.#pointers.delete(event.pointerId));
    }
    root.addEventListener('pointerleave', () => this.#hideTip());
    root.addEventListener('focus', () => {
      this.#isKeyed = root.matches(':focus-visible');
      if (this.#isKeyed) this.#tellPlayhead();
    });
    root.addEventListener('keydown', event => {
      this.#isKeyed = event.key !== 'Escape';
      if (!this.#isKeyed) this.#hideTip();
    });
    root.addEventListener('blur', () => {
      this.#isKeyed = false;
      this.#hideTip();
    });
    root.addEventListener('wheel', event => this.#wheel(event), {passive: false});
    new ResizeObserver(() => {
      this.redraw();
      if (this.#isKeyed && !this.#parts.tip.hidden) this.#tellPlayhead();
      else this.#hideTip();
    }).observe(root);
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
      matchMedia(query).addEventListener('change', () => this.redraw());
    }
  }

  #pinch(before, event) {
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)[1];
    const [was, is] = [before, event].map(point => Math.abs(point.clientX - other.clientX) || 1);
    this.zoom(was / is, this.#msUnder(event));
  }

  /** Browsers report a pinch on a touchpad as a wheel event with Ctrl. Vertical scrolling stays with the page. */
  #wheel(event) {
    const span = this.#view.toMs - this.#view.fromMs;
    if (event.ctrlKey) this.zoom(Math.exp(event.deltaY / 200), this.#msUnder(event));
    else if (event.deltaX && this.isZoomed) this.#look(this.#view.fromMs + (event.deltaX / this.#map.width) * span, span);
    else return;
    event.preventDefault();
  }

  #tellPlayhead() {
    const ms = Number(this.#element.getAttribute('aria-valuenow'));
    this.#tell(ms, this.#x(ms));
  }

  /** Shows a tip about a time, `x` pixels from the left. */
  #tell(ms, x) {
    const {tip, lines} = this.#parts;
    const session = this.#session;
    const utc = utcBeside(session.startMs + ms);
    const texts = [`${instant(session.startMs + ms)} · +${exact(ms)}`, ...(utc ? [utc] : [])];
    const gap = session.gapAt(ms);
    const segment = session.segmentAt(ms);
    const step = segment && session.stepAt(ms);
    if (gap) texts.push(`gap of ${exact(gap.endMs - gap.atMs)}: nothing was recorded`);
    else if (segment?.isGone) texts.push('no longer kept');
    else if (segment) {
      texts.push(`${step.source} · captured ${clock(step.timeMs)}`, `on screen for ${hold(step)}`);
      if (step.change !== undefined) texts.push(`changed: ${areaText(step.change)}`);
      if (this.#lost.includes(segment)) texts.push(`${segment.file} cannot be shown`);
    }
    texts.push(...session.captionsAt(ms).map(({kind, text}) => `${kindTitle(kind)}: ${text}`));
    lines.replaceChildren(...texts.map(text => element('span', {dir: 'auto', textContent: text})));
    this.#tipX = x;
    tip.hidden = false;
    this.#preview.show(this.#lost.includes(segment) ? undefined : step);
    this.#placeTip();
  }

  #placeTip() {
    const {tip} = this.#parts;
    const left = this.#tipX - tip.offsetWidth / 2;
    tip.style.transform = `translateX(${Math.max(0, Math.min(left, this.#map.width - tip.offsetWidth))}px)`;
  }

  #hideTip() {
    this.#parts.tip.hidden = this.#parts.cursor.hidden = true;
    this.#preview.show(undefined);
  }
}
