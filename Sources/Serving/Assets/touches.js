// Draws the pointer events of a session over its picture: a dot while a pointer is down, and a trail that fades. The events
// come from the manifests of the segments at the playhead. A trail ends where the pointer is lifted or cancelled: no line
// leads through a masked region.

import {ask} from './server.js';

const trailMs = 800;
/** The number of segments whose events are kept. */
const most = 12;
const dotPx = 13;
const ringPx = 20;

export class Touches {
  isOn = true;
  /** Describes the pointers that are down, for screen readers. */
  text = '';

  #canvas;
  #session;
  #changed;
  /** The events by segment; undefined while they are fetched. The segment asked for last comes last. */
  #loaded = new Map();
  #still = window.matchMedia('(prefers-reduced-motion: reduce)');

  /** @param changed - called when events have arrived. */
  constructor(canvas, session, changed) {
    this.#canvas = canvas;
    this.#session = session;
    this.#changed = changed;
    this.#still.addEventListener('change', changed);
  }

  /** Whether the session has any. */
  get exist() {
    return this.#session.segments.some(segment => segment.touches > 0);
  }

  /**
   * Draws the pointers at a time.
   * @param segment - the segment on screen; undefined to draw nothing.
   */
  show(segment, ms) {
    const lines = this.isOn && segment ? this.#lines(segment, ms) : [];
    const down = lines.filter(line => line.isDown);
    this.#draw(lines, ms);
    this.text = down.map(place).join('; ');
    const {dataset} = this.#canvas;
    [dataset.down, dataset.lines] = [down.length, lines.length];
    const label = this.text || 'trail of a pointer';
    if (this.#canvas.getAttribute('aria-label') !== label) this.#canvas.setAttribute('aria-label', label);
    this.#canvas.hidden = lines.length === 0;
  }

  /** Returns the lines that are visible at a time, each with its points, and whether its pointer is down. */
  #lines(segment, ms) {
    const {segments} = this.#session;
    const [before, after] = [segments[segment.index - 1], segments[segment.index + 1]];
    for (const wanted of [before, segment, after]) if (wanted?.touches > 0) this.#load(wanted);
    let lines = [];
    const open = new Map();
    for (const part of [before, segment]) {
      // A trail begins in the segment before, unless the picture was turned since.
      if (part === segment && before && (before.width !== segment.width || before.height !== segment.height)) {
        lines = [...open.values()];
        for (const line of lines) line.points = [];
      }
      for (const {offsetMs, kind, pointer, x, y} of this.#loaded.get(part) ?? []) {
        const atMs = part.atMs + offsetMs;
        if (atMs > ms || atMs >= part.endMs) break;
        let line = kind === 'down' ? undefined : open.get(pointer);
        if (!line) {
          const last = open.get(pointer);
          if (last) last.isDown = false;
          lines.push((line = {points: [], isDown: false}));
          open.set(pointer, line);
        }
        line.points.push({atMs, x, y, isPress: kind === 'down'});
        if (kind === 'down') line.isDown = true;
        if (kind === 'up' || kind === 'cancel') {
          line.isDown = false;
          open.delete(pointer);
        }
      }
    }
    return lines.filter(({points, isDown}) => points.length && (isDown || points.at(-1).atMs > ms - trailMs));
  }

  #draw(lines, ms) {
    const canvas = this.#canvas;
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [canvas.parentElement.clientWidth, canvas.parentElement.clientHeight];
    const [pixelWidth, pixelHeight] = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== pixelWidth) canvas.width = pixelWidth;
    if (canvas.height !== pixelHeight) canvas.height = pixelHeight;
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const isStill = this.#still.matches;
    for (const {points, isDown} of lines) {
      const places = points.map(point => ({...point, x: point.x * width, y: point.y * height}));
      const strength = ({atMs}) => Math.max(0, 1 - (ms - atMs) / trailMs);
      for (const point of places) {
        const visible = isStill ? Number(strength(point) > 0) : strength(point);
        if (point.isPress && visible) this.#circle(point, ringPx, visible, false);
      }
      // Two colours, one of which contrasts with any picture.
      for (const [colour, lineWidth] of isStill ? [] : [['#fff', 6], ['#0f766e', 3]]) {
        places.forEach((point, index) => {
          const before = places[index - 1];
          if (!before || point.atMs - before.atMs > trailMs) return;
          this.#line(before, point, strength(point), colour, lineWidth);
        });
      }
      if (isDown) this.#circle(places.at(-1), dotPx, 1, true);
    }
    context.globalAlpha = 1;
  }

  #line(from, to, alpha, colour, width) {
    if (alpha === 0) return;
    const context = this.#canvas.getContext('2d');
    context.globalAlpha = alpha;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }

  #circle({x, y}, radius, alpha, isFilled) {
    const context = this.#canvas.getContext('2d');
    context.globalAlpha = alpha;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    if (isFilled) {
      context.fillStyle = '#0f766e';
      context.fill();
    }
    for (const [colour, width] of isFilled ? [['#fff', 3]] : [['#fff', 5], ['#0f766e', 2.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.stroke();
    }
  }

  /** Fetches the events of a segment once. */
  #load(segment) {
    const isKnown = this.#loaded.has(segment);
    const events = this.#loaded.get(segment);
    this.#loaded.delete(segment);
    this.#loaded.set(segment, events);
    if (isKnown) return;
    if (this.#loaded.size > most) this.#loaded.delete(this.#loaded.keys().next().value);
    ask(this.#session.path + segment.file.replace(/\.mp4$/, '.json'))
      .then(response => response.json())
      .then(manifest => positions(manifest.touches), () => [])
      .then(found => {
        if (this.#loaded.has(segment)) this.#loaded.set(segment, found);
        this.#changed();
      });
  }
}

/** Returns the events of a manifest, with positions from 0 to 1 in the picture. */
function positions(touches) {
  const {width, height, events} = touches ?? {};
  if (!(width > 0 && height > 0) || !Array.isArray(events)) return [];
  return events
    .filter(event => Array.isArray(event) && [0, 2, 3, 4].every(index => Number.isFinite(event[index])))
    .map(([offsetMs, kind, pointer, x, y]) => ({offsetMs, kind, pointer, x: x / width, y: y / height}));
}

const percent = part => `${Math.round(100 * part)} %`;

/** Describes the place of a pointer. */
function place({points}) {
  const {x, y} = points.at(-1);
  return `touched at ${percent(x)} from the left, ${percent(y)} from the top`;
}
