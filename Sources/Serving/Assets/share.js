// Links to what is on screen, and downloads. A line in each button says what it copies, and afterwards what it has copied.

import {ask} from './server.js';
import {clock} from './time.js';

const $ = id => document.getElementById(id);
const shownMs = 6_000;

const copy = text => Promise.resolve(navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => true, () => false);

export class Share {
  #session;
  #playback;
  #atMs;
  #say;
  #failed;

  /**
   * @param atMs - returns the time at the playhead, from the session's start.
   * @param say - tells a text to screen readers.
   * @param failed - shows a title and a text on the page.
   */
  constructor(session, playback, atMs, say, failed) {
    this.#session = session;
    this.#playback = playback;
    this.#atMs = atMs;
    this.#say = say;
    this.#failed = failed;
  }

  get #unixMs() {
    return this.#session.startMs + this.#atMs();
  }

  get #time() {
    return clock(this.#unixMs).slice(0, 8);
  }

  /** Names the instant on the button. */
  update() {
    const words = `to this page at ${this.#time}`;
    const line = $('link-text');
    if (!line.dataset.isResult && line.textContent !== words) line.textContent = words;
  }

  async copyLink() {
    const time = this.#time;
    history.replaceState(null, '', `#t=${this.#unixMs}`);
    const isCopied = await copy(location.href);
    this.#tell('link', isCopied ? `Link to ${time} copied` : `The link to ${time} is in the address bar`);
  }

  /** Copies the address of the picture on screen, as an image. Where the browser refuses, the page shows the address. */
  async copyPictureLink() {
    const time = this.#time;
    const link = new URL(`frame.jpg?t=${this.#unixMs}`, location.href).href;
    if (this.#playback.picture === 'gap') return this.#tell('picture', 'There is no picture in a gap');
    if (await copy(link)) return this.#tell('picture', `Link to the picture of ${time} copied`);
    this.#failed('Link to this picture', link);
    this.#say('The link to the picture is shown on the page.');
  }

  /** Requests one byte first, so that a film that cannot be made shows its error. */
  async download(event, film) {
    event.preventDefault();
    const line = event.currentTarget.querySelector('span');
    const label = line.textContent;
    line.textContent = 'Preparing…';
    try {
      await ask(film, undefined, {Range: 'bytes=0-0'});
      location.assign(film);
    } catch (error) {
      const text = sentence(error.message);
      this.#failed('The film cannot be made', text);
      this.#say(text);
    }
    line.textContent = label;
  }

  /** Shows the result of a button on it for a moment. */
  #tell(id, text) {
    const line = $(`${id}-text`);
    line.dataset.text ??= line.textContent;
    line.dataset.isResult = 'true';
    line.textContent = text;
    clearTimeout(this.#timers[id]);
    this.#timers[id] = setTimeout(() => {
      delete line.dataset.isResult;
      line.textContent = line.dataset.text;
      this.update();
    }, shownMs);
    this.#say(`${text}.`);
  }

  #timers = {};
}

export const sentence = text => text + (/[.!?]$/.test(text) ? '' : '.');
