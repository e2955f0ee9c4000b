// Follows a session in progress: asks for its timeline again every few seconds while the page is visible.

import {ask} from './server.js';

const leastMs = 5_000;
/** A long timeline is asked for less often: this long for each megabyte. */
const perMegabyteMs = 5_000;
const quietMs = 60_000;

export class Follower {
  #session;
  #renewed;
  #tag;
  #waitMs = leastMs;

  /**
   * @param tag - the ETag of the timeline that the session was made from.
   * @param isLive - tells whether new pictures are to be expected.
   * @param renewed - called with the former length when the session has changed.
   */
  constructor(session, tag, isLive, renewed) {
    this.#session = session;
    this.#tag = tag;
    this.#renewed = renewed;
    const wait = () => {
      if (!session.isComplete) setTimeout(turn, isLive() ? this.#waitMs : Math.max(this.#waitMs, quietMs));
    };
    const turn = () => this.#look().then(wait);
    wait();
    document.addEventListener('visibilitychange', () => session.isComplete || this.#look());
  }

  #isLooking = false;
  #hurriedAt = -Infinity;

  /** Asks at once, since a picture could not be loaded: its segment may be gone, or have another name. */
  hurry() {
    if (this.#session.isComplete || performance.now() - this.#hurriedAt < leastMs) return;
    this.#hurriedAt = performance.now();
    this.#look();
  }

  async #look() {
    if (this.#isLooking || document.visibilityState !== 'visible') return;
    this.#isLooking = true;
    try {
      const response = await ask(`${this.#session.path}timeline.json`);
      const tag = response.headers.get('ETag');
      if (tag !== this.#tag) this.#take(await response.text(), tag);
    } catch {
      // The server is down, or the session is gone: the picture that cannot be loaded says so.
    } finally {
      this.#isLooking = false;
    }
  }

  #take(text, tag) {
    const {lengthMs} = this.#session;
    this.#waitMs = Math.max(leastMs, (text.length / 1e6) * perMegabyteMs);
    // The address has the instant.
    if (!this.#session.update(JSON.parse(text))) return location.reload();
    this.#tag = tag;
    this.#renewed(lengthMs);
  }
}
