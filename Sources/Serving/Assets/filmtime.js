// The form that goes to a time of a part's film, and tells the film's time of the picture on screen.

import {FilmMap} from './filmmap.js';
import {ask} from './server.js';
import {exact} from './text.js';

/** The map is asked for when the part has stayed the same for this long. */
const quietMs = 400;

export class FilmTime {
  #output;
  #address;
  #nowMs;
  #changed;
  /** The address of the map asked for last, and the map once it is there. */
  #asked;
  #map;
  #timer;
  /** The request for a map: {address, end, map}; `map` is a promise. */
  #request;
  /** Why a time led nowhere, and the instant on the page then: {text, nowMs}. */
  #answer;

  /**
   * @param root - the form: an input, and an output for the time of the picture on screen.
   * @param address - returns the address of the map of the film.
   * @param nowMs - returns the instant that the page shows, in unix milliseconds.
   * @param go - called with an instant, in unix milliseconds.
   * @param say - called with a sentence if there is none.
   * @param changed - called when there is something else to show.
   */
  constructor(root, address, nowMs, go, say, changed) {
    this.#output = root.querySelector('output');
    this.#address = address;
    this.#nowMs = nowMs;
    this.#changed = changed;
    const input = root.querySelector('input');
    root.addEventListener('submit', event => {
      event.preventDefault();
      this.#find(input.value).then(go, error => {
        if (error.name === 'AbortError') return;
        this.#answer = {text: error.message, nowMs: nowMs()};
        say(error.message);
        changed();
      });
    });
  }

  /** Returns the instant at a time of the film. */
  async #find(text) {
    const ms = readFilmTime(text);
    if (ms === undefined) throw new Error('Write a time of the film in seconds, or as 1:02.5.');
    const map = (this.#asked === this.#address() && this.#map) || (await this.#load(this.#address()));
    const unixMs = map.unixMs(ms);
    if (unixMs === undefined) throw new Error(`The film ends at ${exact(Math.floor(map.durationMs))}.`);
    return unixMs;
  }

  /** Returns the map at an address. It ends the request for another one, and joins the one for the same. */
  #load(address) {
    if (this.#request?.address === address) return this.#request.map;
    this.#request?.end.abort();
    const end = new AbortController();
    const request = {address, end, map: this.#read(address, end.signal)};
    this.#request = request;
    const forget = () => {
      if (this.#request === request) this.#request = undefined;
    };
    request.map.then(forget, forget);
    return request.map;
  }

  async #read(address, signal) {
    const map = new FilmMap(await (await ask(address, signal)).json());
    if (address === this.#asked) this.#map = map;
    return map;
  }

  /** Shows the film's time of the picture on screen. Call it while the form is in sight. */
  update() {
    const address = this.#address();
    if (address !== this.#asked) {
      this.#asked = address;
      this.#map = undefined;
      clearTimeout(this.#timer);
      // A film that cannot be made has no time to show; the form says why.
      this.#timer = setTimeout(() => this.#load(address).then(this.#changed, () => {}), quietMs);
    }
    const nowMs = this.#nowMs();
    if (this.#answer?.nowMs !== nowMs) this.#answer = undefined;
    const ms = this.#map?.filmMs(nowMs);
    const text = this.#answer?.text ?? (!this.#map ? '–' : ms === undefined ? 'not in the film' : `now ${exact(Math.floor(ms))}`);
    if (this.#output.textContent !== text) this.#output.textContent = text;
  }
}

/** Reads 62.5, 1:02.5 or 0:01:02.5. Returns milliseconds; undefined for other text. */
export function readFilmTime(text) {
  const form = /^(?:(?:(\d{1,4}):)?(\d{1,4}):)?(\d{1,9}(?:[.,]\d{1,6})?)$/;
  const [, hours = 0, minutes = 0, seconds] = text.trim().match(form) ?? [];
  if (seconds === undefined) return undefined;
  return (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds.replace(',', '.'))) * 1000;
}
