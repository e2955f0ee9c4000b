// The facts about a session and the capture on screen, as text on the page.

import {areaText} from './changes.js';
import {serverMs} from './server.js';
import {state} from './state.js';
import {brief, count, exact, hold, size} from './text.js';
import {instant, isUTC, utcBeside, zoneName} from './time.js';

const $ = id => document.getElementById(id);

export class Facts {
  #session;
  isLive = false;

  constructor(session) {
    this.#session = session;
    this.fill();
  }

  /** Shows the facts about the session. */
  fill() {
    const session = this.#session;
    $('total').textContent = session.steps.length.toLocaleString('en-GB');
    $('download').download = `${session.id}.mp4`;
    $('zone').textContent = isUTC(session.startMs) ? 'Times are UTC.' : `Times are local: ${zoneName}.`;
    this.fillState();
  }

  /** Says whether the session goes on. Call it from time to time: that changes. */
  fillState() {
    const session = this.#session;
    const endMs = session.startMs + session.shownMs;
    const {kind, text} = state({complete: session.isComplete, endMs}, serverMs());
    this.isLive = kind === 'live';
    const badge = $('badge');
    badge.hidden = false;
    badge.className = `badge ${kind}`;
    badge.textContent = text;
    const facts = [brief(session.lengthMs), count(session.steps.length, 'frame'), size(session.bytes)];
    if (session.health?.text) facts.push(session.health.text);
    badge.title = `${facts.join(', ')}; the last picture ends ${instant(endMs)}`;
  }

  /**
   * Shows the facts about a capture.
   * @param ms - the time at the playhead, from the session's start.
   * @param segment - at the playhead; undefined in a gap.
   */
  tell(step, ms, segment) {
    const atMs = this.#session.startMs + ms;
    const facts = {
      number: (step.index + 1).toLocaleString('en-GB'),
      now: `${instant(atMs)} · +${exact(ms)}`,
      'now-utc': utcBeside(atMs),
      captured: instant(step.timeMs),
      'captured-utc': utcBeside(step.timeMs),
      offset: `+${exact(step.timeMs - this.#session.startMs)}`,
      hold: hold(step),
      changed: areaText(step.change),
      source: step.source,
      size: `${step.segment.width} × ${step.segment.height}`,
      segment: (segment ?? step.segment).file,
    };
    for (const [id, text] of Object.entries(facts)) if ($(id).textContent !== text) $(id).textContent = text;
  }
}
