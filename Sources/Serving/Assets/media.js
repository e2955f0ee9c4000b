// Feeds a session's fragments to the browser through Media Source Extensions. Only fragments around the playhead are
// fetched and kept. Media time is session time. A segment that cannot be loaded is stored with the reason; the others
// play.

import {ask} from './server.js';

const Source = window.MediaSource ?? window.ManagedMediaSource;

const aheadMs = 30_000;
const behindMs = 20_000;
/** Fragments farther than this from the playhead are removed. */
const keptMs = 90_000;
const requestsAtOnce = 3;
const patienceMs = 500;
/** Timeout of a seek whose picture is buffered, and the maximum number of retries. */
const arrivalMs = 1500;
const mostRetries = 3;

const isWebKit = navigator.vendor.startsWith('Apple');
/**
 * After this many failures a segment is at fault. Chromium may show an old picture once a source is opened a third
 * time.
 */
const mostFailures = isWebKit ? 3 : 2;

/** The duration of a picture according to the parameter sets of every fragment. */
const nominalMs = 1000;
const ticksAMs = 90;

const undecodable = 'the browser cannot decode it';
const gone = new Error('it was removed since the page was loaded');

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
  /** By index: whether the browser has buffered the segment's middle. */
  #appended = new Map();
  /** By index: the duration of each sample of the fragment in milliseconds; 0 if they vary. */
  #lengths = new Map();
  #watching;
  #retries = 0;
  /** By index: the number of times that the browser failed at a segment. */
  #suspects = new Map();
  #appendedAt = -Infinity;
  #queue = Promise.resolve();
  #positionMs = 0;
  /** Whether the video plays on from the last requested time. */
  #playsOn = false;
  /** The video time, in seconds, at which the video has to pause, and the function that seeks there. */
  #restSeconds;
  #seek = () => {};
  /** The index of the segment that has to be appended before the next seek. */
  #awaited;
  /** The index of the segment at whose end the video pauses, in a browser that uses nominal durations. */
  #resting;
  /** The appended fragments, by index: {bytes, offsetMs}, the session time of their time 0. */
  #fragments = new Map();
  #rate = 1;
  /** Identifies the source that the video plays: increases after each failed source. */
  epoch = 0;
  /** Whether the video was sent to the last requested time. */
  isSent = true;

  /** @param changed - called when a segment was appended, or cannot be loaded. */
  constructor(video, session, changed) {
    this.#video = video;
    this.#session = session;
    this.#changed = changed;
    video.addEventListener('error', () => this.#recover());
    video.addEventListener('seeked', () => this.keep(this.#positionMs, this.#rate));
    video.addEventListener('loadeddata', () => {
      if (video.currentTime === this.#restSeconds) this.isSent = true;
      else this.#seek();
    });
  }

  async open() {
    const source = (this.#source = new Source());
    this.epoch++;
    this.#appended.clear();
    this.#codec = this.#session.segments[0].codec;
    this.#initialization = undefined;
    this.#video.disableRemotePlayback = true; // required by ManagedMediaSource
    const opened = new Promise(resolve => source.addEventListener('sourceopen', resolve, {once: true}));
    const url = URL.createObjectURL(source);
    this.#video.src = url;
    // The video has lost its picture. Reports that now, not when the source is open.
    this.#changed();
    await opened;
    URL.revokeObjectURL(url);
    source.duration = this.#session.lengthMs / 1000;
    this.#buffer = source.addSourceBuffer(type(this.#codec));
  }

  /** Converts a time of the video to session time. */
  sessionMs(seconds) {
    return seconds * 1000;
  }

  /**
   * Seeks to a time of the session.
   *
   * @param isPlaying - whether the video plays on from there.
   */
  show(ms, isPlaying) {
    this.#positionMs = ms;
    this.#playsOn = Boolean(isPlaying);
    const segment = this.#session.segmentAt(ms);
    const restMs = isPlaying ? ms : this.#restMs(ms);
    // A seek into the next segment would show its key frame.
    const endsAlone = restMs !== ms && Math.max(restMs, this.#session.stepAt(ms).endMs) >= segment.endMs;
    this.#resting = endsAlone ? segment.index : undefined;
    this.#restSeconds = restMs / 1000;
    this.isSent = false;
    this.#seek = () => {
      this.#video.currentTime = this.#restSeconds;
      this.isSent = true;
      this.#watch();
    };
    this.#retries = 0;
    // After a seek before any media is appended, Chromium shows a wrong picture, and WebKit fails. WebKit also fails
    // after a seek before it shows the first picture that it has.
    if (this.#appended.size === 0 || this.#isStarting) return;
    const isThere = this.#appended.has(segment?.index);
    // The buffered range of an ended source reaches to its end, until more data is appended.
    this.#awaited = segment && !isThere && this.#source.readyState === 'ended' ? segment.index : undefined;
    if (this.#awaited !== undefined) return;
    if (!endsAlone || !isThere) return this.#seek();
    const {epoch} = this;
    this.#queue = this.#queue.then(async () => {
      if (epoch !== this.epoch || this.#resting !== segment.index) return;
      const withheld = [...this.#appended.keys()].filter(index => this.#isWithheld(index));
      if (withheld.length > 0) {
        if (this.#isBeyondChange) await this.#reopen();
        else for (const index of withheld) await this.#remove(index);
        // The next segment has shortened the last picture of this one.
        await this.#append(segment, this.#fragments.get(segment.index));
      }
      if (this.#resting !== segment.index || !this.#appended.has(segment.index)) return;
      this.#end();
      this.#seek();
    });
  }

  /**
   * Whether a segment must not be appended while the video is paused: the browser would show its first picture, or
   * wait.
   */
  #isWithheld(index) {
    return index > this.#resting;
  }

  /**
   * Returns the session time at which the video pauses to show a capture; undefined if that is the capture's own time.
   */
  restMs(step) {
    const restMs = this.#restMs(step.atMs);
    return restMs !== step.atMs && Math.abs(this.#video.currentTime * 1000 - restMs) < 1 ? restMs : undefined;
  }

  /**
   * Returns where the video has to pause to show the capture at a time. WebKitGTK uses the duration in the parameter
   * sets for each picture, and shows the first one that does not end before the time. If the fragment
   * is not known yet, the end of the capture is mostly right in both cases.
   */
  #restMs(ms) {
    const segment = this.#session.segmentAt(ms);
    if (!segment) return ms;
    const {atMs, endMs} = this.#session.stepAt(ms);
    if (!isWebKit) return ms;
    const lengthMs = this.#lengths.get(segment.index);
    const nominalEndMs = atMs + nominalMs - 1;
    if (lengthMs === 0) return nominalEndMs;
    return Math.max(ms, lengthMs < nominalMs - 1 ? nominalEndMs : Math.min(nominalEndMs, endMs - 4));
  }

  get #isStarting() {
    const {readyState, seeking, currentTime} = this.#video;
    return readyState < HTMLMediaElement.HAVE_CURRENT_DATA && !seeking && this.#isAnyBuffered(currentTime * 1000, currentTime * 1000);
  }

  /** Returns the reason why a segment cannot be shown, or undefined. */
  failure(segment) {
    return this.#failures.get(segment.index) ?? (segment.isGone && !this.has(segment) ? gone : undefined);
  }

  get failures() {
    return [...this.#failures].map(([index, error]) => ({segment: this.#session.segments[index], error}));
  }

  /** Requests all failed segments again. */
  retry() {
    this.#failures.clear();
    this.#suspects.clear();
    this.keep(this.#positionMs, this.#rate);
  }

  /** Reads the session again: fetches fragments again that have another length, and those that had another name. */
  renew() {
    for (const {index} of this.#session.renewed) {
      this.#fragments.delete(index);
      this.#appended.delete(index);
      this.#lengths.delete(index);
    }
    for (const [index, {isRefused}] of this.#failures) if (isRefused) this.#failures.delete(index);
    this.keep(this.#positionMs, this.#rate);
  }

  /** Fetches the fragments around a time, nearest first, and cancels requests for distant ones. */
  keep(ms, rate) {
    this.#positionMs = ms;
    this.#rate = rate;
    const wanted = this.#wanted();
    for (const [index, request] of this.#requests) {
      if (!wanted.some(segment => segment.index === index)) request.abort();
    }
    for (const segment of this.#isComingUp(wanted[0]) ? wanted.slice(0, 1) : wanted) {
      if (this.#isWithheld(segment.index)) continue;
      if (this.#requests.size >= requestsAtOnce) return;
      if (!this.#requests.has(segment.index) && !this.failure(segment) && !this.has(segment)) this.#fetch(segment);
    }
    this.#flush();
  }

  /** Ends the stream if the browser waits for data that will not come, so that it shows the buffered picture. */
  #flush() {
    const isComplete = this.#requests.size === 0 && performance.now() - this.#appendedAt > patienceMs;
    const isWaiting = () => this.#video.seeking || this.#video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA;
    if (!isComplete || this.#appended.size === 0 || !isWaiting()) return;
    this.#queue = this.#queue.then(() => isWaiting() && this.#end());
  }

  /** Seeks again if a seek does not finish although its picture is buffered; then opens a new source, for WebKitGTK. */
  #watch() {
    clearTimeout(this.#watching);
    this.#watching = setTimeout(() => {
      const segment = this.#session.segmentAt(this.#positionMs);
      if (!this.#video.seeking || !segment || this.#failures.has(segment.index) || this.#retries >= mostRetries) return;
      if (!this.has(segment)) return this.#watch();
      this.#retries++;
      if (this.#retries === 1) return this.#seek();
      this.#queue = this.#queue.then(() => this.#reopen()).then(() => this.keep(this.#positionMs, this.#rate));
      this.#watch();
    }, arrivalMs);
  }

  /** Ends the stream. WebKitGTK does not show the last buffered picture before that. */
  #end() {
    if (this.#source.readyState === 'open') this.#source.endOfStream();
  }

  /** Whether the source has to be opened again before a change: after the stream's end, WebKitGTK may stop playing. */
  get #isBeyondChange() {
    return isWebKit && this.#source.readyState === 'ended';
  }

  /**
   * Whether the playhead's picture is not available yet. Chromium may show a later picture if more data is appended
   * meanwhile. After a timeout the browser gets more data all the same, in case it needs that.
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
    // At least one segment ahead: a skipped part may be longer than the window.
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

  /**
   * Whether a segment is buffered; the browser may evict it. A fragment that was never buffered is not appended again.
   */
  has(segment) {
    return this.#appended.has(segment.index) && (!this.#appended.get(segment.index) || this.#isBuffered(segment));
  }

  #isBuffered(segment) {
    const middle = (segment.atMs + segment.endMs) / 2;
    return this.#isAnyBuffered(middle, middle);
  }

  #isAnyBuffered(fromMs, toMs) {
    const {buffered} = this.#buffer;
    for (let range = 0; range < buffered.length; range++) {
      if (buffered.start(range) * 1000 <= toMs && fromMs < buffered.end(range) * 1000) return true;
    }
    return false;
  }

  async #fetch(segment) {
    const abort = new AbortController();
    this.#requests.set(segment.index, abort);
    try {
      if (!this.#initializations.has(segment.initialization)) {
        const initialization = await (await ask(this.#session.path + segment.initialization, abort.signal)).arrayBuffer();
        this.#initializations.set(segment.initialization, initialization);
      }
      const fragment = this.#fragments.get(segment.index) ?? (await this.#read(segment, abort.signal));
      this.#queue = this.#queue.then(() => this.#append(segment, fragment));
      await this.#queue;
    } catch (error) {
      if (error.name !== 'AbortError') this.#failures.set(segment.index, error);
    } finally {
      this.#requests.delete(segment.index);
    }
    this.#changed();
    this.keep(this.#positionMs, this.#rate);
  }

  async #read({fragment, offsetMs}, signal) {
    return {offsetMs, bytes: await (await ask(this.#session.path + fragment, signal)).arrayBuffer()};
  }

  async #append(segment, fragment) {
    this.#fragments.set(segment.index, fragment);
    // The place to pause depends on the lengths of its samples.
    if (!this.#lengths.has(segment.index)) {
      this.#lengths.set(segment.index, sampleMs(fragment.bytes));
      if (!this.#playsOn && this.#session.segmentAt(this.#positionMs) === segment) this.show(this.#positionMs);
    }
    if (this.#isWithheld(segment.index)) return;
    if (this.#isBeyondChange) await this.#reopen();
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
      if (this.#buffer.timestampOffset * 1000 !== fragment.offsetMs) this.#buffer.timestampOffset = fragment.offsetMs / 1000;
      await this.#feed(fragment.bytes);
      // An earlier end of the stream may have shortened the duration.
      if (source.duration * 1000 < this.#session.lengthMs) source.duration = this.#session.lengthMs / 1000;
      // A browser may accept data that is no fragment, and wait for more.
      if (!this.#isAnyBuffered(segment.atMs, segment.endMs - 1)) throw new Error(undecodable);
      const isFirst = this.#appended.size === 0;
      this.#appended.set(segment.index, this.#isBuffered(segment));
      this.#appendedAt = performance.now();
      const isAwaited = this.#awaited === segment.index;
      if (isAwaited) this.#awaited = undefined;
      if ((isFirst || isAwaited) && !this.#isStarting) this.#seek();
    } catch (error) {
      // The browser closed the source when it rejected the fragment.
      if (source === this.#source) await this.#blame(segment);
    }
  }

  /**
   * Opens a new source. A segment is at fault only if the browser fails at it each time; a first failure may be a
   * browser bug.
   */
  async #blame(segment) {
    const failures = (this.#suspects.get(segment.index) ?? 0) + 1;
    this.#suspects.set(segment.index, failures);
    if (failures >= mostFailures) this.#failures.set(segment.index, new Error(undecodable));
    await this.#reopen();
    this.keep(this.#positionMs, this.#rate);
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

  /** Removes distant segments as a whole, since each has its key frame. */
  async #forget(distanceMs = keptMs * Math.max(1, this.#rate)) {
    for (const index of this.#appended.keys()) {
      const segment = this.#session.segments[index];
      if (segment.endMs >= this.#positionMs - distanceMs && segment.atMs <= this.#positionMs + distanceMs) continue;
      await this.#remove(index);
      this.#fragments.delete(index);
    }
  }

  async #remove(index) {
    const {atMs, endMs} = this.#session.segments[index];
    this.#buffer.remove(atMs / 1000, endMs / 1000);
    await this.#updated();
    this.#appended.delete(index);
  }

  #updated() {
    return new Promise((resolve, reject) => {
      this.#buffer.onupdateend = resolve;
      this.#buffer.onerror = reject; // is called before onupdateend
    });
  }

  /** Attributes an error that appears only in decoding to the segment at the playhead. */
  #recover() {
    this.#queue = this.#queue.then(async () => {
      if (!this.#video.error) return; // an append has opened another source meanwhile
      const segment = this.#session.segmentFrom(this.#positionMs);
      if (segment && !this.#failures.has(segment.index)) await this.#blame(segment);
    });
  }

  async #reopen() {
    const wasPaused = this.#video.paused;
    if (!wasPaused) this.#restSeconds = this.#positionMs / 1000;
    await this.open();
    if (!wasPaused) this.#video.play().catch(() => {});
  }
}

/** Returns the duration of each sample of a fragment in milliseconds; 0 if they vary. */
function sampleMs(bytes) {
  const view = new DataView(bytes);
  for (let at = 0; at + 20 <= view.byteLength; ) {
    const [size, name] = [view.getUint32(at), String.fromCharCode(...new Uint8Array(bytes, at + 4, 4))];
    if (name === 'trun') {
      // Behind the flags: the number of samples, two fields, and a duration and a size for each sample.
      const most = Math.floor((view.byteLength - at - 24) / 8);
      const count = Math.max(0, Math.min(view.getUint32(at + 12), most));
      const lengths = Array.from({length: count}, (_, index) => view.getUint32(at + 24 + 8 * index));
      return lengths.every(length => Math.abs(length - lengths[0]) <= 1) ? lengths[0] / ticksAMs : 0;
    }
    // A container's content follows its header.
    at += ['moof', 'traf'].includes(name) ? 8 : Math.max(8, size);
  }
  return nominalMs;
}

const type = codec => `video/mp4; codecs="${codec}"`;
