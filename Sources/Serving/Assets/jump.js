// The form that goes to a date and time.

import {clock, inputValue, instant, readInstant} from './time.js';

export class Jump {
  #input;
  #text;
  #go;
  #nowMs;
  /** The instant on the page at the last answer. */
  #saidMs;

  /**
   * @param root - the form: an input, and an element for the answer.
   * @param nowMs - returns the instant that the page shows, in unix milliseconds.
   * @param go - called with the instant. Returns a sentence about where it has led.
   */
  constructor(root, nowMs, go) {
    this.#input = root.querySelector('input');
    this.#text = document.getElementById('jump-text');
    this.#nowMs = nowMs;
    this.#go = go;
    this.#input.addEventListener('focus', () => (this.#input.value ||= this.#written(this.#nowMs())));
    this.#input.addEventListener('blur', () => this.#input.value === this.#written(this.#nowMs()) && (this.#input.value = ''));
    root.addEventListener('submit', event => {
      event.preventDefault();
      this.to(this.#input.value);
    });
    // The input itself takes no other text than its own parts.
    this.#input.addEventListener('paste', event => {
      const text = event.clipboardData?.getData('text') ?? '';
      if (readInstant(text) === undefined) return;
      event.preventDefault();
      this.to(text);
    });
  }

  #written = ms => (this.#input.type === 'datetime-local' ? inputValue(ms) : instant(ms).slice(0, 23));

  focus() {
    this.#input.focus();
  }

  /** Goes to the instant that a text names. */
  to(text) {
    const ms = readInstant(text);
    if (ms === undefined) {
      this.say('Write a date and time, or paste unix milliseconds or ISO 8601.');
      return;
    }
    this.say(this.#go(ms));
    this.#input.value = this.#written(this.#nowMs());
  }

  /** Takes the answer away once the page shows another instant. */
  update() {
    if (this.#text.textContent && this.#nowMs() !== this.#saidMs) this.#text.textContent = '';
  }

  /** Shows a sentence until the page shows another instant. */
  say(text) {
    this.#saidMs = this.#nowMs();
    this.#text.textContent = text;
  }
}

/**
 * Finds the place in a session for an instant.
 * @returns the time from the session's start, and a sentence if it is another instant than the one asked for.
 */
export function landing(session, unixMs) {
  const ms = unixMs - session.startMs;
  const [first, last] = [session.steps.find(step => !step.segment.isGone) ?? session.steps[0], session.steps.at(-1)];
  const at = step => clock(session.startMs + step.atMs);
  if (ms < first.atMs) {
    const begin = session.gone ? 'Earlier pictures are no longer kept' : 'The session begins later';
    return {ms: session.target(first), text: `${begin}. The nearest picture is the first one, ${instant(session.startMs + first.atMs)}.`};
  }
  if (session.segmentAt(ms)) return {ms: session.place(ms), text: ''};
  const gap = session.gapAt(ms);
  const next = session.steps[session.stepAt(ms).index + 1];
  if (gap && next) {
    const ends = `from ${clock(session.startMs + gap.atMs)} to ${clock(session.startMs + gap.endMs)}`;
    return {ms: session.target(next), text: `Nothing was recorded ${ends}. This is the first picture after that, ${at(next)}.`};
  }
  return {
    ms: session.target(last),
    text: `The session ends earlier. The nearest picture is the last one, ${instant(session.startMs + last.atMs)}.`,
  };
}
