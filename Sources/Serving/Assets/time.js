// Formats instants for people: in the browser's time zone, with UTC beside it where both differ.

const aheadMs = ms => -new Date(ms).getTimezoneOffset() * 60_000;

/** Returns ISO 8601 text that has the local date and time. */
const local = ms => new Date(ms + aheadMs(ms)).toISOString();

/** The name of the browser's time zone, such as Europe/Berlin. */
export const zoneName = Intl.DateTimeFormat().resolvedOptions().timeZone ?? 'the local zone';

const names = new Intl.DateTimeFormat('en-GB', {timeZoneName: 'short'});
const weekdays = new Intl.DateTimeFormat('en-GB', {weekday: 'short'});

/** Whether local times are those of UTC. */
export const isUTC = ms => aheadMs(ms) === 0;

/** UTC, CET, GMT-5 */
export function zone(ms) {
  if (isUTC(ms)) return 'UTC';
  return names.formatToParts(ms).find(({type}) => type === 'timeZoneName')?.value ?? 'local time';
}

/** 08:05:12.340 */
export const clock = ms => local(ms).slice(11, 23);

/** 09:05:12.340 CET */
export const zoned = ms => `${clock(ms)} ${zone(ms)}`;

/** 2026-01-08 */
export const day = ms => local(ms).slice(0, 10);

/** Thu 2026-01-08 */
export const weekday = ms => `${weekdays.format(ms)} ${day(ms)}`;

/** 2026-01-08 09:05:12.340 CET */
export const instant = ms => `${day(ms)} ${clock(ms)} ${zone(ms)}`;

/** 2026-01-08 09:05:12 CET */
export const second = ms => `${day(ms)} ${clock(ms).slice(0, 8)} ${zone(ms)}`;

/** 08:05:12.340 UTC, with the date where it differs from the local one; nothing where local times are those of UTC. */
export function utcBeside(ms) {
  if (isUTC(ms)) return '';
  const text = new Date(ms).toISOString();
  return `${text.slice(0, 10) === day(ms) ? '' : `${text.slice(0, 10)} `}${text.slice(11, 23)} UTC`;
}

/** 2026-01-08 08:05:12.340 UTC */
export function utc(ms) {
  const text = new Date(ms).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 23)} UTC`;
}

/** 2026-01-08T09:05:12.340, the form of inputs for a local date and time. */
export const inputValue = ms => local(ms).slice(0, 23);

/** Returns the first instant from `ms` on that is a multiple of a step in local time. */
export const roundUp = (ms, step) => Math.ceil((ms + aheadMs(ms)) / step) * step - aheadMs(ms);

const isoForm = /^(\d{4}-\d\d-\d\d)(?:[T ]+(\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?$/i;

/**
 * Reads an instant: unix milliseconds or seconds, or ISO 8601. Without a zone it is local time.
 * @returns unix milliseconds; undefined for other text.
 */
export function readInstant(text) {
  const written = text.trim();
  if (/^\d{12,14}$/.test(written)) return Number(written);
  if (/^\d{9,10}(\.\d{1,3})?$/.test(written)) return Math.round(Number(written) * 1000);
  const [, date, time = '00:00', zone = ''] = written.match(isoForm) ?? [];
  if (!date) return undefined;
  const offset = /^(Z|UTC|GMT)$/i.test(zone) ? 'Z' : zone && `${zone.slice(0, 3)}:${zone.slice(3).replace(':', '') || '00'}`;
  // Browsers read at least milliseconds; further digits are cut off.
  const ms = Date.parse(`${date}T${time.replace(',', '.').replace(/(\.\d{3})\d+/, '$1')}${offset}`);
  return Number.isNaN(ms) ? undefined : ms;
}
