// The list of a session's labels, gaps, rotations, refused frames and unplayable segments; hidden without any. A click on an entry
// seeks to it.

import {element, exact, naming} from './text.js';
import {clock, utc} from './time.js';

const atOnce = 100;

export class Notes {
  #session;
  #list;
  #card;
  #more;
  #go;
  #lost = '';
  #limit = atOnce;
  #fixed;

  /** @param go - called with milliseconds from the session's start. */
  constructor(session, go) {
    this.#session = session;
    this.#go = go;
    [this.#list, this.#card, this.#more] = ['notes', 'notes-card', 'more-notes'].map(id => document.getElementById(id));
    this.#more.addEventListener('click', () => {
      const first = this.#list.children.length;
      this.#limit += 10 * atOnce;
      this.#show([]);
      this.#list.children[first]?.firstChild.focus();
    });
    this.refresh();
  }

  /** Reads the session again. */
  refresh() {
    const session = this.#session;
    const all = [...labels(session), ...gaps(session), ...turns(session), ...refusals(session), ...problems(session)];
    this.#fixed = all.filter(({atMs}) => atMs >= session.keptMs);
    this.#show(this.#failed);
  }

  /** @param failures - [{segment, error}] */
  set failures(failures) {
    if (!failures.length && !this.#lost) return;
    const key = failures.map(({segment}) => segment.index).sort().join();
    if (key === this.#lost) return;
    this.#lost = key;
    this.#show(failures);
  }

  #failed = [];

  #show(failures) {
    this.#failed = failures.length || !this.#lost ? failures : this.#failed;
    const lost = this.#failed.map(({segment, error}) => ({
      kind: 'bad', atMs: segment.atMs, title: 'Cannot be shown', text: naming(segment, error.message),
    }));
    const notes = [...this.#fixed, ...lost].sort((one, other) => one.atMs - other.atMs);
    this.#card.hidden = notes.length === 0;
    this.#list.replaceChildren(...notes.slice(0, this.#limit).map(note => this.#row(note)));
    this.#more.hidden = notes.length <= this.#limit;
    this.#more.textContent = `Show more (${notes.length - this.#limit})`;
  }

  #row({kind, atMs, title, text, when}) {
    const row = element('button', {type: 'button', className: `note ${kind}`});
    row.append(
      element('i', {className: `swatch ${kind}`}),
      element('span', {className: 'note-title', textContent: title}),
      element('span', {className: 'note-time', textContent: when ?? clock(this.#session.startMs + atMs), title: utc(this.#session.startMs + atMs)}),
      element('span', {className: 'note-text', textContent: text}));
    row.addEventListener('click', () => this.#go(atMs));
    return element('li', {}, row);
  }
}

const titles = {step: 'Step', caption: 'Caption', log: 'Log', error: 'Error', key: 'Key', page: 'Page', mark: 'Mark'};

const labels = session => session.labels.map(({kind, level, text, atMs, timeMs}) => ({
  kind: kind === 'error' || level === 'error' ? 'error' : 'label', title: titles[kind] ?? kind, text, when: clock(timeMs),
  // A label may lie beyond the last picture.
  atMs: Math.min(atMs, Math.max(session.keptMs, session.shownMs - 1)),
}));

const gaps = session => session.gaps.map(gap => ({
  kind: 'gap', atMs: gap.atMs, title: `Gap of ${exact(gap.endMs - gap.atMs)}`,
  // The gap may be a missing segment, not a pause of the recording.
  text: `nothing ${session.problems.length ? 'is there' : 'was recorded'} until ${clock(session.startMs + gap.endMs)}`,
}));

const turns = session => session.turns.map(segment => {
  const before = session.segments[segment.index - 1];
  const isTurned = before.width === segment.height && before.height === segment.width;
  return {
    kind: 'turn', atMs: segment.atMs, title: isTurned ? 'Rotated' : 'Another size',
    text: `${before.width} × ${before.height}, then ${segment.width} × ${segment.height}`,
  };
});

const refusals = session => session.refusals.map(({source, reason, segment, isExact, atMs}) => ({
  kind: 'refused', atMs, title: 'Refused frame',
  when: isExact ? undefined : `${clock(session.startMs + segment.atMs).slice(0, 8)} or later`,
  text: reason.includes(source) ? reason : `${source}: ${reason}`,
}));

// The player reports missing videos when it requests them.
const problems = session => session.problems.filter(({problem}) => !problem.startsWith('missing:')).map(({file, problem}) => {
  const atMs = Number(file.match(/\d{13}/)?.[0]) - session.startMs;
  return {
    kind: 'bad', atMs: Math.min(Math.max(0, atMs || 0), session.lengthMs), title: 'Not as it should be',
    text: naming({file}, problem),
  };
});
