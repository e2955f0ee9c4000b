// The page of a session: timeline, picture, and keyboard shortcuts.

import {Captions} from './captions.js';
import {areaText} from './changes.js';
import {Facts} from './facts.js';
import {FilmTime} from './filmtime.js';
import {Follower} from './follow.js';
import {Jump, landing} from './jump.js';
import {listenForCommands} from './keys.js';
import {FragmentMedia} from './media.js';
import {PlaylistMedia} from './native.js';
import {Notes} from './notes.js';
import {Part} from './part.js';
import {Playback} from './playback.js';
import {FullScreen, Screen} from './screen.js';
import {ask} from './server.js';
import {Session} from './session.js';
import {Share, sentence} from './share.js';
import {exact, naming} from './text.js';
import {instant, zoned} from './time.js';
import {Timeline} from './timeline.js';
import {Touches} from './touches.js';

const page = document.documentElement;
const $ = id => document.getElementById(id);
const jumpMs = 10_000;

let session, playback, media, timeline, notes, touches, captions, part, screen, full, share, jump, filmTime, facts, follower;

async function start() {
  const id = decodeURIComponent(location.pathname.split('/').filter(part => part).at(-1));
  document.title = id;
  $('title').textContent = id;
  $('beside').href = `/#with=${encodeURIComponent(id)}`;
  let tag;
  try {
    const response = await ask('timeline.json');
    tag = response.headers.get('ETag');
    session = new Session(await response.json());
  } catch (error) {
    page.classList.add('nothing');
    return fail('This session cannot be shown', sentence(error.message));
  }
  if (!session.steps.length) {
    page.classList.add('nothing');
    return fail('Nothing to see yet', 'This session has no pictures.');
  }
  facts = new Facts(session);
  playback = new Playback($('video'), session, changed);
  playback.positionMs = session.place(instantAsked() - session.startMs);
  screen = new Screen($('stage'), playback);
  full = new FullScreen($('stage'), $('full'));
  const Media = FragmentMedia.isPossible ? FragmentMedia : PlaylistMedia.isPossible($('video')) && PlaylistMedia;
  if (!Media) {
    return fail('This browser cannot play it', 'It has neither Media Source Extensions nor HLS. Download the MP4 instead.');
  }
  media = new Media($('video'), session, changed);
  timeline = new Timeline($('timeline'), session, ms => playback.seek(ms));
  part = new Part(session, timeline);
  notes = new Notes(session, ms => goTo(session.startMs + ms));
  touches = new Touches($('touch-layer'), session, changed);
  captions = new Captions($('caption'), session);
  offer();
  share = new Share(session, playback, named, say, notify);
  const nowMs = () => session.startMs + named();
  jump = new Jump($('jump'), nowMs, jumpTo);
  filmTime = new FilmTime($('film-time'), () => addressOfPart('map.json'), nowMs, goTo, say, changed);
  listen();
  try {
    await playback.open(media);
  } catch (error) {
    return fail('This browser cannot play it', `${error.message}. Download the MP4 instead.`);
  }
  for (const control of document.querySelectorAll('[disabled]')) control.disabled = false;
  follower = new Follower(session, tag, () => facts.isLive, grow);
}

/** Shows what has come and gone since the page was loaded. */
function grow(formerMs) {
  facts.fill();
  offer();
  timeline.renew(formerMs);
  notes.refresh();
  playback.renew();
  changed();
}

/** Shows the controls of what the session has. */
function offer() {
  $('touches').hidden = !touches.exist;
  $('captions').hidden = !captions.exist;
  $('label-key').hidden = !session.labels.length;
  $('changes').hidden = $('change-key').hidden = !session.hasChanges;
}

function fail(title, text) {
  page.dataset.state = 'failed';
  message(title, text, false);
}

/** Returns the time that the page's address names, in unix milliseconds. */
function instantAsked() {
  const text = new URLSearchParams(location.hash.slice(1)).get('t');
  return /^\d+$/.test(text ?? '') ? Number(text) : session.startMs;
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
  timeline.update(positionMs, playback.step, isPlaying || playback.positionMs !== shownMs, isPlaying);
  timeline.lost = media.failures.map(({segment}) => segment);
  notes.failures = media.failures;
  screen.fit();
  touches.show(screen.segmentOf(picture), positionMs);
  captions.show(['gap', 'missing'].includes(picture) ? undefined : positionMs);
  notes.positionMs = positionMs;
  $('wait').hidden = picture !== 'loading';
  screen.isEmpty = picture === 'gap' || picture === 'missing';
  jump.update();
  share.update();
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
  if (picture === 'missing') follower?.hurry();
  playback.insist();
}

let shownMs = -1;

function toggle(layer, button) {
  layer.isOn = !layer.isOn;
  button.setAttribute('aria-pressed', layer.isOn);
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
  if (segment.isGone) {
    const from = instant(session.startMs + session.keptMs);
    return message('No longer kept', `This part was removed since the page was loaded. The session begins at ${from} now.`, false);
  }
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

function notify(title, text) {
  notice = {title, text, positionMs: playback?.positionMs};
  message(title, text, false);
}

/** Updates the facts about the current capture, and the timeline's text for screen readers. */
function tell(picture) {
  const {step} = playback;
  const ms = named();
  facts.tell(step, ms, playback.segment);
  const where = `frame ${step.index + 1} of ${session.steps.length}`;
  const what = {gap: `in a gap behind ${where}`, missing: `${where}, which cannot be shown`}[picture] ?? where;
  const change = picture === 'gap' || step.change === undefined ? '' : `, changed: ${areaText(step.change)}`;
  timeline.valueText = `${what}, ${zoned(session.startMs + ms)}, ${exact(ms)} from the start${change}`;
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

/** Shows the part that a download would have, while its panel is open. */
function showPart() {
  timeline.part = $('part').open ? part : undefined;
  if ($('part').open) filmTime.update();
  if ($('part-text').textContent !== part.text) $('part-text').textContent = part.text;
}

const addressOfPart = file => part.address(file, $('part-speed').value, $('part-idle').value);

function goTo(unixMs) {
  playback.pause();
  playback.seek(session.place(unixMs - session.startMs));
}

function markPart(mark) {
  part[mark](Math.floor(named()));
  $('part').open = true;
  say(`Part: ${part.text}`);
  changed();
}

/** Goes to an instant. Returns a sentence if that is not the one asked for. */
function jumpTo(unixMs) {
  const {ms, text} = landing(session, unixMs);
  playback.pause();
  playback.seek(ms);
  $('timeline').focus();
  return text;
}

/** Goes to the next or the previous big change. Says so if there is none. */
function goToChange(direction) {
  const {picture, positionMs, step} = playback;
  const change = session.changeNear(picture === 'gap' ? positionMs : step.atMs, direction);
  if (change) return playback.show(change);
  jump.say(session.hasChanges ? `There is no big change ${direction > 0 ? 'after' : 'before'} this.` : 'The changed areas are not known.');
}

const commands = {
  play: () => (playback.isPlaying ? playback.pause() : playback.play()),
  previous: () => playback.stepBy(-1),
  next: () => playback.stepBy(1),
  back: () => playback.jumpBy(-jumpMs),
  forward: () => playback.jumpBy(jumpMs),
  'change-next': () => goToChange(1),
  'change-previous': () => goToChange(-1),
  first: () => playback.show(session.steps[0]),
  last: () => playback.show(session.steps.at(-1)),
  'zoom-in': () => timeline.zoom(1 / 2, playback.positionMs),
  'zoom-out': () => timeline.zoom(2, playback.positionMs),
  'zoom-all': () => timeline.zoom(Infinity, playback.positionMs),
  retry: () => media.retry(),
  link: () => share.copyLink(),
  picture: () => share.copyPictureLink(),
  full: () => full.toggle(),
  go: () => jump.focus(),
  touches: () => toggle(touches, $('touches')),
  captions: () => toggle(captions, $('captions')),
  'part-begin': () => markPart('begin'),
  'part-end': () => markPart('end'),
};

function listen() {
  listenForCommands(commands, {
    c: 'picture', t: 'touches', v: 'captions', i: 'part-begin', o: 'part-end', f: 'full', n: 'change-next',
    p: 'change-previous',
  });
  $('download').addEventListener('click', event => share.download(event, 'session.mp4'));
  $('download-part').addEventListener('click', event => {
    share.download(event, addressOfPart(`session.${$('part-format').value}`));
  });
  for (const id of ['part', 'part-speed', 'part-idle']) $(id).addEventListener(id === 'part' ? 'toggle' : 'change', changed);
  $('rate').addEventListener('change', () => playback.setRate(Number($('rate').value)));
  $('timeline').addEventListener('redrawn', changed);
  window.addEventListener('hashchange', () => goTo(instantAsked()));
  new ResizeObserver(changed).observe($('stage'));
  setInterval(() => facts.fillState(), 15_000);
}

start();
