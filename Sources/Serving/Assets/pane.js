// One of two sessions side by side. It shows the picture of an instant, or says why there is none. The page has the clock:
// the video itself stays paused.

import {areaText} from './changes.js';
import {Follower} from './follow.js';
import {FragmentMedia} from './media.js';
import {PlaylistMedia} from './native.js';
import {Playback} from './playback.js';
import {Screen} from './screen.js';
import {ask, serverMs} from './server.js';
import {Session} from './session.js';
import {state} from './state.js';
import {element, exact} from './text.js';
import {instant, zoned} from './time.js';
import {Touches} from './touches.js';

export class Pane {
  /** Undefined until it is loaded, and if it cannot be. */
  session;

  #root;
  #playback;
  #screen;
  #touches;
  #changed;
  #part = selector => this.#root.querySelector(selector);
  /** Where the instant lies: `before` the session, `in` it or `after` it. */
  #where = 'in';
  #isOpen = false;

  /**
   * @param id - of the session.
   * @param changed - called whenever the picture may have changed.
   */
  constructor(id, changed) {
    this.#root = document.getElementById('pane').content.firstElementChild.cloneNode(true);
    this.#changed = changed;
    this.#root.setAttribute('aria-label', id);
    this.#link = element('a', {textContent: id});
    this.#part('h2').append(this.#link);
    this.id = id;
  }

  #link;

  get root() {
    return this.#root;
  }

  /** The part of the page that has the picture's size. */
  get stage() {
    return this.#part('.stage');
  }

  async load() {
    const path = `/sessions/${encodeURIComponent(this.id)}/`;
    this.#link.href = path;
    try {
      const response = await ask(`${path}timeline.json`);
      this.#tag = response.headers.get('ETag');
      const session = new Session(await response.json(), path);
      if (!session.steps.length) throw new Error('this session has no pictures');
      const video = this.#part('video');
      const Media = FragmentMedia.isPossible ? FragmentMedia : PlaylistMedia.isPossible(video) && PlaylistMedia;
      if (!Media) throw new Error('this browser has neither Media Source Extensions nor HLS');
      this.#playback = new Playback(video, session, this.#changed);
      this.#screen = new Screen(this.stage, this.#playback);
      this.#touches = new Touches(this.#part('.touch-layer'), session, this.#changed);
      this.session = session;
      this.#media = new Media(video, session, this.#changed);
    } catch (error) {
      this.#message('This session cannot be shown', error.message);
    }
  }

  #media;
  #tag;
  #follower;
  #isLive = false;

  /** @param renewed - called when the session has changed. */
  async open(renewed) {
    try {
      await this.#playback.open(this.#media);
      this.#isOpen = true;
      this.#follower = new Follower(this.session, this.#tag, () => this.#isLive, () => {
        this.#playback.renew();
        renewed();
      });
    } catch (error) {
      this.#message('This browser cannot play it', error.message);
    }
  }

  /** When its pictures begin and end, in unix milliseconds. */
  get range() {
    const {startMs, shownMs} = this.session;
    return {startMs, endMs: startMs + shownMs};
  }

  /** Whether the picture of the instant is still to come. */
  get isWaiting() {
    return this.#isOpen && this.#where === 'in' && this.#playback.picture === 'loading';
  }

  /** Segments that cannot be shown. */
  get lost() {
    return this.#media.failures.map(({segment}) => segment);
  }

  /**
   * Goes to an instant.
   * @param rate - of the page's clock, for fetching ahead.
   */
  show(unixMs, rate) {
    const {session} = this;
    const ms = unixMs - session.startMs;
    this.#where = ms < 0 ? 'before' : ms >= session.lengthMs || (ms >= session.shownMs && !session.gapAt(ms)) ? 'after' : 'in';
    this.#playback.rate = rate;
    const wanted = this.#where === 'in' ? this.#target(ms) : session.target(this.#where === 'before' ? session.steps[0] : session.steps.at(-1));
    if (this.#playback.positionMs !== wanted) this.#playback.seek(wanted);
  }

  /** Returns one time for each capture and gap, so that the video seeks once for each. */
  #target(ms) {
    const segment = this.session.segmentAt(ms);
    if (!segment) return this.session.gapAt(ms)?.atMs ?? ms;
    const step = this.session.stepAt(ms);
    // A capture may go on in the next segment.
    return this.session.target(step);
  }

  /** Draws what the video and the messages have to show at an instant. */
  draw(unixMs) {
    if (!this.session) return;
    const {picture, step} = this.#playback;
    const isIn = this.#where === 'in';
    this.#screen.fit();
    this.#screen.isEmpty = !isIn || picture === 'gap' || picture === 'missing';
    this.#part('.wait').hidden = !this.isWaiting;
    this.#touches.show(isIn ? this.#screen.segmentOf(picture) : undefined, unixMs - this.session.startMs);
    const shown = isIn ? picture : this.#where;
    if (shown === 'missing') this.#follower?.hurry();
    this.#root.dataset.picture = shown;
    this.#root.dataset.frame = step.index;
    this.#explain(shown, unixMs);
    this.#tell();
    const change = step.change === undefined ? '' : ` · changed: ${areaText(step.change)}`;
    const about = `Frame ${step.index + 1} of ${this.session.steps.length} · captured ${zoned(step.timeMs)}${change}`;
    const text = isIn && picture !== 'gap' ? about : this.words;
    if (this.#part('.about').textContent !== text) this.#part('.about').textContent = text;
    this.#playback.insist();
  }

  /** The picture or the reason for none, in words. */
  words = '';

  #explain(shown, unixMs) {
    const {session} = this;
    const {startMs, endMs} = this.range;
    const gap = session.gapAt(unixMs - startMs);
    const {failure, segment, step} = this.#playback;
    const [title, text] = {
      before: ['Not recorded yet', `The session begins at ${instant(startMs)}.`],
      after: [session.isComplete ? 'The session has ended' : 'Not recorded', `Its last picture ends at ${instant(endMs)}.`],
      gap: ['A gap', gap ? `For ${exact(gap.endMs - gap.atMs)} nobody captured anything.` : 'Nobody captured anything.'],
      missing: [segment?.isGone ? 'No longer kept' : 'This picture cannot be shown', failure?.message ?? ''],
    }[shown] ?? [];
    this.words = title ? `${title}. ${text}` : `frame ${step.index + 1} of ${session.steps.length}`;
    if (title) this.#message(title, text);
    else this.#part('.message').hidden = true;
  }

  #message(title, text) {
    this.#part('.message').hidden = false;
    for (const [name, words] of [['.message-title', title], ['.message-text', text]]) {
      if (this.#part(name).textContent !== words) this.#part(name).textContent = words;
    }
  }

  #tell() {
    const {kind, text} = state({complete: this.session.isComplete, endMs: this.range.endMs}, serverMs());
    this.#isLive = kind === 'live';
    const badge = this.#part('.badge');
    if (badge.textContent === text) return;
    badge.hidden = false;
    badge.className = `badge ${kind}`;
    badge.textContent = text;
  }

  /** Names an instant in the link to the session's own page. */
  linkTo(unixMs) {
    this.#link.href = `/sessions/${encodeURIComponent(this.id)}/#t=${Math.floor(unixMs)}`;
  }

  /** Whether there is a picture at an instant. */
  has(unixMs) {
    return this.session.segmentAt(unixMs - this.session.startMs) !== undefined;
  }

  /** Returns the instant of the next capture behind an instant, or of the last one before it; undefined if there is none. */
  neighbour(unixMs, direction) {
    const {session} = this;
    const ms = unixMs - session.startMs;
    const {steps} = session;
    if (ms < steps[0].atMs) return direction > 0 ? session.startMs + steps[0].atMs : undefined;
    const step = session.stepAt(ms);
    const other = direction > 0 ? steps[step.index + 1] : step.atMs < ms ? step : steps[step.index - 1];
    return other && session.startMs + other.atMs;
  }
}
