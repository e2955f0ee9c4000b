// A session as HLS, for browsers that have a player for it and no Media Source Extensions. Some leave gaps out of their time.

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
    this.#video.src = 'session.m3u8';
    this.#video.load();
    await opened;
  }

  /** The time that the browser leaves out before an instant of the session. */
  #leftOutMs(ms) {
    const gaps = this.#session.gaps.filter(gap => gap.endMs <= this.#session.shownMs);
    const all = gaps.reduce((sum, gap) => sum + gap.endMs - gap.atMs, 0);
    if (this.#video.duration * 1000 > this.#session.shownMs - all / 2) return 0;
    return gaps.filter(gap => gap.endMs <= ms).reduce((sum, gap) => sum + gap.endMs - gap.atMs, 0);
  }

  /** The session's time at a time of the video. */
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

  keep() {}

  has() {
    return true;
  }
}
