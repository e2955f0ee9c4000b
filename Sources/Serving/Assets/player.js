// The page of a session: timeline, picture, and keyboard shortcuts.

import {FragmentMedia} from './media.js';
import {PlaylistMedia} from './native.js';
import {Notes} from './notes.js';
import {Part} from './part.js';
import {Playback} from './playback.js';
import {Session} from './session.js';
import {ask, brief, clock, count, exact, hold, instant, naming, size} from './text.js';
import {Timeline} from './timeline.js';
import {Touches} from './touches.js';

const page = document.documentElement;
const $ = id => document.getElementById(id);
const jumpMs = 10_000;

let session, playback, media, timeline, notes, touches, part;

async function start() {
  const id = decodeURIComponent(location.pathname.split('/').filter(part => part).at(-1));
  document.title = id;
  $('title').textContent = id;
  try {
    session = new Session(await (await ask('timeline.json')).json());
  } catch (error) {
    page.classList.add('nothing');
    return fail('This session cannot be shown', sentence(error.message));
  }
  if (!session.steps.length) {
    page.classList.add('nothing');
    return fail('Nothing to see yet', 'This session has no pictures.');
  }
  fill();
  playback = new Playback($('video'), session, changed);
  const asked = instantAsked();
  playback.positionMs = place(asked);
  const Media = FragmentMedia.isPossible ? FragmentMedia : PlaylistMedia.isPossible($('video')) && PlaylistMedia;
  if (!Media) {
    return fail('This browser cannot play it', 'It has neither Media Source Extensions nor HLS. Download the MP4 instead.');
  }
  media = new Media($('video'), session, changed);
  timeline = new Timeline($('timeline'), session, ms => playback.seek(ms));
  part = new Part(session, timeline);
  notes = new Notes(session, ms => {
    playback.pause();
    playback.seek(place(session.startMs + ms));
  });
  touches = new Touches($('touch-layer'), session, changed);
  $('touches').hidden = !touches.exist;
  listen();
  try {
    await playback.open(media);
  } catch (error) {
    return fail('This browser cannot play it', `${error.message}. Download the MP4 instead.`);
  }
  for (const control of document.querySelectorAll('[disabled]')) control.disabled = false;
}

function fail(title, text) {
  page.dataset.state = 'failed';
  message(title, text, false);
}

function fill() {
  $('total').textContent = session.steps.length.toLocaleString('en-GB');
  $('download').download = `${session.id}.mp4`;
  $('badge').hidden = false;
  $('badge').textContent = session.isComplete ? 'complete' : 'open';
  $('badge').classList.toggle('open', !session.isComplete);
  const facts = [brief(session.lengthMs), count(session.steps.length, 'frame'), size(session.bytes)];
  const state = session.isComplete ? 'has ended' : 'no batch has said that it is the last one';
  $('badge').title = `${facts.join(', ')}; ${state}`;
}

/** Returns the time that the page's address names, in unix milliseconds. */
function instantAsked() {
  const text = new URLSearchParams(location.hash.slice(1)).get('t');
  return /^\d+$/.test(text ?? '') ? Number(text) : session.startMs;
}

/** Returns the seek target for a time: the middle of a capture, not its edge. */
function place(unixMs) {
  const ms = Math.min(Math.max(0, unixMs - session.startMs), session.lengthMs);
  const step = session.stepAt(ms);
  if (step.atMs === ms) return session.target(step);
  return ms >= session.shownMs && !session.gapAt(ms) ? session.target(session.steps.at(-1)) : ms;
}

let isWaiting = false;

/** Runs once a repaint, however many changes there are. */
function changed() {
  if (isWaiting || !media) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    if (playback.isPlaying) playback.tick();
    show();
  });
}

function show() {
  const {picture, positionMs, isPlaying, hasEnded} = playback;
  page.dataset.state = isPlaying ? 'playing' : hasEnded ? 'ended' : 'paused';
  page.dataset.picture = picture;
  page.dataset.frame = playback.step.index;
  page.dataset.position = positionMs;
  showPart();
  timeline.update(positionMs, playback.step, isPlaying || playback.positionMs !== shownMs);
  timeline.lost = media.failures.map(({segment}) => segment);
  notes.failures = media.failures;
  fitScreen();
  touches.show(touched(picture), positionMs);
  $('wait').hidden = picture !== 'loading';
  $('screen').classList.toggle('empty', picture === 'gap' || picture === 'missing');
  explain(picture);
  tell(picture);
  const label = isPlaying ? 'Pause' : 'Play';
  if ($('play').getAttribute('aria-label') !== label) {
    $('play').setAttribute('aria-label', label);
    $('play').title = `${label} (space)`;
    $('play').classList.toggle('playing', isPlaying);
  }
  shownMs = positionMs;
  if (!isPlaying) settle(picture);
  playback.insist();
}

let shownMs = -1;

/** Keeps the picture's aspect ratio, and crops the column and row that the encoder may have added. */
function fitScreen() {
  const video = $('video');
  const segment = playback.segment ?? playback.step.segment;
  let [width, height] = [segment.width, segment.height];
  let [codedWidth, codedHeight] = [segment.codedWidth, segment.codedHeight];
  // The old picture keeps its shape until the video shows the new one.
  if (video.videoWidth && (video.videoWidth !== codedWidth || video.videoHeight !== codedHeight)) {
    [width, height] = [codedWidth, codedHeight] = [video.videoWidth, video.videoHeight];
  }
  const stage = $('stage');
  const scale = Math.min(stage.clientWidth / width, stage.clientHeight / height);
  for (const [box, across, down] of [[$('screen'), width, height], [video, codedWidth, codedHeight]]) {
    const [styleWidth, styleHeight] = [`${across * scale}px`, `${down * scale}px`];
    if (box.style.width !== styleWidth) box.style.width = styleWidth;
    if (box.style.height !== styleHeight) box.style.height = styleHeight;
  }
}

/** Returns the segment whose picture the video shows; undefined for none, and while the picture has another size. */
function touched(picture) {
  const {segment, isPlaying} = playback;
  const isShown = picture === 'ready' || (isPlaying && picture === 'loading');
  const {videoWidth, videoHeight} = $('video');
  return isShown && segment?.codedWidth === videoWidth && segment.codedHeight === videoHeight ? segment : undefined;
}

function toggleTouches() {
  touches.isOn = !touches.isOn;
  $('touches').setAttribute('aria-pressed', touches.isOn);
  changed();
}

/** A message that does not concern the picture; it stays until the position changes. */
let notice = null;

function explain(picture) {
  if (notice?.positionMs === playback.positionMs) return message(notice.title, notice.text, false);
  notice = null;
  const {failure, segment} = playback;
  if (picture === 'gap') {
    const gap = session.gapAt(playback.positionMs);
    const length = gap ? `For ${exact(gap.endMs - gap.atMs)} nobody captured anything. ` : '';
    return message('A gap', `${length}Play or step to go on.`, false);
  }
  if (picture !== 'missing') return ($('message').hidden = true);
  const advice = failure.isPassing
    ? ''
    : ` The rest of the session plays. To see what is wrong: encoder-worker verify OUTPUT/${session.id}`;
  message('This picture cannot be shown', `${sentence(naming(segment, failure.message))}${advice}`, true);
}

function message(title, text, canRetry) {
  $('message').hidden = false;
  for (const [id, words] of [['message-title', title], ['message-text', text]]) {
    if ($(id).textContent !== words) $(id).textContent = words;
  }
  $('retry').hidden = !canRetry;
}

const sentence = text => text + (/[.!?]$/.test(text) ? '' : '.');

/** Updates the facts about the current capture, and the timeline's text for screen readers. */
function tell(picture) {
  const {step} = playback;
  const ms = named();
  const facts = {
    number: (step.index + 1).toLocaleString('en-GB'),
    now: `${clock(session.startMs + ms)} UTC · +${exact(ms)}`,
    captured: instant(step.timeMs),
    offset: `+${exact(step.timeMs - session.startMs)}`,
    hold: hold(step),
    source: step.source,
    size: `${step.segment.width} × ${step.segment.height}`,
    segment: (playback.segment ?? step.segment).file,
  };
  for (const [id, text] of Object.entries(facts)) if ($(id).textContent !== text) $(id).textContent = text;
  const where = `frame ${step.index + 1} of ${session.steps.length}`;
  const what = {gap: `in a gap behind ${where}`, missing: `${where}, which cannot be shown`}[picture] ?? where;
  timeline.valueText = `${what}, ${clock(session.startMs + ms)} UTC, ${exact(ms)} from the start`;
}

let settledMs = -1;

/** When the playhead rests, updates the page's address, and announces the time to screen readers. */
function settle(picture) {
  if (picture === 'loading' || playback.positionMs === settledMs) return;
  const isFirst = settledMs < 0;
  settledMs = playback.positionMs;
  if (isFirst) return;
  history.replaceState(null, '', `#t=${session.startMs + named()}`);
  // Screen readers that focus the timeline read its value anyway.
  if (document.activeElement === $('timeline')) return;
  const where = [$('timeline').getAttribute('aria-valuetext'), touches.text].filter(text => text).join('; ');
  say(picture === 'missing' ? $('message-text').textContent : where);
}

/** Returns the time at the playhead; for a capture reached by steps, the capture's own time. */
function named() {
  const {step, positionMs} = playback;
  return positionMs === session.target(step) ? step.atMs : Math.floor(positionMs);
}

function say(text) {
  $('said').textContent = text;
}

/** Requests one byte first, so that a film that cannot be made shows its error. */
async function download(event, film) {
  event.preventDefault();
  const link = event.currentTarget;
  const label = link.textContent;
  link.textContent = 'Preparing…';
  try {
    await ask(film, undefined, {Range: 'bytes=0-0'});
    location.assign(film);
  } catch (error) {
    const text = sentence(error.message);
    notice = {title: 'The film cannot be made', text, positionMs: playback?.positionMs};
    message(notice.title, text, false);
    say(text);
  }
  link.textContent = label;
}

/** Shows the part that a download would have, while its panel is open. */
function showPart() {
  timeline.part = $('part').open ? part : undefined;
  if ($('part-text').textContent !== part.text) $('part-text').textContent = part.text;
}

function markPart(mark) {
  part[mark](Math.floor(named()));
  $('part').open = true;
  say(`Part: ${part.text}`);
  changed();
}

async function copyLink() {
  history.replaceState(null, '', `#t=${session.startMs + named()}`);
  const isCopied = await copy(location.href);
  say(isCopied ? 'Link copied.' : 'The link is in the address bar.');
  label('link', isCopied ? 'Link copied' : 'See the address bar');
}

/** Copies the address of the picture on screen, as an image. Where the browser refuses, the page shows the address. */
async function copyPictureLink() {
  const link = new URL(`frame.jpg?t=${session.startMs + named()}`, location.href).href;
  if (playback.picture === 'gap') return say('There is no picture in a gap.');
  if (await copy(link)) {
    say('Link to the picture copied.');
    return label('picture', 'Link copied');
  }
  notice = {title: 'Link to this picture', text: link, positionMs: playback.positionMs};
  message(notice.title, link, false);
  say('The link to the picture is shown on the page.');
}

const copy = text => Promise.resolve(navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => true, () => false);

/** Shows the result of a button on it for a moment. */
function label(id, text) {
  const button = $(id);
  button.dataset.text ??= button.textContent;
  button.textContent = text;
  setTimeout(() => (button.textContent = button.dataset.text), 3_000);
}

const commands = {
  play: () => (playback.isPlaying ? playback.pause() : playback.play()),
  previous: () => playback.stepBy(-1),
  next: () => playback.stepBy(1),
  back: () => playback.jumpBy(-jumpMs),
  forward: () => playback.jumpBy(jumpMs),
  first: () => playback.show(session.steps[0]),
  last: () => playback.show(session.steps.at(-1)),
  'zoom-in': () => timeline.zoom(1 / 2, playback.positionMs),
  'zoom-out': () => timeline.zoom(2, playback.positionMs),
  'zoom-all': () => timeline.zoom(Infinity, playback.positionMs),
  retry: () => media.retry(),
  link: copyLink,
  picture: copyPictureLink,
  touches: toggleTouches,
  'part-begin': () => markPart('begin'),
  'part-end': () => markPart('end'),
};

const keys = {
  ' ': 'play', ArrowLeft: 'previous', ',': 'previous', ArrowRight: 'next', '.': 'next', ArrowDown: 'back',
  PageDown: 'back', ArrowUp: 'forward', PageUp: 'forward', Home: 'first', End: 'last', '+': 'zoom-in', '=': 'zoom-in',
  '-': 'zoom-out', 0: 'zoom-all', c: 'picture', C: 'picture', t: 'touches', T: 'touches', i: 'part-begin',
  I: 'part-begin', o: 'part-end', O: 'part-end',
};

function listen() {
  for (const [id, command] of Object.entries(commands)) $(id)?.addEventListener('click', () => command());
  $('download').addEventListener('click', event => download(event, 'session.mp4'));
  $('download-part').addEventListener('click', event => {
    download(event, part.film($('part-speed').value, $('part-format').value));
  });
  $('part').addEventListener('toggle', changed);
  $('rate').addEventListener('change', () => playback.setRate(Number($('rate').value)));
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('select, input')) return;
    // A focused button handles its own key.
    if (event.key === ' ' && event.target.closest('button, a, summary')) return;
    const jump = event.shiftKey && {ArrowLeft: 'back', ArrowRight: 'forward'}[event.key];
    const command = commands[jump || keys[event.key]];
    if (!command) return;
    event.preventDefault();
    command();
  });
  $('timeline').addEventListener('redrawn', changed);
  window.addEventListener('hashchange', () => {
    playback.pause();
    playback.seek(place(instantAsked()));
  });
  new ResizeObserver(changed).observe($('stage'));
}

start();
