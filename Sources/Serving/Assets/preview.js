// A small picture of the capture under the cursor. One request runs at a time: the next capture cancels it.

import {ask} from './server.js';

const delayMs = 120;
/** The number of pictures that are kept. */
const most = 100;

export class Preview {
  #canvas;
  #session;
  #arrived;
  /** Pictures by the start of their capture; the one shown last comes last. */
  #pictures = new Map();
  #wanted;
  #timer;
  #request;

  /** @param arrived - called when a picture has arrived. */
  constructor(canvas, session, arrived) {
    this.#canvas = canvas;
    this.#session = session;
    this.#arrived = arrived;
  }

  /** Shows the picture of a capture as soon as it is there; undefined for none. */
  show(step) {
    if (step && this.#wanted?.atMs === step.atMs) return;
    this.#wanted = step;
    clearTimeout(this.#timer);
    this.#request?.abort();
    this.#request = undefined;
    const picture = step && this.#pictures.get(step.atMs);
    if (picture) this.#draw(picture);
    else this.#canvas.hidden = true;
    if (step && !picture && !step.segment.isGone) this.#timer = setTimeout(() => this.#fetch(step), delayMs);
  }

  async #fetch(step) {
    const request = (this.#request = new AbortController());
    try {
      const path = `${this.#session.path}thumbnail.jpg?t=${this.#session.startMs + step.atMs}`;
      const picture = await createImageBitmap(await (await ask(path, request.signal)).blob());
      this.#pictures.set(step.atMs, picture);
      if (this.#pictures.size > most) this.#pictures.delete(this.#pictures.keys().next().value);
      if (this.#wanted === step) this.#draw(picture);
    } catch {
      // Cancelled, or damaged: the page says so where the picture is to be shown.
    }
    if (this.#request === request) this.#request = undefined;
  }

  #draw(picture) {
    const canvas = this.#canvas;
    [canvas.width, canvas.height] = [picture.width, picture.height];
    canvas.getContext('2d').drawImage(picture, 0, 0);
    canvas.hidden = false;
    this.#arrived();
  }
}
