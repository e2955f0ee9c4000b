// The page of all sessions: shows each with its first picture, and filters and sorts the complete list.

import {ask, brief, count, element, instant, size} from './text.js';

const $ = id => document.getElementById(id);

/** Sessions that cannot be read come last. */
const sorts = {
  newest: (one, other) => other.startMs - one.startMs,
  oldest: (one, other) => one.startMs - other.startMs,
  name: () => 0,
  longest: (one, other) => other.durationMs - one.durationMs,
  frames: (one, other) => other.frames - one.frames,
  gaps: (one, other) => other.gaps - one.gaps,
  largest: (one, other) => other.bytes - one.bytes,
};

let rows = [];

async function start() {
  let sessions;
  try {
    ({sessions} = await (await ask('/sessions.json')).json());
  } catch (error) {
    $('nothing-title').textContent = 'The sessions cannot be listed';
    $('nothing-text').textContent = error.message;
    $('nothing-how').hidden = true;
    $('reload').hidden = false;
    $('reload').addEventListener('click', () => location.reload());
    $('nothing').hidden = false;
    return finish('failed');
  }
  if (!sessions.length) {
    $('nothing').hidden = false;
    return finish('empty');
  }
  rows = sessions.map(session => ({session, words: words(session), row: row(session)}));
  const sum = key => sessions.reduce((sum, session) => sum + (session[key] ?? 0), 0);
  $('totals').textContent =
    `${count(sessions.length, 'session')} · ${count(sum('frames'), 'frame')} · ${size(sum('bytes'))}`;
  const asked = new URLSearchParams(location.hash.slice(1));
  $('filter').value = asked.get('q') ?? '';
  if (sorts[asked.get('sort')]) $('sort').value = asked.get('sort');
  $('filters').hidden = false;
  $('filters').addEventListener('submit', event => event.preventDefault());
  $('filter').addEventListener('input', filter);
  $('sort').addEventListener('change', sort);
  sort();
  filter();
  finish('ready');
}

const finish = state => (document.documentElement.dataset.state = state);

/** Returns the text that the filter searches. */
function words(session) {
  const when = session.error ? '' : instant(session.startMs);
  return `${session.session} ${when} ${session.error ?? (session.complete ? 'complete' : 'open')}`.toLowerCase();
}

function row(session) {
  const path = `/sessions/${encodeURIComponent(session.session)}/`;
  const name = element('h2');
  const about = element('div', {className: 'about'}, name);
  const card = element('li', {className: 'session card'}, thumbnail(session.error ? undefined : path), about);
  if (session.error) {
    name.textContent = session.session;
    about.append(element('p', {className: 'error', textContent: session.error}));
    return card;
  }
  name.append(element('a', {href: path, textContent: session.session}));
  const line = (...texts) =>
    element('p', {className: 'line'}, ...texts.map(text => element('span', {textContent: text})));
  const tags = element('p', {className: 'tags'});
  const tag = (text, className = '') => tags.append(element('span', {className: `tag ${className}`, textContent: text}));
  session.complete ? tag('complete', 'good') : tag('open');
  if (session.gaps) tag(count(session.gaps, 'gap'));
  whenSeen(card, () => addFaults(path, tag));
  about.append(
    line(instant(session.startMs).replace(/\.\d+/, '')),
    line(brief(session.durationMs), count(session.frames, 'frame'), size(session.bytes)), tags);
  return card;
}

/** Adds facts from the manifests. A session that has changed or was removed since then keeps its tags. */
async function addFaults(path, tag) {
  try {
    const {refused, problems} = await (await ask(`${path}faults.json`)).json();
    if (refused) tag(count(refused, 'refused frame'), 'refused');
    if (problems) tag(problems === 1 ? 'damaged' : count(problems, 'damaged part'), 'bad');
  } catch (error) {
    tag(error.isPassing ? 'not checked' : 'damaged', error.isPassing ? '' : 'bad');
  }
}

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

function thumbnail(path) {
  const box = element('div', {className: 'thumb'});
  if (!path) {
    box.append($('no-picture').content.cloneNode(true));
    return box;
  }
  const image = element('img', {loading: 'lazy', decoding: 'async', alt: '', width: 320, height: 240});
  image.addEventListener('error', () => image.replaceWith($('no-picture').content.cloneNode(true)), {once: true});
  image.src = `${path}thumbnail.jpg`;
  box.append(image);
  return box;
}

function sort() {
  const order = sorts[$('sort').value];
  const names = new Intl.Collator('en', {numeric: true});
  rows.sort((one, other) =>
    Boolean(one.session.error) - Boolean(other.session.error) ||
    (one.session.error ? 0 : order(one.session, other.session)) ||
    names.compare(one.session.session, other.session.session));
  $('sessions').append(...rows.map(({row}) => row));
  remember();
}

function filter() {
  const asked = $('filter').value.toLowerCase().split(/\s+/).filter(word => word);
  let shown = 0;
  for (const {row, words} of rows) {
    row.hidden = !asked.every(word => words.includes(word));
    shown += !row.hidden;
  }
  $('shown').textContent = asked.length ? `${shown} of ${rows.length} shown` : '';
  remember();
}

/** Stores the filter and the order in the page's address. */
function remember() {
  const asked = new URLSearchParams();
  if ($('filter').value) asked.set('q', $('filter').value);
  if ($('sort').value !== 'newest') asked.set('sort', $('sort').value);
  history.replaceState(null, '', `${location.pathname}${asked.size ? `#${asked}` : ''}`);
}

start();
