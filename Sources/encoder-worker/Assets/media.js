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
/** How long a seek may take whose picture is there, and how often it is tried again. */
const arrivalMs = 1500;
const mostRetries = 3;

const isWebKit = navigator.vendor.startsWith('Apple');
/** After so many, a segment is at fault. Chromium may show an old picture when a source is opened for the third time. */
const mostFailures = isWebKit ? 3 : 2;

/** How long a picture lasts by the parameter sets of every fragment. */
const nominalMs = 1000;

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
  /** By index: whether the browser has buffered the segment's middle. */
  #appended = new Map();
  /** By index: whether the browser takes each picture to last for {@link nominalMs}, whatever the container says. */
  #nominal = new Map();
  #watching;
  #retries = 0;
  /** By index: how often the browser has failed at a segment. */
  #suspects = new Map();
  #appendedAt = -Infinity;
  #queue = Promise.resolve();
  #positionMs = 0;
  /** Where the video has to rest, in its own time, and the function that sends it there. */
  #restSeconds;
  #seek = () => {};
  /** The index of the segment that has to come before the video is sent on. */
  #awaited;
  /** The index of the segment at whose last picture the video rests, in a browser that goes by nominal durations. */
  #resting;
  /** The fragments that were appended, by index. */
  #bytes = new Map();
  #rate = 1;
  /** Which source the video plays: another number after each one that failed. */
  epoch = 0;
  /** Whether the video has been sent to the instant last asked for. */
  isSent = true;

  /** @param changed - called when a segment has come, or cannot be had. */
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

  /**
   * Sends the video to an instant.
   *
   * @param isPlaying - whether the video goes on from there.
   */
  show(ms, isPlaying) {
    this.#positionMs = ms;
    const segment = this.#session.segmentAt(ms);
    const restMs = isPlaying ? ms : this.#restMs(ms);
    const endsAlone = restMs !== ms && this.#session.stepAt(ms).endMs >= segment.endMs;
    this.#resting = endsAlone ? segment.index : undefined;
    this.#restSeconds = restMs / 1000;
    this.isSent = false;
    this.#seek = () => {
      this.#video.currentTime = this.#restSeconds;
      this.isSent = true;
      this.#watch();
    };
    this.#retries = 0;
    // Where it is sent on before there is any media, Chromium shows a wrong picture, and WebKit fails. WebKit also fails
    // where it is sent on before it shows the first picture that it has.
    if (this.#appended.size === 0 || this.#isStarting) return;
    const isThere = this.#appended.has(segment?.index);
    // A buffer that has ended reaches to its end, until more comes.
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
        // The next segment has cut its last picture short.
        await this.#append(segment, this.#bytes.get(segment.index));
      }
      if (this.#resting !== segment.index || !this.#appended.has(segment.index)) return;
      this.#end();
      this.#seek();
    });
  }

  /** Whether a segment must not be there while the video rests: its first picture would be shown, or waited for. */
  #isWithheld(index) {
    return index > this.#resting;
  }

  /** Where the video rests to show a capture, in session time; undefined where it rests at the capture itself. */
  restMs(step) {
    const restMs = this.#restMs(step.atMs);
    return restMs !== step.atMs && Math.abs(this.#video.currentTime * 1000 - restMs) < 1 ? restMs : undefined;
  }

  /**
   * Where the video has to rest to show the capture at an instant. WebKitGTK takes each picture of uneven ones to last for
   * as long as the parameter sets say, and shows the first one that is not over by that. Where it cannot be seen whether it
   * does, the end of the capture is right in both cases.
   */
  #restMs(ms) {
    const segment = this.#session.segmentAt(ms);
    if (!segment) return ms;
    const {atMs, endMs} = this.#session.stepAt(ms);
    if (this.#nominal.get(segment.index)) return atMs + nominalMs - 1;
    return isWebKit ? Math.max(ms, Math.min(atMs + nominalMs - 1, endMs - 4)) : ms;
  }

  get #isStarting() {
    const {readyState, seeking, currentTime} = this.#video;
    return readyState < HTMLMediaElement.HAVE_CURRENT_DATA && !seeking && this.#isAnyBuffered(currentTime * 1000, currentTime * 1000);
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
    this.#suspects.clear();
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
      if (this.#isWithheld(segment.index)) continue;
      if (this.#requests.size >= requestsAtOnce) return;
      if (!this.#requests.has(segment.index) && !this.#failures.has(segment.index) && !this.has(segment)) {
        this.#fetch(segment);
      }
    }
    this.#flush();
  }

  /** Lets the browser show what it has where it waits for more in vain. */
  #flush() {
    const isComplete = this.#requests.size === 0 && performance.now() - this.#appendedAt > patienceMs;
    const isWaiting = () => this.#video.seeking || this.#video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA;
    if (!isComplete || this.#appended.size === 0 || !isWaiting()) return;
    this.#queue = this.#queue.then(() => isWaiting() && this.#end());
  }

  /** Seeks again where the browser does not arrive though it has the picture; then opens a new source. WebKitGTK needs that. */
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

  /** Says that nothing follows. WebKitGTK keeps the last picture that it has back until then. */
  #end() {
    if (this.#source.readyState === 'open') this.#source.endOfStream();
  }

  /** Whether the source has to be opened anew before it is changed: after an end, WebKitGTK may fail to go on. */
  get #isBeyondChange() {
    return isWebKit && this.#source.readyState === 'ended';
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

  /** Whether the browser has a segment; it drops what it has no room for. A fragment that it never buffered is not appended again. */
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
        const initialization = await (await ask(segment.initialization, abort.signal)).arrayBuffer();
        this.#initializations.set(segment.initialization, initialization);
      }
      const bytes = this.#bytes.get(segment.index) ?? (await (await ask(segment.fragment, abort.signal)).arrayBuffer());
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
    this.#bytes.set(segment.index, bytes);
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
      await this.#feed(bytes);
      // The end of the stream may have been told, and moved there.
      if (source.duration * 1000 < this.#session.lengthMs) source.duration = this.#session.lengthMs / 1000;
      // A browser may wait for more of what is no fragment.
      if (!this.#isAnyBuffered(segment.atMs, segment.endMs - 1)) throw new Error(undecodable);
      const isFirst = this.#appended.size === 0;
      this.#appended.set(segment.index, this.#isBuffered(segment));
      this.#appendedAt = performance.now();
      this.#noteLengths(segment);
      const isAwaited = this.#awaited === segment.index;
      if (isAwaited) this.#awaited = undefined;
      if ((isFirst || isAwaited) && !this.#isStarting) this.#seek();
    } catch (error) {
      // A fragment that the source could not take has closed it.
      if (source === this.#source) await this.#blame(segment);
    }
  }

  /** Sees whether the last picture lasts for longer than the segment. Where the next one is there, that cannot be seen. */
  #noteLengths({index, endMs}) {
    if (this.#appended.has(index + 1)) return;
    const {buffered} = this.#buffer;
    for (let range = 0; range < buffered.length; range++) {
      const [startMs, untilMs] = [buffered.start(range) * 1000, buffered.end(range) * 1000];
      if (startMs >= endMs || untilMs < endMs - nominalMs || untilMs > endMs + nominalMs) continue;
      this.#nominal.set(index, Math.abs(untilMs - endMs) > 1);
    }
  }

  /**
   * Begins anew. A segment at which the browser fails each time is at fault; the first times it may be the browser.
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

  /** Segments are removed whole: each has its key frame. */
  async #forget(distanceMs = keptMs * Math.max(1, this.#rate)) {
    for (const index of this.#appended.keys()) {
      const segment = this.#session.segments[index];
      if (segment.endMs >= this.#positionMs - distanceMs && segment.atMs <= this.#positionMs + distanceMs) continue;
      await this.#remove(index);
      this.#bytes.delete(index);
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
      this.#buffer.onerror = reject; // comes before the end of the update
    });
  }

  /** An error that appears only in decoding is attributed to the segment at the playhead. */
  #recover() {
    this.#queue = this.#queue.then(async () => {
      if (!this.#video.error) return; // an append has opened another source since
      const segment = this.#session.segmentFrom(this.#positionMs);
      if (segment && !this.#failures.has(segment.index)) await this.#blame(segment);
    });
  }

  async #reopen() {
    const wasPaused = this.#video.paused;
    if (!wasPaused) this.#restSeconds = this.#positionMs / 1000;
    await this.open();
    if (!wasPaused) this.#video.play().catch(() => {});
    this.#changed();
  }
}

const type = codec => `video/mp4; codecs="${codec}"`;
