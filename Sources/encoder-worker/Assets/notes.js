// What a viewer should know of a session: gaps, turns, refused frames, segments that cannot be shown; each leads there.

import {clock, element, exact, naming} from './text.js';

const atOnce = 100;

export class Notes {
  #session;
  #list;
  #none;
  #more;
  #go;
  #lost = '';
  #limit = atOnce;
  #fixed;

  /** @param go - called with milliseconds from the session's start. */
  constructor(session, go) {
    this.#session = session;
    this.#go = go;
    [this.#list, this.#none, this.#more] = ['notes', 'no-notes', 'more-notes'].map(id => document.getElementById(id));
    this.#fixed = [...gaps(session), ...turns(session), ...refusals(session)];
    this.#more.addEventListener('click', () => {
      const first = this.#list.children.length;
      this.#limit += 10 * atOnce;
      this.#show([]);
      this.#list.children[first]?.firstChild.focus();
    });
    this.#show([]);
  }

  /** @param failures - [{segment, error}] */
  set failures(failures) {
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
    this.#none.hidden = notes.length > 0;
    this.#list.replaceChildren(...notes.slice(0, this.#limit).map(note => this.#row(note)));
    this.#more.hidden = notes.length <= this.#limit;
    this.#more.textContent = `Show more (${notes.length - this.#limit})`;
  }

  #row({kind, atMs, title, text}) {
    const row = element('button', {type: 'button', className: `note ${kind}`});
    row.append(
      element('i', {className: `swatch ${kind}`}),
      element('span', {className: 'note-title', textContent: title}),
      element('span', {className: 'note-time', textContent: clock(this.#session.startMs + atMs)}),
      element('span', {className: 'note-text', textContent: text}));
    row.addEventListener('click', () => this.#go(atMs));
    return element('li', {}, row);
  }
}

const gaps = session => session.gaps.map(gap => ({
  kind: 'gap', atMs: gap.atMs, title: `Gap of ${exact(gap.endMs - gap.atMs)}`,
  text: `nothing was recorded until ${clock(session.startMs + gap.endMs)}`,
}));

const turns = session => session.turns.map(segment => {
  const before = session.segments[segment.index - 1];
  const isTurned = before.width === segment.height && before.height === segment.width;
  return {
    kind: 'turn', atMs: segment.atMs, title: isTurned ? 'Rotated' : 'Another size',
    text: `${before.width} × ${before.height}, then ${segment.width} × ${segment.height}`,
  };
});

const refusals = session => session.segments.flatMap(segment => segment.refused.map(refused => ({
  kind: 'refused', atMs: segment.atMs, title: 'Refused frame',
  text: refused.reason.includes(refused.source) ? refused.reason : `${refused.source}: ${refused.reason}`,
})));
