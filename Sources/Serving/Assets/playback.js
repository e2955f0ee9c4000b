// The playhead's position, and the picture to show there. Normally the video's clock sets the position. A timer sets it
// during the last picture before a gap, a missing segment or the end: browsers stop there early, since no data follows.
// The timer also helps when a browser stops although the next data is buffered.

/** Timeout of a picture after a seek: then the media is opened again, if it can be. It doubles each time, and ends at the longest. */
const arrivalMs = 4000;
const longestArrivalMs = 60_000;

export class Playback {
  /** Milliseconds from the session's start. */
  positionMs = 0;
  isPlaying = false;
  hasEnded = false;
  rate = 1;

  #video;
  #session;
  #media;
  #changed;
  /** The timer of the last picture: {fromMs, since, endMs}. */
  #coasting;
  /** The time of the picture that the video shows, and the epoch of its source. */
  #presentedMs = -1;
  #presentedIn;
  #keptAt = -Infinity;
  /** Whether the user started the playback before the media was open. */
  #startsPlaying = false;
  #insisting;
  /** The wait for the picture of a seek: {since, timeoutMs}. */
  #waiting;
  /** The time of the video, and when it last changed. */
  #clock = {time: -1, since: 0};

  /** @param changed - called whenever the state changes. */
  constructor(video, session, changed) {
    this.#video = video;
    this.#session = session;
    this.#changed = changed;
    for (const name of ['seeked', 'waiting', 'playing', 'loadeddata']) video.addEventListener(name, changed);
    video.addEventListener('pause', () => this.isPlaying && !video.ended && video.src && this.pause());
    const presented = (_, picture) => {
      this.#presentedMs = this.#media?.sessionMs(picture.mediaTime) ?? -1;
      this.#presentedIn = this.#media?.epoch;
      changed();
      video.requestVideoFrameCallback(presented);
    };
    video.requestVideoFrameCallback?.(presented);
  }

  /** Opens the media, and goes where the user went meanwhile. */
  async open(media) {
    await media.open();
    this.#media = media;
    this.seek(this.positionMs);
    if (this.#startsPlaying) this.play();
  }

  /** The capture at the playhead, or the last one before it. */
  get step() {
    return this.hasEnded ? this.#session.steps.at(-1) : this.#session.stepAt(this.positionMs);
  }

  get segment() {
    return this.hasEnded ? this.#session.segments.at(-1) : this.#session.segmentAt(this.positionMs);
  }

  /** The reason why there is no picture at the playhead, if it is known. */
  get failure() {
    return this.segment && this.#media?.failure(this.segment);
  }

  /**
   * The state of the picture: `gap`, `missing`, `loading`, or `ready` when the video shows the capture at the playhead.
   */
  get picture() {
    if (!this.segment) return 'gap';
    if (this.failure) return 'missing';
    return this.#media && this.#isShown ? 'ready' : 'loading';
  }

  get #isShown() {
    const {step} = this;
    if (this.#video.seeking || this.#video.readyState < 2) return false;
    if (!this.#video.requestVideoFrameCallback) return true;
    if (this.#presentedIn !== this.#media.epoch || !this.#media.isSent) return false;
    const untilMs = this.isPlaying ? step.endMs : Math.max(step.endMs, this.#media.restMs?.(step) + 1.25 || 0);
    return this.#presentedMs > step.atMs - 0.25 && this.#presentedMs < untilMs - 0.25;
  }

  /** Seeks again. Call it when the video pauses on another picture than the requested one. */
  insist() {
    if (!this.#media || this.isPlaying || this.#insisting || this.picture !== 'loading') return;
    this.#insisting = setTimeout(() => {
      this.#insisting = undefined;
      const isResting = !this.isPlaying && !this.#video.seeking && this.#video.readyState >= 2;
      if (this.picture === 'loading' && isResting) this.#media.show(this.positionMs);
      if (this.picture === 'loading') this.#reopen();
      this.keep();
      this.#changed();
    }, 250);
  }

  /** Opens the media again after a timeout. Chromium's HLS player may wait for ever for a picture behind a gap. */
  #reopen() {
    const now = performance.now();
    this.#waiting ??= {since: now, timeoutMs: arrivalMs};
    const {since, timeoutMs} = this.#waiting;
    if (!this.#media.reopen || now - since < timeoutMs || timeoutMs > longestArrivalMs) return;
    this.#waiting = {since: now, timeoutMs: 2 * timeoutMs};
    this.#media.reopen().then(() => this.#media.show(this.positionMs));
  }

  seek(ms) {
    this.#waiting = undefined;
    const last = this.#session.steps.at(-1);
    this.positionMs = Math.max(0, Math.min(ms, this.#session.lengthMs));
    if (this.positionMs >= this.#session.lengthMs) this.positionMs = this.#session.target(last);
    this.hasEnded = false;
    this.#coasting = undefined;
    this.#clock = {time: -1, since: 0};
    if (this.segment) this.#media?.show(this.positionMs, this.isPlaying);
    this.keep();
    this.#changed();
  }

  /** Pauses on a capture. */
  show(step) {
    this.pause();
    this.seek(this.#session.target(step));
  }

  /** Steps one capture forward or back. A continued frame is not a capture of its own. */
  stepBy(direction) {
    const {steps} = this.#session;
    const isBetween = !this.hasEnded && this.positionMs >= this.step.endMs;
    const index = this.step.index + (direction < 0 && isBetween ? 0 : direction);
    this.show(steps[Math.max(0, Math.min(index, steps.length - 1))]);
  }

  /** Moves by `ms` milliseconds, and skips gaps to the next existing capture. */
  jumpBy(ms) {
    const session = this.#session;
    const target = this.positionMs + ms;
    const [first, last] = [session.steps[0], session.steps.at(-1)];
    if (target <= first.atMs) return this.seek(session.target(first));
    if (target >= session.shownMs) return this.seek(session.target(last));
    if (session.segmentAt(target)) return this.seek(target);
    const before = session.stepAt(target);
    this.seek(session.target(ms > 0 ? session.steps[before.index + 1] : before));
  }

  play() {
    this.#startsPlaying = !this.#media;
    if (!this.#media) return;
    if (this.hasEnded || this.positionMs >= this.#session.shownMs) this.seek(0);
    this.isPlaying = true;
    if (this.segment && this.#media.restMs?.(this.step)) this.#media.show(this.positionMs, true);
    this.#video.playbackRate = this.rate;
    if (!this.segment || this.#isLost(this.segment)) this.#leap(this.positionMs);
    if (this.isPlaying) {
      this.#video.play().catch(error => {
        if (error.name === 'NotAllowedError') this.pause();
      });
    }
    this.#changed();
  }

  pause() {
    this.#startsPlaying = false;
    if (!this.isPlaying) return;
    this.isPlaying = false;
    this.#coasting = undefined;
    this.#video.pause();
    this.#changed();
  }

  /** Reads the session again, which has grown. Goes on if the playback has waited at its end. */
  renew() {
    this.#media?.renew();
    if (!this.hasEnded || this.positionMs >= this.#session.shownMs) return;
    this.seek(this.#session.place(this.positionMs));
    this.play();
  }

  setRate(rate) {
    this.rate = rate;
    this.#video.playbackRate = rate;
    if (this.#coasting) this.#coast(this.#coasting.endMs);
    this.keep();
  }

  /** Fetches the next fragments. */
  keep() {
    this.#keptAt = performance.now();
    this.#media?.keep(this.positionMs, this.rate);
  }

  /** Updates the position. Call it before each repaint while the video plays. */
  tick() {
    const video = this.#video;
    if (this.#coasting) {
      const {fromMs, since, endMs} = this.#coasting;
      this.positionMs = Math.min(fromMs + (performance.now() - since) * this.rate, endMs);
      if (this.positionMs >= endMs) this.#leap(endMs);
    } else if (!this.segment || this.#isLost(this.segment)) {
      this.#leap(this.positionMs);
    } else if (!video.seeking && video.readyState >= 2) {
      // The browser may round the time of a seek by up to a millisecond.
      this.positionMs = Math.max(this.#media.sessionMs(video.currentTime), this.segment.atMs);
      this.#takeOver();
    }
    if (performance.now() - this.#keptAt > 500) this.keep();
    this.#changed();
  }

  /** Starts the timer if the browser's clock is unreliable for the current picture. */
  #takeOver() {
    const {step} = this;
    // The browser may show a picture a little early, and then stop its clock.
    const shown = this.#presentedMs > step.atMs ? this.#session.stepAt(this.#presentedMs + 0.25) : step;
    if (shown.index <= step.index + 1 && this.#endsAlone(shown)) return this.#coast(shown.endMs);
    const {currentTime} = this.#video;
    if (currentTime !== this.#clock.time) this.#clock = {time: currentTime, since: performance.now()};
    const next = this.#session.segmentAt(step.endMs);
    const stands = performance.now() - this.#clock.since > 500;
    if (stands && next && this.#media.has(this.segment) && this.#media.has(next)) this.#coast(step.endMs);
  }

  #coast(endMs) {
    this.#coasting = {fromMs: this.positionMs, since: performance.now(), endMs};
  }

  /** Whether no playable data follows up to and at a capture's end. */
  #endsAlone(step) {
    const {segments} = this.#session;
    const first = this.#session.segmentAt(Math.max(this.positionMs, step.atMs));
    for (let index = first.index + 1; segments[index]?.atMs <= step.endMs; index++) {
      if (segments[index].atMs !== segments[index - 1].endMs || this.#isLost(segments[index])) return true;
      if (segments[index].atMs === step.endMs) return false;
    }
    return this.#session.segmentAt(step.endMs) === undefined;
  }

  /** Whether playback skips a segment; it waits for segments that the network has not delivered. */
  #isLost(segment) {
    const failure = this.#media.failure(segment);
    return failure !== undefined && !failure.isPassing;
  }

  /** Continues at the next playable segment. */
  #leap(ms) {
    const {segments} = this.#session;
    let next = this.#session.segmentFrom(ms);
    while (next && this.#isLost(next)) next = segments[next.index + 1];
    if (!next) return this.#end();
    const from = Math.max(ms, next.atMs);
    const step = this.#session.stepAt(from);
    this.seek(step.atMs === from ? this.#session.target(step) : from);
  }

  #end() {
    this.isPlaying = false;
    this.#coasting = undefined;
    this.hasEnded = true;
    this.positionMs = this.#session.shownMs;
    this.#video.pause();
  }
}
