// The state of a session in words: live, ended, or when its last picture was. Pure.

/** A session is live if its last picture ends at most this long ago. A batch follows the one before it within less. */
const liveMs = 120_000;

const units = [
  ['year', 365.25 * 86_400_000, 2], ['month', 30.4375 * 86_400_000, 2], ['day', 86_400_000, 2], ['hour', 3_600_000, 2],
  ['minute', 60_000, 1],
];

/** 5 minutes, 47 hours, 3 days, 59 days, 2 months: a unit from two of it on. */
export function span(ms) {
  const [unit, length] = units.find(([, length, least]) => ms >= length * least) ?? units.at(-1);
  const number = Math.floor(ms / length);
  return `${number} ${unit}${number === 1 ? '' : 's'}`;
}

/**
 * Returns the state: its kind, `live`, `ended` or `quiet`, and its text.
 * @param endMs - the end of the last picture.
 * @param nowMs - by the server's clock.
 */
export function state({complete, endMs}, nowMs) {
  if (complete) return {kind: 'ended', text: 'ended'};
  const ageMs = nowMs - endMs;
  if (Math.abs(ageMs) <= liveMs) return {kind: 'live', text: 'live'};
  // The device's clock may be wrong.
  if (ageMs < 0) return {kind: 'quiet', text: `last picture ${span(-ageMs)} ahead of the server's clock`};
  return {kind: 'quiet', text: `last picture ${span(ageMs)} ago`};
}
