// Sorts sessions, and groups them by what their names begin with, and by day. Pure.

import {weekday} from './time.js';

/** The orders of sessions. Names decide between equal ones. */
export const sorts = {
  newest: (one, other) => other.startMs - one.startMs,
  oldest: (one, other) => one.startMs - other.startMs,
  name: () => 0,
  longest: (one, other) => other.durationMs - one.durationMs,
  frames: (one, other) => other.frames - one.frames,
  gaps: (one, other) => other.gaps - one.gaps,
  largest: (one, other) => other.bytes - one.bytes,
};

/** Returns a name without the numbers at its end, or without what follows its last hyphen: kiosk of kiosk-07 and kiosk-2026-11-26. */
export function prefix(name) {
  const whole = name.replace(/(?:[-_.]?\d+)+$/, '');
  if (whole !== name) return whole;
  const hyphen = name.lastIndexOf('-');
  return hyphen > 0 ? name.slice(0, hyphen) : name;
}

/** Returns the function that names a session's group. A prefix of one session alone is none. */
function titles(sessions, by) {
  const counts = new Map();
  for (const {session} of sessions) counts.set(prefix(session), (counts.get(prefix(session)) ?? 0) + 1);
  const name = ({session}) => (counts.get(prefix(session)) > 1 ? prefix(session) : '');
  const start = session => weekday(session.startMs);
  const title = {
    none: () => '',
    name: session => name(session) || 'Others',
    day: start,
    both: session => [name(session), start(session)].filter(part => part).join(' · '),
  }[by];
  return session => (session.error ? 'Cannot be read' : title(session));
}

/**
 * Returns the groups, `{title, sessions}`, in the order of their first sessions.
 * @param all - all sessions, shown or not: the filter does not move a session to another group.
 * @param shown - those to group, in order.
 * @param by - `none`, `name`, `day` or `both`.
 */
export function groups(all, shown, by) {
  const title = titles(all, by);
  const found = new Map();
  for (const session of shown) {
    const key = title(session);
    if (!found.has(key)) found.set(key, {title: key, sessions: []});
    found.get(key).sessions.push(session);
  }
  return [...found.values()];
}
