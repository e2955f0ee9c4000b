// A session in the list, as a card or a row: the style sheet decides. Its picture and faults are asked for when it is seen.

import {ask, serverMs} from './server.js';
import {state} from './state.js';
import {brief, count, element, size} from './text.js';
import {second, utcBeside} from './time.js';

/** The manifests of a longer session are not read for the list: its own page tells of its faults. */
const mostSegments = 5_000;

const actions = new WeakMap();
const observer = new IntersectionObserver(entries => {
  for (const {isIntersecting, target} of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    actions.get(target)();
  }
}, {rootMargin: '200px'});

/** Calls `action` once, when the element scrolls into view. */
function whenSeen(target, action) {
  actions.set(target, action);
  observer.observe(target);
}

export class Card {
  /** The element, for a list. */
  root = element('li', {className: 'session card'});
  /** Whether the user has chosen it. */
  box;

  #session;
  #path;
  #state = element('p', {className: 'state'});
  #start = element('p', {className: 'line'});
  #facts = element('p', {className: 'line'});
  #tags = element('p', {className: 'tags'});
  #image;

  /** @param chosen - called when the user chooses the session, or not any more. */
  constructor(session, chosen) {
    this.#path = `/sessions/${encodeURIComponent(session.session)}/`;
    const name = element('h3');
    const about = element('div', {className: 'about'}, name);
    this.root.append(this.#thumbnail(session.error), about);
    if (session.error) {
      name.textContent = session.session;
      about.append(element('p', {className: 'error', textContent: session.error}));
      return;
    }
    name.append(element('a', {href: this.#path, textContent: session.session}));
    about.append(this.#state, this.#start, this.#facts, this.#tags);
    this.box = element('input', {type: 'checkbox', className: 'choice'});
    this.box.setAttribute('aria-label', `Compare ${session.session}`);
    this.box.addEventListener('change', () => chosen(session.session, this.box.checked));
    this.root.append(this.box);
    this.update(session);
    whenSeen(this.root, () => {
      this.#image.src = `${this.#path}thumbnail.jpg?t=last`;
      if (session.segments <= mostSegments) this.#addFaults();
    });
  }

  /** Shows what has changed since. */
  update(session) {
    if (session.error || !this.box) return;
    if (this.#image.src && this.#session.endMs !== session.endMs) {
      // The address differs: the browser asks for the picture again.
      this.#image.src = `${this.#path}thumbnail.jpg?t=last&end=${session.endMs}`;
    }
    this.#session = session;
    const utc = utcBeside(session.startMs).replace(/\.\d+/, '');
    const facts = [brief(session.durationMs), count(session.frames, 'frame'), size(session.bytes)];
    this.#start.replaceChildren(...spans(second(session.startMs)), ...(utc ? [element('span', {className: 'utc', textContent: utc})] : []));
    this.#facts.replaceChildren(...spans(...facts));
    for (const tag of this.#tags.querySelectorAll('.gaps, .errors')) tag.remove();
    const errors = session.labels?.kinds?.error;
    if (errors) this.#tags.prepend(element('span', {className: 'tag errors', textContent: count(errors, 'error')}));
    if (session.gaps) this.#tags.prepend(element('span', {className: 'tag gaps', textContent: count(session.gaps, 'gap')}));
    this.root.title = [`from ${second(session.startMs)}${utc ? `, ${utc}` : ''}`, ...facts].join('\n');
    this.tellState();
  }

  /** Says whether the session goes on. */
  tellState() {
    if (!this.#session) return;
    const {kind, text} = state(this.#session, serverMs());
    if (this.#state.textContent === text) return;
    this.#state.textContent = text;
    this.#state.className = `state ${kind}`;
    this.#state.title = `the last picture ends ${second(this.#session.endMs)}`;
  }

  /** Adds facts from the manifests. A session that has changed or was removed since then keeps its tags. */
  async #addFaults() {
    try {
      const {refused, problems, unread} = await (await inTurn(() => ask(`${this.#path}faults.json?for=list`))).json();
      if (unread) this.#tag('not checked', '');
      if (refused) this.#tag(count(refused, 'refused frame'), 'refused');
      if (problems) this.#tag(problems === 1 ? 'damaged' : count(problems, 'damaged part'), 'bad');
    } catch (error) {
      this.#tag(error.isPassing ? 'not checked' : 'damaged', error.isPassing ? '' : 'bad');
    }
  }

  #tag(textContent, kind) {
    this.#tags.append(element('span', {className: `tag ${kind}`, textContent}));
  }

  #thumbnail(error) {
    const box = element('div', {className: 'thumb'});
    const none = () => document.getElementById('no-picture').content.cloneNode(true);
    if (error) {
      box.append(none());
      return box;
    }
    const image = (this.#image = element('img', {decoding: 'async', alt: '', width: 320, height: 200}));
    image.addEventListener('error', () => image.replaceWith(none()), {once: true});
    box.append(image);
    return box;
  }
}

const spans = (...texts) => texts.map(text => element('span', {textContent: text}));

const requestsAtOnce = 2;
const waiting = [];
let running = 0;

/** Runs few requests at a time: pictures come first. */
async function inTurn(request) {
  if (running >= requestsAtOnce) await new Promise(resolve => waiting.push(resolve));
  else running++;
  try {
    return await request();
  } finally {
    if (waiting.length) waiting.shift()();
    else running--;
  }
}
