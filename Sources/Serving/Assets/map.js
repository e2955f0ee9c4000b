// Draws a session's time, or a part of it, on a canvas: a tick for each capture, long holds, hatched gaps, and symbols
// for rotations and unplayable segments. A curve below the ticks shows the changed area. Times are local. One pixel may represent
// many captures. Removed segments are left out.

import {curve} from './changes.js';
import {lastIndex} from './session.js';
import {clock, day, roundUp} from './time.js';

const labelSteps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000, 86_400_000, 604_800_000,
];
const [labelHeight, markHeight] = [20, 12];
const dayMs = 86_400_000;
/** The part of the bar that the curve takes. */
const laneShare = 0.45;
/** The least distance of labels, in pixels. */
const apart = 8;

export class SessionMap {
  #canvas;
  #session;
  #context;

  constructor(canvas, session) {
    this.#canvas = canvas;
    this.#session = session;
    this.#context = canvas.getContext('2d');
  }

  get width() {
    return this.#canvas.clientWidth;
  }

  /**
   * @param view - {fromMs, toMs}, from the session's start.
   * @param lost - segments that cannot be shown.
   * @param hasLabels - whether times are drawn above the map.
   */
  draw(view, lost, hasLabels) {
    const canvas = this.#canvas;
    const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    const context = this.#context;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(canvas);
    const colour = name => style.getPropertyValue(`--${name}`).trim();
    const x = ms => ((ms - view.fromMs) / (view.toMs - view.fromMs)) * width;
    const top = hasLabels ? labelHeight + markHeight : 2;
    const bar = {top, height: height - top - 2};
    const isSeen = part => part.endMs > view.fromMs && part.atMs < view.toMs;

    for (const segment of this.#seen(this.#session.segments, view)) {
      if (!isSeen(segment) || segment.isGone) continue;
      context.fillStyle = colour('hold');
      context.fillRect(x(segment.atMs), bar.top, x(segment.endMs) - x(segment.atMs), bar.height);
    }
    for (const gap of this.#session.gaps.filter(isSeen)) {
      this.#hatch(x(gap.atMs), x(gap.endMs), bar, colour('gap'), colour('gap-line'));
    }
    const lane = this.#session.hasChanges ? Math.round(bar.height * laneShare) : 0;
    this.#ticks(view, width, {top, height: bar.height - lane}, colour('tick'));
    if (lane) this.#curve(view, width, {bottom: top + bar.height, height: lane - 2}, colour('change'));
    for (const segment of lost.filter(isSeen)) {
      this.#hatch(x(segment.atMs), x(segment.endMs), bar, colour('bad-soft'), colour('bad'));
    }
    if (!hasLabels) return;
    for (const segment of this.#session.turns.filter(isSeen)) this.#diamond(x(segment.atMs), labelHeight, colour('turn'));
    for (const {atMs, segment, isExact} of this.#session.refusals) {
      if (isSeen(segment)) this.#wedge(x(atMs) + (isExact ? 0 : 7), labelHeight, colour('bad'));
    }
    this.#labels(view, width, x, colour('dim'), colour('line'));
  }

  #seen(sorted, view) {
    return sorted.slice(Math.max(0, lastIndex(sorted, view.fromMs)), lastIndex(sorted, view.toMs) + 1);
  }

  #ticks(view, width, bar, colour) {
    const columns = new Uint32Array(Math.ceil(width) + 1);
    const seen = this.#seen(this.#session.steps, view);
    let most = 1;
    for (const step of seen) {
      if (step.segment.isGone) continue;
      const column = Math.floor(((step.atMs - view.fromMs) / (view.toMs - view.fromMs)) * width);
      if (column >= 0 && column < columns.length) most = Math.max(most, ++columns[column]);
    }
    const context = this.#context;
    context.fillStyle = colour;
    // With ticks everywhere they are paler, and pixels with more captures stay visible.
    const crowd = Math.min(1, Math.max(0.4, width / 2 / seen.length));
    columns.forEach((count, column) => {
      if (!count) return;
      context.globalAlpha = crowd * (0.4 + (0.6 * count) / most);
      context.fillRect(column, bar.top, 1.5, bar.height);
    });
    context.globalAlpha = 1;
  }

  #curve(view, width, {bottom, height}, colour) {
    const context = this.#context;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(0, bottom);
    curve(this.#seen(this.#session.steps, view), view, width).forEach((share, column) => {
      context.lineTo(column + 0.5, bottom - share * height);
    });
    context.lineTo(width, bottom);
    context.fill();
  }

  #hatch(from, to, bar, ground, line) {
    const context = this.#context;
    // A gap narrower than a pixel stays visible.
    const [left, width] = [Math.max(from, -20), Math.min(Math.max(to - from, 1.5), this.width + 40 - Math.max(from, -20))];
    context.save();
    context.beginPath();
    context.rect(left, bar.top, width, bar.height);
    context.clip();
    context.fillStyle = ground;
    context.fill();
    context.strokeStyle = line;
    context.lineWidth = 1.5;
    context.beginPath();
    for (let start = Math.floor((left - bar.height) / 8) * 8; start < left + width; start += 8) {
      context.moveTo(start, bar.top + bar.height);
      context.lineTo(start + bar.height, bar.top);
    }
    context.stroke();
    context.restore();
  }

  #diamond(x, y, colour) {
    this.#shape(colour, [[x, y], [x + 5, y + 5], [x, y + 10], [x - 5, y + 5]]);
  }

  #wedge(x, y, colour) {
    this.#shape(colour, [[x - 5, y + 1], [x + 5, y + 1], [x, y + 10]]);
  }

  #shape(colour, points) {
    const context = this.#context;
    context.fillStyle = colour;
    context.beginPath();
    for (const point of points) context.lineTo(...point);
    context.fill();
  }

  #labels(view, width, x, colour, line) {
    const context = this.#context;
    const least = ((view.toMs - view.fromMs) / width) * 96;
    const step = labelSteps.find(step => step >= least) ?? labelSteps.at(-1);
    const start = this.#session.startMs;
    context.font = `12px ${getComputedStyle(this.#canvas).fontFamily}`;
    context.textBaseline = 'top';
    let freeFrom = 0;
    const end = start + view.toMs;
    for (let at = roundUp(start + view.fromMs, step); at <= end; at += step) {
      const left = Math.round(x(at - start));
      context.fillStyle = line;
      context.fillRect(left, 0, 1, this.#canvas.clientHeight);
      context.fillStyle = colour;
      const text = label(at, step, view.toMs - view.fromMs);
      const length = context.measureText(text).width;
      // The last label is left of its line if there is no room on the right, and replaces the label before it.
      const isLast = at + step > end && left + 5 + length >= width;
      const next = Math.round(x(at + step - start));
      const isCovered = at + step <= end && next + 5 + length >= width && next - 5 - length < left + 5 + length + apart;
      if (isLast && left - 5 - length >= freeFrom + apart) context.fillText(text, left - 5 - length, 2);
      else if (!isLast && !isCovered) {
        context.fillText(text, left + 5, 2);
        freeFrom = left + 5 + length;
      }
    }
  }
}

/** Returns the text of a label: a time, a day and a time where the map shows more than a day, or a day. */
function label(ms, stepMs, spanMs) {
  if (stepMs >= dayMs) return day(ms).slice(5);
  const time = clock(ms).slice(0, stepMs < 1000 ? 12 : stepMs < 60_000 ? 8 : spanMs > dayMs ? 5 : 8);
  return spanMs > dayMs ? `${day(ms).slice(5)} ${time}` : time;
}
