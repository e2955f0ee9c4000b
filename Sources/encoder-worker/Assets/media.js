// A session's fragments, handed to the browser by Media Source Extensions: only those around the playhead are fetched and
// kept. Media time is session time. A segment that cannot be had is remembered with the reason; the others play.

import {ask} from './text.js';

const Source = window.MediaSource ?? window.ManagedMediaSource;

const aheadMs = 30_000;
const behindMs = 20_000;
/** Beyond this, what was fetched goes. */
const keptMs = 90_000;
const requestsAtOnce = 3;
const patienceMs = 500;

const undecodable = 'the browser cannot decode it';

export class FragmentMedia {
  static isPossible = Source !== undefined;

  #video;
  #session;
  #changed;
  #source;
  #buffer;
  #codec;
  #initialization;
  #initializations = new Map();
  #failures = new Map();
  #requests = new Map();
  #appended = new Set();
  #appendedAt = -Infinity;
  #queue = Promise.resolve();
  #positionMs = 0;
  #rate = 1;

  /** @param changed - called when a segment has come, or cannot be had. */
  constructor(video, session, changed) {
    this.#video = video;
    this.#session = session;
    this.#changed = changed;
    video.addEventListener('error', () => this.#recover());
    video.addEventListener('seeked', () => this.keep(this.#positionMs, this.#rate));
    video.addEventListener('loadedmetadata', () => this.show(this.#positionMs));
  }

  async open() {
    const source = (this.#source = new Source());
    this.#appended.clear();
    this.#codec = this.#session.segments[0].codec;
    this.#initialization = undefined;
    this.#video.disableRemotePlayback = true; // a managed source wants that
    const opened = new Promise(resolve => source.addEventListener('sourceopen', resolve, {once: true}));
    const url = URL.createObjectURL(source);
    this.#video.src = url;
    await opened;
    URL.revokeObjectURL(url);
    source.duration = this.#session.lengthMs / 1000;
    this.#buffer = source.addSourceBuffer(type(this.#codec));
  }

  /** The session's time at a time of the video. */
  sessionMs(seconds) {
    return seconds * 1000;
  }

  show(ms) {
    this.#positionMs = ms;
    // Chromium shows a wrong picture where it is sent on before it knows what kind of film it has.
    if (this.#video.readyState >= HTMLMediaElement.HAVE_METADATA) this.#video.currentTime = ms / 1000;
  }

  /** Why a segment cannot be shown, if so. */
  failure(segment) {
    return this.#failures.get(segment.index);
  }

  get failures() {
    return [...this.#failures].map(([index, error]) => ({segment: this.#session.segments[index], error}));
  }

  /** Asks again for all that could not be had. */
  retry() {
    this.#failures.clear();
    this.keep(this.#positionMs, this.#rate);
  }

  /** Fetches what is needed around an instant, nearest first, and lets go of what is far. */
  keep(ms, rate) {
    this.#positionMs = ms;
    this.#rate = rate;
    const wanted = this.#wanted();
    for (const [index, request] of this.#requests) {
      if (!wanted.some(segment => segment.index === index)) request.abort();
    }
    for (const segment of this.#isComingUp(wanted[0]) ? wanted.slice(0, 1) : wanted) {
      if (this.#requests.size >= requestsAtOnce) return;
      if (!this.#requests.has(segment.index) && !this.#failures.has(segment.index) && !this.has(segment)) {
        this.#fetch(segment);
      }
    }
  }

  /**
   * Whether the picture at the playhead is not there yet. Chromium may take a later one for it when more comes meanwhile;
   * but what more it may need, it gets after a while.
   */
  #isComingUp(segment) {
    if (!this.#video.seeking && this.#video.readyState >= 2) return false;
    if (!segment || this.#failures.has(segment.index)) return false;
    if (!this.has(segment)) return true;
    const isNew = performance.now() - this.#appendedAt < patienceMs;
    if (isNew) setTimeout(() => this.keep(this.#positionMs, this.#rate), patienceMs);
    return isNew;
  }

  #wanted() {
    const [position, ahead] = [this.#positionMs, aheadMs * Math.max(1, this.#rate)];
    const segments = this.#session.segments;
    const first = this.#session.segmentFrom(position);
    const wanted = [];
    // At least one beyond: what is skipped may be longer than the window.
    for (let index = first?.index ?? segments.length; index < segments.length; index++) {
      if (segments[index].atMs > position + ahead && wanted.length > 1) break;
      wanted.push(segments[index]);
    }
    for (let index = (first?.index ?? segments.length) - 1; index >= 0; index--) {
      if (segments[index].endMs < position - behindMs && first) break;
      wanted.push(segments[index]);
      if (!first) break;
    }
    return wanted;
  }

  /** Whether the browser has a segment; it drops what it has no room for. */
  has(segment) {
    if (!this.#appended.has(segment.index)) return false;
    const middle = (segment.atMs + segment.endMs) / 2000;
    const {buffered} = this.#buffer;
    for (let range = 0; range < buffered.length; range++) {
      if (buffered.start(range) <= middle && middle < buffered.end(range)) return true;
    }
    return false;
  }

  async #fetch(segment) {
    const abort = new AbortController();
    this.#requests.set(segment.index, abort);
    try {
      if (!this.#initializations.has(segment.initialization)) {
        const initialization = await (await ask(segment.initialization, abort.signal)).arrayBuffer();
        this.#initializations.set(segment.initialization, initialization);
      }
      const bytes = await (await ask(segment.fragment, abort.signal)).arrayBuffer();
      this.#queue = this.#queue.then(() => this.#append(segment, bytes));
      await this.#queue;
    } catch (error) {
      if (error.name !== 'AbortError') this.#failures.set(segment.index, error);
    } finally {
      this.#requests.delete(segment.index);
    }
    this.#changed();
    this.keep(this.#positionMs, this.#rate);
  }

  async #append(segment, bytes) {
    const source = this.#source;
    try {
      await this.#forget();
      if (this.#codec !== segment.codec) {
        this.#buffer.changeType(type(segment.codec));
        this.#codec = segment.codec;
        this.#initialization = undefined;
      }
      if (this.#initialization !== segment.initialization) {
        await this.#feed(this.#initializations.get(segment.initialization));
        this.#initialization = segment.initialization;
      }
      await this.#feed(bytes);
      this.#appended.add(segment.index);
      this.#appendedAt = performance.now();
    } catch (error) {
      // What a source could not take has closed it.
      if (source === this.#source) {
        this.#failures.set(segment.index, new Error(undecodable));
        await this.#reopen();
      }
    }
  }

  async #feed(bytes) {
    try {
      this.#buffer.appendBuffer(bytes);
    } catch (error) {
      if (error.name !== 'QuotaExceededError') throw error;
      await this.#forget(behindMs / 4);
      this.#buffer.appendBuffer(bytes);
    }
    await this.#updated();
  }

  /** Segments are removed whole: each has its key frame. */
  async #forget(distanceMs = keptMs * Math.max(1, this.#rate)) {
    for (const index of this.#appended) {
      const segment = this.#session.segments[index];
      if (segment.endMs >= this.#positionMs - distanceMs && segment.atMs <= this.#positionMs + distanceMs) continue;
      this.#buffer.remove(segment.atMs / 1000, segment.endMs / 1000);
      await this.#updated();
      this.#appended.delete(index);
    }
  }

  #updated() {
    return new Promise((resolve, reject) => {
      this.#buffer.onupdateend = resolve;
      this.#buffer.onerror = reject; // comes before the end of the update
    });
  }

  /** What comes to light only when it is decoded is laid to the segment at the playhead. */
  #recover() {
    this.#queue = this.#queue.then(async () => {
      if (!this.#video.error) return; // an append has opened another source since
      const segment = this.#session.segmentFrom(this.#positionMs);
      if (!segment || this.#failures.has(segment.index)) return;
      this.#failures.set(segment.index, new Error(undecodable));
      await this.#reopen();
    });
  }

  async #reopen() {
    const wasPaused = this.#video.paused;
    await this.open();
    this.show(this.#positionMs);
    if (!wasPaused) this.#video.play().catch(() => {});
    this.#changed();
  }
}

const type = codec => `video/mp4; codecs="${codec}"`;
