// The list of a session's labels, gaps, rotations, refused frames and unplayable segments; hidden without any. A click on an entry
// seeks to it. The list follows the picture; labels can be filtered by kind and level.

import {weight} from './lanes.js';
import {lastIndex} from './session.js';
import {element, exact, kindTitle, naming} from './text.js';
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
  /** The entries that pass the filter, in order. */
  #notes = [];
  #positionMs = 0;
  #current;
  #filter;
  #kind;
  #level;

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
    [this.#filter, this.#kind, this.#level] = ['note-filter', 'note-kind', 'note-level'].map(id => document.getElementById(id));
    for (const choice of [this.#kind, this.#level]) choice.addEventListener('change', () => this.#show(this.#failed));
    this.refresh();
  }

  /** Reads the session again. */
  refresh() {
    const session = this.#session;
    const all = [...labels(session), ...gaps(session), ...turns(session), ...refusals(session), ...problems(session)];
    this.#fixed = all.filter(({atMs}) => atMs >= session.keptMs);
    this.#offer();
    this.#show(this.#failed);
  }

  /** Offers the kinds that the session has. */
  #offer() {
    const kinds = [...new Set(this.#session.labels.map(({kind}) => kind))];
    this.#filter.hidden = kinds.length === 0;
    if (this.#kind.options.length === kinds.length + 1) return;
    const chosen = this.#kind.value;
    this.#kind.replaceChildren(...['', ...kinds].map(kind => element('option', {value: kind, textContent: kind ? kindTitle(kind) : 'all'})));
    this.#kind.value = kinds.includes(chosen) ? chosen : '';
  }

  /** Marks the entry of the picture on screen, the last one before or at a time, and scrolls to it. */
  set positionMs(ms) {
    this.#positionMs = ms;
    const index = lastIndex(this.#notes, ms);
    if (index >= this.#limit) {
      this.#limit = index + atOnce;
      return this.#show(this.#failed);
    }
    const row = this.#list.children[index]?.firstChild;
    if (row === this.#current) return;
    this.#current?.removeAttribute('aria-current');
    this.#current = row;
    row?.setAttribute('aria-current', 'true');
    // The list stays where a person is in it.
    if (!row || this.#card.matches(':hover') || this.#card.contains(document.activeElement)) return;
    const [card, own] = [this.#card.getBoundingClientRect(), row.getBoundingClientRect()];
    if (own.top < card.top) this.#card.scrollTop -= card.top - own.top;
    else if (own.bottom > card.bottom) this.#card.scrollTop += own.bottom - card.bottom;
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
    const all = [...this.#fixed, ...lost].sort((one, other) => one.atMs - other.atMs);
    this.#card.hidden = all.length === 0;
    const [kind, level] = [this.#kind.value, Number(this.#level.value)];
    const notes = all.filter(({label}) => (!kind && !level) || (label && (!kind || label.kind === kind) && weight(label) >= level));
    this.#notes = notes;
    this.#list.replaceChildren(...notes.slice(0, this.#limit).map(note => this.#row(note)));
    this.#more.hidden = notes.length <= this.#limit;
    this.#more.textContent = `Show more (${notes.length - this.#limit})`;
    this.#current = undefined;
    this.positionMs = this.#positionMs;
  }

  #row({kind, atMs, title, text, when}) {
    const row = element('button', {type: 'button', className: `note ${kind}`});
    row.append(
      element('i', {className: `swatch ${kind}`}),
      element('span', {className: 'note-title', textContent: title}),
      element('span', {className: 'note-time', textContent: when ?? clock(this.#session.startMs + atMs), title: utc(this.#session.startMs + atMs)}),
      element('span', {className: 'note-text', dir: 'auto', textContent: text}));
    row.addEventListener('click', () => this.#go(atMs));
    return element('li', {}, row);
  }
}

const labels = session => session.labels.map(label => ({
  label, kind: ['label', 'warning', 'error'][weight(label)], title: kindTitle(label.kind), text: label.text,
  when: clock(label.timeMs),
  // A label may lie beyond the last picture.
  atMs: Math.min(label.atMs, Math.max(session.keptMs, session.shownMs - 1)),
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
