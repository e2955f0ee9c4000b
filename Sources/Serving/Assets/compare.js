// The page of two sessions side by side: one clock, and both pictures of its instant.

import {Jump} from './jump.js';
import {listenForCommands} from './keys.js';
import {PairLine} from './pairline.js';
import {Pane} from './pane.js';
import {clock, instant, isUTC, utcBeside, zoned, zoneName} from './time.js';

const page = document.documentElement;
const $ = id => document.getElementById(id);
const jumpMs = 10_000;
/** The clock waits for a picture that is not there after this time, and goes on after the second. */
const [patienceMs, mostMs] = [400, 10_000];

let panes, line, jump, whole;
let nowMs = 0;
let isPlaying = false;
let rate = 1;

async function start() {
  const asked = new URLSearchParams(location.search);
  const names = [asked.get('a'), asked.get('b')];
  const all = names.map(name => new Pane(name ?? '', changed));
  $('panes').append(...all.map(pane => pane.root));
  document.title = names.join(' | ');
  await Promise.all(all.map(pane => pane.load()));
  panes = all.filter(pane => pane.session);
  if (panes.length < 2) {
    page.dataset.state = 'failed';
    return;
  }
  whole = both();
  const ranges = panes.map(pane => pane.range);
  const [later, sooner] = [Math.max(...ranges.map(range => range.startMs)), Math.min(...ranges.map(range => range.endMs))];
  $('deck').hidden = false;
  $('zone').textContent = isUTC(whole.fromMs) ? 'Times are UTC.' : `Times are local: ${zoneName}.`;
  line = new PairLine($('timeline'), panes, whole, seek);
  jump = new Jump($('jump'), () => Math.floor(nowMs), jumpTo);
  // The first instant that both sessions have, if there is one.
  nowMs = clamp(instantAsked() ?? (later < sooner ? later : whole.fromMs));
  listen();
  for (const pane of panes) pane.show(nowMs, rate);
  await Promise.all(panes.map(pane => pane.open(renew)));
  page.dataset.state = 'paused';
  if (later >= sooner) jump.say('These two sessions have no instant in common.');
  changed();
}

/** Returns the time of both sessions. */
function both() {
  const ranges = panes.map(pane => pane.range);
  return {fromMs: Math.min(...ranges.map(range => range.startMs)), toMs: Math.max(...ranges.map(range => range.endMs))};
}

/** Shows what has come since the page was loaded. */
function renew() {
  whole = both();
  line.renew(whole);
  for (const pane of panes) pane.show(nowMs, rate);
  changed();
}

const clamp = ms => Math.min(Math.max(whole.fromMs, ms), whole.toMs - 1);

/** Returns the instant that the page's address names, in unix milliseconds. */
function instantAsked() {
  const text = new URLSearchParams(location.hash.slice(1)).get('t');
  return /^\d+$/.test(text ?? '') ? Number(text) : undefined;
}

function seek(ms) {
  nowMs = clamp(ms);
  for (const pane of panes) pane.show(nowMs, rate);
  changed();
}

/** Goes to an instant. Returns a sentence if neither session has a picture there. */
function jumpTo(ms) {
  pause();
  seek(ms);
  $('timeline').focus();
  if (ms < whole.fromMs || ms >= whole.toMs) return `Outside of both sessions. The nearest instant is ${instant(nowMs)}.`;
  if (panes.some(pane => pane.has(nowMs))) return '';
  const next = nearest(1);
  if (next === undefined) return '';
  seek(next);
  return `Neither session has a picture at ${clock(ms)}. This is the next one, ${clock(next)}.`;
}

/** Returns the instant of the next capture of either session, or of the last one. */
function nearest(direction) {
  const instants = panes.map(pane => pane.neighbour(nowMs, direction)).filter(ms => ms !== undefined);
  return instants.length ? Math[direction > 0 ? 'min' : 'max'](...instants) : undefined;
}

function step(direction) {
  pause();
  const ms = nearest(direction);
  if (ms !== undefined) seek(ms);
}

let tickedAt = 0;
let waitingSince;

function tick(at) {
  if (!isPlaying) return;
  // A repaint's time may be before the call of `play`.
  const elapsed = Math.max(0, at - tickedAt);
  tickedAt = at;
  if (panes.some(pane => pane.isWaiting)) waitingSince ??= at;
  else waitingSince = undefined;
  const waitedMs = waitingSince === undefined ? 0 : at - waitingSince;
  if (waitedMs < patienceMs || waitedMs > mostMs) advance(elapsed * rate);
  if (isPlaying) requestAnimationFrame(tick);
}

function advance(ms) {
  nowMs += ms;
  if (nowMs >= whole.toMs - 1) return pause(seek(whole.toMs - 1));
  // Neither has a picture: go on where one has.
  if (!panes.some(pane => pane.has(nowMs))) nowMs = nearest(1) ?? nowMs;
  seek(nowMs);
}

function play() {
  if (nowMs >= whole.toMs - 1) seek(whole.fromMs);
  isPlaying = true;
  waitingSince = undefined;
  tickedAt = performance.now();
  requestAnimationFrame(tick);
  changed();
}

function pause() {
  isPlaying = false;
  changed();
}

let isWaiting = false;

/** Runs once a repaint, however many changes there are. */
function changed() {
  if (isWaiting || !line) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    show();
  });
}

let settledMs;

function show() {
  for (const pane of panes) pane.draw(nowMs);
  const ms = Math.floor(nowMs);
  const texts = {now: `${instant(ms)}`, 'now-utc': utcBeside(ms)};
  for (const [id, text] of Object.entries(texts)) if ($(id).textContent !== text) $(id).textContent = text;
  const words = [zoned(ms), ...panes.map(pane => `${pane.id}: ${pane.words}`)].join('; ');
  line.update(nowMs, words);
  jump.update();
  const label = isPlaying ? 'Pause' : 'Play';
  $('play').setAttribute('aria-label', label);
  $('play').title = `${label} (space)`;
  $('play').classList.toggle('playing', isPlaying);
  if (page.dataset.state !== 'loading') page.dataset.state = isPlaying ? 'playing' : 'paused';
  page.dataset.instant = ms;
  if (!isPlaying && settledMs !== ms && !panes.some(pane => pane.isWaiting)) settle(ms, words);
}

/** When the clock rests, updates the addresses, and announces the pictures to screen readers. */
function settle(ms, words) {
  const isFirst = settledMs === undefined;
  settledMs = ms;
  for (const pane of panes) pane.linkTo(ms);
  if (isFirst) return;
  history.replaceState(null, '', `#t=${ms}`);
  if (document.activeElement !== $('timeline')) $('said').textContent = words;
}

const commands = {
  play: () => (isPlaying ? pause() : play()),
  previous: () => step(-1),
  next: () => step(1),
  back: () => seek(nowMs - jumpMs),
  forward: () => seek(nowMs + jumpMs),
  first: () => seek(whole.fromMs),
  last: () => seek(whole.toMs - 1),
  'zoom-in': () => line.zoom(1 / 2, nowMs),
  'zoom-out': () => line.zoom(2, nowMs),
  'zoom-all': () => line.zoom(Infinity, nowMs),
  go: () => jump.focus(),
};

function listen() {
  listenForCommands(commands);
  $('rate').addEventListener('change', () => (rate = Number($('rate').value)));
  $('timeline').addEventListener('redrawn', changed);
  window.addEventListener('hashchange', () => {
    pause();
    seek(instantAsked() ?? nowMs);
  });
  for (const pane of panes) new ResizeObserver(changed).observe(pane.stage);
}

start();
