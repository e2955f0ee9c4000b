// The page of all sessions: filters, sorts and groups the complete list, and makes the cards of the groups that are open.

import {Card} from './card.js';
import {Choice} from './choice.js';
import {groups} from './groups.js';
import {ask} from './server.js';
import {count, element, size} from './text.js';
import {isUTC, second, utc, zoneName} from './time.js';
import {WordSearch} from './words.js';

const $ = id => document.getElementById(id);

const sorts = {
  newest: (one, other) => other.startMs - one.startMs,
  oldest: (one, other) => one.startMs - other.startMs,
  name: () => 0,
  longest: (one, other) => other.durationMs - one.durationMs,
  frames: (one, other) => other.frames - one.frames,
  gaps: (one, other) => other.gaps - one.gaps,
  largest: (one, other) => other.bytes - one.bytes,
};
/** Sessions of a group that are shown at once. */
const atOnce = 500;
/** So many sessions are in open groups at first. */
const mostOpen = 1_000;
const refreshMs = 30_000;

/** The settings that the address and the next visit remember, with their defaults. */
const settings = {q: '', sort: 'newest', group: 'both', view: 'cards'};
const controls = {q: 'filter', sort: 'sort', group: 'group'};

let sessions = [];
let tag;
const cards = new Map();
/** Groups that the user has opened or closed, by their titles, and how many sessions of each are shown. */
const opened = new Map();
const limits = new Map();
const search = new WordSearch(() => remember());
const choice = new Choice(() => {
  for (const [name, card] of cards) if (card.box) card.box.checked = choice.has(name);
});

async function start() {
  try {
    await take(await ask('/sessions.json'));
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
  recall();
  $('filters').hidden = false;
  $('words').hidden = false;
  listen();
  show();
  finish('ready');
  refresh();
}

const finish = state => (document.documentElement.dataset.state = state);

/** Reads an answer of the server. */
async function take(response) {
  const list = await response.json();
  tag = response.headers.get('ETag');
  sessions = list.sessions.map(session => ({...session, words: words(session)}));
  const sum = key => sessions.reduce((sum, session) => sum + (session[key] ?? 0), 0);
  $('totals').textContent =
    `${count(sessions.length, 'session')} · ${count(sum('frames'), 'frame')} · ${size(sum('bytes'))}`;
  $('zone').textContent = isUTC(Date.now()) ? 'Times are UTC.' : `Times are local: ${zoneName}.`;
}

/** Returns the text that the filter searches. */
function words({session, startMs, complete, error}) {
  const when = error ? error : `${second(startMs)} ${utc(startMs)} ${complete ? 'ended' : 'open'}`;
  return `${session} ${when}`.toLowerCase();
}

/** Shows what has changed from time to time; a long list less often. */
function refresh() {
  setTimeout(async () => {
    if (document.visibilityState === 'visible') await look().catch(() => {}); // Without an answer, the list stays as it was.
    for (const card of cards.values()) card.tellState();
    refresh();
  }, refreshMs * (1 + sessions.length / 1_000));
}

async function look() {
  const response = await ask('/sessions.json');
  if (response.headers.get('ETag') === tag) return;
  const order = () => sessions.map(({session, startMs}) => `${session} ${startMs}`).join();
  const before = order();
  await take(response);
  for (const session of sessions) cards.get(session.session)?.update(session);
  if (order() !== before) show();
}

/** Shows the sessions that the filter lets through, in their groups. */
function show() {
  const asked = $('filter').value.toLowerCase().split(/\s+/).filter(word => word);
  const order = sorts[$('sort').value];
  const names = new Intl.Collator('en', {numeric: true});
  const shown = sessions.filter(({words}) => asked.every(word => words.includes(word)));
  // Sessions that cannot be read come last.
  shown.sort((one, other) =>
    Boolean(one.error) - Boolean(other.error) || (one.error ? 0 : order(one, other)) ||
    names.compare(one.session, other.session));
  const found = groups(sessions, shown, $('group').value);
  let left = mostOpen;
  const isAlone = found.length === 1 && !found[0].title;
  const focused = document.activeElement;
  $('groups').replaceChildren(...found.map(group => {
    const isOpen = opened.get(group.title) ?? left > 0;
    if (isOpen) left -= group.sessions.length;
    return isAlone ? rows(group) : folded(group, isOpen);
  }));
  // A card that is moved loses the focus.
  if (focused !== document.activeElement) focused.focus({preventScroll: true});
  $('shown').textContent = asked.length ? `${shown.length} of ${sessions.length} shown` : '';
  remember();
}

/** Returns a group that can be closed. Its cards are made when it is open. */
function folded(group, isOpen) {
  const live = group.sessions.filter(({complete, error}) => !complete && !error).length;
  const counts = [count(group.sessions.length, 'session'), ...(live && live < group.sessions.length ? [`${live} not ended`] : [])];
  const summary = element('summary', {},
    element('h2', {textContent: group.title || 'Others'}), element('span', {className: 'dim', textContent: counts.join(', ')}));
  const details = element('details', {className: 'group', open: isOpen}, summary);
  if (isOpen) details.append(rows(group));
  summary.addEventListener('click', () => opened.set(group.title, !details.open));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(rows(group));
  });
  return details;
}

/** Returns the cards of a group, and a button for more of them. */
function rows({title, sessions}) {
  const limit = limits.get(title) ?? atOnce;
  const list = element('ul', {className: `sessions ${view()}`}, ...sessions.slice(0, limit).map(session => card(session).root));
  if (sessions.length <= limit) return list;
  const more = element('button', {type: 'button', className: 'button', textContent: `Show more (${sessions.length - limit})`});
  more.addEventListener('click', () => {
    limits.set(title, limit + atOnce);
    const wrapper = more.parentElement;
    const next = rows({title, sessions});
    wrapper.replaceWith(next);
    next.querySelectorAll('h3 a')[limit]?.focus();
  });
  return element('div', {className: 'long'}, list, more);
}

function card(session) {
  let made = cards.get(session.session);
  if (!made || Boolean(session.error) === Boolean(made.box)) {
    made = new Card(session, (name, isChosen) => choice.choose(name, isChosen));
    if (made.box) made.box.checked = choice.has(session.session);
    cards.set(session.session, made);
  }
  return made;
}

const view = () => ($('cards').getAttribute('aria-pressed') === 'true' ? 'cards' : 'rows');

function setView(wanted) {
  for (const name of ['cards', 'rows']) $(name).setAttribute('aria-pressed', name === wanted);
  for (const list of document.querySelectorAll('.sessions')) list.className = `sessions ${wanted}`;
}

function listen() {
  $('filters').addEventListener('submit', event => event.preventDefault());
  $('filter').addEventListener('input', show);
  for (const id of ['sort', 'group']) $(id).addEventListener('change', show);
  for (const name of ['cards', 'rows']) {
    $(name).addEventListener('click', () => {
      setView(name);
      remember();
    });
  }
  const all = isOpen => () => {
    for (const details of document.querySelectorAll('.group')) {
      details.open = isOpen;
      opened.set(details.querySelector('h2').textContent, isOpen);
    }
  };
  $('open-all').addEventListener('click', all(true));
  $('close-all').addEventListener('click', all(false));
}

/** Reads what the address asks for, or what this browser remembers. */
function recall() {
  const asked = new URLSearchParams(location.hash.slice(1));
  let stored = {};
  try {
    stored = JSON.parse(localStorage.getItem('list') ?? '{}');
  } catch {
    // The browser keeps nothing for this page.
  }
  for (const [name, id] of Object.entries(controls)) {
    const value = asked.get(name) ?? stored[name] ?? settings[name];
    $(id).value = value;
    if (!$(id).value) $(id).value = settings[name];
  }
  setView((asked.get('view') ?? stored.view) === 'rows' ? 'rows' : 'cards');
  search.run(asked.get('text') ?? '');
  const other = asked.get('with');
  if (other) {
    choice.choose(other, true);
    choice.isOn = true;
  }
}

/** Stores the settings in the page's address, and those of the look for the next visit. */
function remember() {
  const asked = new URLSearchParams();
  const values = {q: $('filter').value, sort: $('sort').value, group: $('group').value, view: view()};
  for (const [name, value] of Object.entries(values)) if (value !== settings[name]) asked.set(name, value);
  if (search.text) asked.set('text', search.text);
  const text = String(asked);
  history.replaceState(null, '', `${location.pathname}${location.search}${text ? `#${text}` : ''}`);
  try {
    localStorage.setItem('list', JSON.stringify({group: values.group, view: values.view}));
  } catch {
    // The address has it.
  }
}

start();
