// Plays a session as HLS in browsers with an HLS player and no Media Source Extensions. Some omit gaps from their time.

export class PlaylistMedia {
  #video;
  #session;
  #error;
  isSent = true;

  constructor(video, session, changed) {
    this.#video = video;
    this.#session = session;
    video.addEventListener('error', () => {
      this.#error = new Error(video.error?.message || 'the browser cannot play it');
      changed();
    });
    video.addEventListener('loadeddata', changed);
  }

  static isPossible(video) {
    return video.canPlayType('application/vnd.apple.mpegurl') !== '';
  }

  async open() {
    const opened = new Promise(resolve => {
      for (const name of ['loadedmetadata', 'error']) this.#video.addEventListener(name, resolve, {once: true});
    });
    this.#video.src = `${this.#session.path}session.m3u8`;
    this.#video.load();
    await opened;
  }

  /** Returns the milliseconds of gaps that the browser omits before a time of the session. */
  #leftOutMs(ms) {
    const gaps = this.#session.gaps.filter(gap => gap.endMs <= this.#session.shownMs);
    const all = gaps.reduce((sum, gap) => sum + gap.endMs - gap.atMs, 0);
    if (this.#video.duration * 1000 > this.#session.shownMs - all / 2) return 0;
    return gaps.filter(gap => gap.endMs <= ms).reduce((sum, gap) => sum + gap.endMs - gap.atMs, 0);
  }

  /** Converts a time of the video to session time. */
  sessionMs(seconds) {
    let ms = seconds * 1000;
    for (const gap of this.#session.gaps) {
      if (this.#leftOutMs(gap.endMs) && gap.atMs <= ms) ms += gap.endMs - gap.atMs;
    }
    return ms;
  }

  show(ms) {
    this.#video.currentTime = (ms - this.#leftOutMs(ms)) / 1000;
  }

  failure() {
    return this.#error;
  }

  get failures() {
    return this.#error ? [{segment: this.#session.segments[0], error: this.#error}] : [];
  }

  retry() {
    this.#error = undefined;
    this.open();
  }

  /** Opens the playlist again, after a seek that does not end. */
  reopen() {
    return this.open();
  }

  keep() {}

  /** The browser asks for the playlist of a session in progress itself. */
  renew() {}

  has() {
    return true;
  }
}
