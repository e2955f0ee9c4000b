// A part of a session to download: from one mark to another. Without marks it is the part that the timeline shows.

import {exact} from './text.js';

export class Part {
  #session;
  #timeline;
  #fromMs;
  #toMs;

  constructor(session, timeline) {
    this.#session = session;
    this.#timeline = timeline;
  }

  /** Marks the start. An end before it is forgotten. */
  begin(ms) {
    this.#fromMs = ms;
    if (this.#toMs <= ms) this.#toMs = undefined;
  }

  /** Marks the end. A start behind it is forgotten. */
  end(ms) {
    this.#toMs = ms;
    if (this.#fromMs >= ms) this.#fromMs = undefined;
  }

  /** From the session's start, in whole milliseconds. */
  get fromMs() {
    const {fromMs} = this.#timeline.view;
    return this.#fromMs ?? Math.floor(this.#toMs <= fromMs ? 0 : fromMs);
  }

  get toMs() {
    const {toMs} = this.#timeline.view;
    return this.#toMs ?? Math.ceil(this.#fromMs >= toMs ? this.#session.lengthMs : toMs);
  }

  get text() {
    return `+${exact(this.fromMs)} to +${exact(this.toMs)}`;
  }

  /**
   * Returns the address of its film, or of the film's map.
   * @param file - session.mp4, session.gif, session.webp or map.json
   * @param idle - the rule for idle time; empty to keep it.
   */
  address(file, speed, idle) {
    const {startMs} = this.#session;
    const options = `${speed === '1' ? '' : `&speed=${speed}`}${idle && `&idle=${idle}`}`;
    return `${file}?from=${startMs + this.fromMs}&to=${startMs + this.toMs}${options}`;
  }
}
