// A recorded session: which capture is on screen at which time, in milliseconds from the session's start. Pure.

import {bigChanges, changedShare} from './changes.js';

export class Session {
  segments = [];
  gaps = [];
  /** The number of segments at the beginning that were removed since the page was loaded. */
  gone = 0;
  /** Segments whose lengths the last update has changed. */
  renewed = [];

  /**
   * @param timeline - the content of `timeline.json`.
   * @param path - of its files; ends with a slash, or is empty beside the page.
   */
  constructor(timeline, path = '') {
    this.id = timeline.session;
    this.path = path;
    /** The origin of all times. It stays when the session's start moves on. */
    this.startMs = timeline.startMs;
    this.update(timeline);
  }

  /**
   * Takes over a later timeline: segments may have gone at the beginning, and come at the end.
   * @returns false, and changes nothing, if other segments have come or gone: then the page has to be loaded again.
   */
  update(timeline) {
    const firstMs = timeline.segments[0]?.startMs ?? Infinity;
    const kept = this.segments.filter(segment => segment.startMs >= firstMs);
    if (!kept.every(({startMs}, number) => timeline.segments[number]?.startMs === startMs)) return false;
    const gone = this.segments.slice(0, this.segments.length - kept.length);
    for (const segment of gone) segment.isGone = true;
    this.gone = gone.length;
    this.renewed = kept.filter(({lengthMs}, number) => timeline.segments[number].lengthMs !== lengthMs);
    // The times in fragments begin with the timeline's start.
    const offsetMs = timeline.startMs - this.startMs;
    this.segments = [...gone, ...timeline.segments.map((facts, number) => {
      const atMs = facts.startMs - this.startMs;
      const index = gone.length + number;
      return Object.assign(kept[number] ?? {}, facts, {index, atMs, endMs: atMs + facts.lengthMs, offsetMs});
    })];
    this.gaps = [
      ...this.gaps.filter(gap => gap.endMs <= firstMs - this.startMs),
      ...timeline.gaps.map(gap => ({atMs: gap.startMs - this.startMs, endMs: gap.endMs - this.startMs}))];
    this.isComplete = timeline.complete;
    this.bytes = timeline.bytes;
    this.health = timeline.health;
    this.problems = timeline.problems ?? [];
    this.refusals = this.segments.flatMap(segment => segment.refused.map(refused => refusal(refused, segment, this.startMs)));
    this.labels = this.segments.flatMap(segment => (segment.labels ?? []).map(label => ({
      ...label, atMs: Math.max(0, label.timeMs - this.startMs),
    }))).sort((one, other) => one.atMs - other.atMs);
    this.captions = captions(this.labels, this.startMs);
    this.steps = steps(this.segments);
    /** The captures with which a big change begins. */
    this.changes = bigChanges(this.steps);
    /** Whether the changed area is known of any capture. */
    this.hasChanges = this.steps.some(({change}) => change !== undefined);
    /** The end of the last picture; a gap may follow. */
    this.shownMs = this.segments.at(-1)?.endMs ?? 0;
    /** The first time that has not gone. */
    this.keptMs = this.segments[this.gone]?.atMs ?? 0;
    this.lengthMs = Math.max(offsetMs + timeline.durationMs, this.shownMs, this.gaps.at(-1)?.endMs ?? 0);
    this.turns = this.segments.filter((segment, index) => {
      const before = this.segments[index - 1];
      return before && (before.width !== segment.width || before.height !== segment.height);
    });
    return true;
  }

  /** Returns the capture on screen at a time, or the last one before it. */
  stepAt(ms) {
    return this.steps[lastIndex(this.steps, ms)] ?? this.steps[0];
  }

  /** Returns the segment with the picture of a time; undefined in a gap and beyond the end. */
  segmentAt(ms) {
    const segment = this.segments[lastIndex(this.segments, ms)];
    return segment && ms < segment.endMs ? segment : undefined;
  }

  /**
   * Returns the nearest big change behind a time, or before it; undefined if there is none.
   * @param direction - 1 for behind, -1 for before.
   */
  changeNear(ms, direction) {
    const index = lastIndex(this.changes, ms);
    return this.changes[direction > 0 ? index + 1 : this.changes[index]?.atMs === ms ? index - 1 : index];
  }

  /** Returns the captions over the picture at a time: the latest three. */
  captionsAt(ms) {
    return this.captions.slice(0, lastIndex(this.captions, ms) + 1).filter(({endMs}) => endMs > ms).slice(-3);
  }

  gapAt(ms) {
    const gap = this.gaps[lastIndex(this.gaps, ms)];
    return gap && ms < gap.endMs ? gap : undefined;
  }

  /** Returns the seek target for a time: the middle of a capture, not its edge. */
  place(wantedMs) {
    const ms = Math.min(Math.max(0, wantedMs), this.lengthMs);
    const step = this.stepAt(ms);
    if (step.atMs === ms) return this.target(step);
    return ms >= this.shownMs && !this.gapAt(ms) ? this.target(this.steps.at(-1)) : ms;
  }

  /** Returns the segment at a time, or the first one after it. */
  segmentFrom(ms) {
    return this.segmentAt(ms) ?? this.segments[lastIndex(this.segments, ms) + 1];
  }

  /** Returns the seek target of a capture: inside its hold, so that rounding by the browser does no harm. */
  target(step) {
    return step.atMs + Math.min(1, (step.endMs - step.atMs) / 2);
  }
}

/**
 * Returns the labels that are shown over the picture, as films show them: a caption for its span, a step and an error until the next one,
 * for five seconds at most, or for its span.
 */
function captions(labels, startMs) {
  const shown = labels.filter(({kind}) => ['caption', 'step', 'error'].includes(kind));
  let [next, later] = [Infinity, Infinity];
  return shown.toReversed().map(label => {
    if (later > label.atMs) next = later;
    later = label.atMs;
    const heldMs = Math.min(next, label.atMs + 5_000);
    const ownMs = label.endMs === undefined ? undefined : label.endMs - startMs;
    return {...label, endMs: label.kind === 'caption' ? ownMs ?? heldMs : Math.max(ownMs ?? 0, heldMs)};
  }).reverse();
}

/** Returns the captures in order, each with its time on screen. A continued frame belongs to its capture. */
function steps(segments) {
  const steps = [];
  for (const segment of segments) {
    let at = segment.atMs;
    segment.frames.forEach((frame, index) => {
      const isLast = index + 1 === segment.frames.length;
      const endMs = isLast ? segment.endMs : Math.min(at + frame.holdMs, segment.endMs);
      // At the end of a batch, the picture is held until the next batch, or cut short by it.
      const seamMs = isLast ? endMs - at - frame.holdMs : 0;
      const last = steps.at(-1);
      // A continued frame without its original is a capture of its own.
      if (frame.status === 'continued' && last?.timeMs === frame.timeMs && last.endMs === at) Object.assign(last, {endMs, seamMs});
      else if (endMs > at) {
        const change = frame.status === 'captured' ? changedShare(segment.changedBlocks?.[index], segment) : undefined;
        steps.push({index: steps.length, atMs: at, endMs, seamMs, timeMs: frame.timeMs, source: frame.source, segment, change});
      }
      at = endMs;
    });
  }
  return steps;
}

/** Describes a refused frame. Its time comes from its name; without one, it is that of its segment. */
function refusal({source, reason}, segment, startMs) {
  const atMs = Number(source.match(/(?:^|\D)(\d{13})(?:\D|$)/)?.[1]) - startMs;
  // The time may be after the segment's last picture; a number that is far away is not a time.
  const isExact = atMs >= 0 && Math.abs(atMs - segment.atMs) < 3_600_000;
  return {source, reason, segment, isExact, atMs: isExact ? atMs : segment.atMs};
}

/** Returns the index of the last element that begins at or before a time; -1 if there is none. */
export function lastIndex(sorted, ms) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle].atMs <= ms) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
