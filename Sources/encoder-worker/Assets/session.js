// A session as it was recorded: what is on screen when, in milliseconds from its start. Pure.

export class Session {
  /** @param timeline - what `timeline.json` says. */
  constructor(timeline) {
    this.id = timeline.session;
    this.startMs = timeline.startMs;
    this.isComplete = timeline.complete;
    this.bytes = timeline.bytes;
    this.segments = timeline.segments.map((segment, index) => {
      const atMs = segment.startMs - timeline.startMs;
      return {...segment, index, atMs, endMs: atMs + segment.lengthMs};
    });
    this.gaps = timeline.gaps.map(gap => ({atMs: gap.startMs - timeline.startMs, endMs: gap.endMs - timeline.startMs}));
    this.problems = timeline.problems ?? [];
    this.refusals = this.segments.flatMap(segment => segment.refused.map(refused => refusal(refused, segment, this.startMs)));
    this.steps = steps(this.segments);
    /** Where pictures end; a gap may follow. */
    this.shownMs = this.segments.at(-1)?.endMs ?? 0;
    this.lengthMs = Math.max(timeline.durationMs, this.shownMs, this.gaps.at(-1)?.endMs ?? 0);
    this.turns = this.segments.filter((segment, index) => {
      const before = this.segments[index - 1];
      return before && (before.width !== segment.width || before.height !== segment.height);
    });
  }

  /** The capture on screen at an instant, or the last one before it. */
  stepAt(ms) {
    return this.steps[lastIndex(this.steps, ms)] ?? this.steps[0];
  }

  /** The segment that has the picture of an instant; undefined in a gap and beyond the end. */
  segmentAt(ms) {
    const segment = this.segments[lastIndex(this.segments, ms)];
    return segment && ms < segment.endMs ? segment : undefined;
  }

  gapAt(ms) {
    const gap = this.gaps[lastIndex(this.gaps, ms)];
    return gap && ms < gap.endMs ? gap : undefined;
  }

  /** The first segment that is at or behind an instant. */
  segmentFrom(ms) {
    return this.segmentAt(ms) ?? this.segments[lastIndex(this.segments, ms) + 1];
  }

  /** Where to seek for a capture: inside its hold, whatever the player rounds. */
  target(step) {
    return step.atMs + Math.min(1, (step.endMs - step.atMs) / 2);
  }
}

/** Captures in order, each with how long it is on screen. A frame that is continued belongs to its capture. */
function steps(segments) {
  const steps = [];
  for (const segment of segments) {
    let at = segment.atMs;
    segment.frames.forEach((frame, index) => {
      const isLast = index + 1 === segment.frames.length;
      const endMs = isLast ? segment.endMs : Math.min(at + frame.holdMs, segment.endMs);
      // Where batches meet, the picture is held until the next one, or cut short.
      const seamMs = isLast ? endMs - at - frame.holdMs : 0;
      const last = steps.at(-1);
      // A continued frame without its original stands for itself.
      if (frame.status === 'continued' && last?.timeMs === frame.timeMs && last.endMs === at) Object.assign(last, {endMs, seamMs});
      else if (endMs > at) {
        steps.push({index: steps.length, atMs: at, endMs, seamMs, timeMs: frame.timeMs, source: frame.source, segment});
      }
      at = endMs;
    });
  }
  return steps;
}

/** A refused frame. When it was captured, only its name can say; else it is somewhere in its segment. */
function refusal({source, reason}, segment, startMs) {
  const atMs = Number(source.match(/(?:^|\D)(\d{13})(?:\D|$)/)?.[1]) - startMs;
  // It may lie behind the segment's last picture; a number that is far away is no instant.
  const isExact = atMs >= 0 && Math.abs(atMs - segment.atMs) < 3_600_000;
  return {source, reason, segment, isExact, atMs: isExact ? atMs : segment.atMs};
}

/** The last of those that begin at an instant or before it; -1 when none does. */
export function lastIndex(sorted, ms) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle].atMs <= ms) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
