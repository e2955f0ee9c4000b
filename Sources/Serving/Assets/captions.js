// The labels of the moment over the picture. Their texts come from producers: they are shown as they are.

import {element} from './text.js';

export class Captions {
  isOn = true;
  #box;
  #session;
  #shown = '';

  constructor(box, session) {
    [this.#box, this.#session] = [box, session];
  }

  /** Whether the session has any. */
  get exist() {
    return this.#session.captions.length > 0;
  }

  /** @param ms - from the session's start; undefined to show nothing. */
  show(ms) {
    const captions = this.isOn && ms !== undefined ? this.#session.captionsAt(ms) : [];
    const key = JSON.stringify(captions.map(({kind, text}) => [kind, text]));
    if (key === this.#shown) return;
    this.#shown = key;
    this.#box.hidden = captions.length === 0;
    // Each text has its own direction, and leaves that of the others.
    this.#box.replaceChildren(...captions.map(({kind, level, text}) => element('span', {
      className: kind === 'error' || level === 'error' ? 'is-error' : '', dir: 'auto', textContent: text,
    })));
  }
}
