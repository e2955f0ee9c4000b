// The changed area of each capture: the share of its picture that differs from the picture before. The timeline draws it as
// a curve, and two keys go from one big change to the next. Pure.

/** The side of a block, in pixels. Blocks at the right and lower edge may be smaller. */
const blockSide = 16;
/** A big change is at least this share of the picture. */
const bigShare = 0.05;
/** Big changes that follow each other sooner than this are one change. */
const apartMs = 500;
/** The least height of a peak: a small change stays visible. */
const leastHeight = 0.1;
/** A peak of the curve falls to zero within this many pixels. */
const slope = 3;

/**
 * Returns the share of a picture's blocks that changed, from 0 to 1; undefined if it is not known.
 * @param changedBlocks - a number from `timeline.json`, null or undefined.
 */
export function changedShare(changedBlocks, {width, height}) {
  if (!Number.isInteger(changedBlocks) || changedBlocks < 0) return undefined;
  return Math.min(1, changedBlocks / (Math.ceil(width / blockSide) * Math.ceil(height / blockSide)));
}

/** Returns the captures with which a big change begins. */
export function bigChanges(steps) {
  let lastMs = -Infinity;
  return steps.filter(({atMs, change, segment}) => {
    if (segment.isGone || !(change >= bigShare)) return false;
    const beforeMs = lastMs;
    lastMs = atMs;
    return atMs - beforeMs >= apartMs;
  });
}

/**
 * Returns the height of the curve at each pixel, from 0 to 1. It is the square root of the largest share at the pixel: a
 * typed word stays visible beside a new page.
 * @param view - {fromMs, toMs}
 * @param width - in pixels.
 */
export function curve(steps, view, width) {
  const peaks = new Float32Array(Math.ceil(width) + 1);
  for (const {atMs, change, segment} of steps) {
    if (!change || segment.isGone) continue;
    const column = Math.floor(((atMs - view.fromMs) / (view.toMs - view.fromMs)) * width);
    if (column >= 0 && column < peaks.length) peaks[column] = Math.max(peaks[column], leastHeight, Math.sqrt(change));
  }
  const heights = new Float32Array(peaks.length);
  peaks.forEach((peak, column) => {
    if (!peak) return;
    for (let offset = 1 - slope; offset < slope; offset++) {
      const height = peak * (1 - Math.abs(offset) / slope);
      // Writes beyond the ends of the array have no effect.
      if (height > heights[column + offset]) heights[column + offset] = height;
    }
  });
  return heights;
}

/** 12 % of the picture, 0.4 % of the picture, nothing. */
export function areaText(change) {
  if (change === undefined) return 'not known';
  if (change === 0) return 'nothing';
  const percent = change * 100;
  const text = percent < 0.1 ? 'less than 0.1' : percent < 9.95 ? percent.toFixed(1) : Math.round(percent);
  return `${text} % of the picture`;
}
