// Formats durations and sizes for people, and makes elements.

const pad = (number, digits) => String(number).padStart(digits, '0');

/** 1.012 s, 1:02.500, 1:00:02.500: to the millisecond. */
export function exact(ms) {
  const whole = Math.round(ms);
  const [seconds, rest] = [Math.floor(whole / 1000), pad(whole % 1000, 3)];
  if (seconds < 60) return `${seconds}.${rest} s`;
  return `${long(seconds)}.${rest}`;
}

/** 12 s, 1:02, 1:00:02: for a glance. */
export function brief(ms) {
  const seconds = Math.round(ms / 1000);
  return seconds === 0 && ms > 0 ? `${ms} ms` : seconds < 60 ? `${seconds} s` : long(seconds);
}

function long(seconds) {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return (hours ? `${hours}:${pad(minutes, 2)}` : `${minutes}`) + `:${pad(seconds % 60, 2)}`;
}

/** 54.9 kB */
export function size(bytes) {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; bytes >= 1000 && unit + 1 < units.length; unit++) bytes /= 1000;
  return `${unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

/** 1 gap, 12 000 gaps */
export const count = (number, word) => `${number.toLocaleString('en-GB')} ${word}${number === 1 ? '' : 's'}`;

/** Describes the time on screen of a capture, and the effect of the next batch on it. */
export function hold({atMs, endMs, seamMs}) {
  const seam = seamMs > 0 ? `, ${exact(seamMs)} of it until the next batch` : seamMs < 0 ? `, cut short by ${exact(-seamMs)} by the next batch` : '';
  return exact(endMs - atMs) + seam;
}

/** Returns a message about a segment, with its name. */
export const naming = (segment, text) => (text.includes(segment.file) ? text : `${segment.file}: ${text}`);

const kinds = {step: 'Step', caption: 'Caption', log: 'Log', error: 'Error', key: 'Key', page: 'Page', mark: 'Mark'};

/** Returns the name of a kind of labels. Producers may have kinds of their own. */
export const kindTitle = kind => (Object.hasOwn(kinds, kind) ? kinds[kind] : kind);

/** Creates an element with its properties and children. */
export function element(name, properties = {}, ...inside) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...inside);
  return made;
}
