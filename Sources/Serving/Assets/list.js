// The page of all sessions: filters, sorts and groups those that have come, and makes the cards of the groups that are open. It shows
// the first page of the list at once, and gets the others meanwhile; later it asks for what has changed.

import {Card} from './card.js';
import {Choice} from './choice.js';
import {groups, sorts} from './groups.js';
import {Listing} from './listing.js';
import {count, element, size} from './text.js';
import {isUTC, second, utc, zoneName} from './time.js';
import {WordSearch} from './words.js';

const $ = id => document.getElementById(id);

/** Sessions of a group that are shown at once. */
const atOnce = 500;
/** So many sessions are in open groups at first. */
const mostOpen = 1_000;
const refreshMs = 30_000;

/** The settings that the address and the next visit remember, with their defaults. */
const settings = {q: '', sort: 'newest', group: 'both', view: 'cards'};
const controls = {q: 'filter', sort: 'sort', group: 'group'};

const cards = new Map();
const list = new Listing({
  changed(session, isAsBefore) {
    // A session that cannot be read has another card.
    if (!isAsBefore) cards.delete(session.session);
    cards.get(session.session)?.update(session);
  },
  dropped: name => cards.delete(name),
  counted: () => tellCounts(),
  moved: () => show(),
});
/** Groups that the user has opened or closed, by their titles, and how many sessions of each are shown. */
const opened = new Map();
const limits = new Map();
/** How many sessions the filter has let through, in words; empty without a filter. */
let passed = '';
const search = new WordSearch(() => remember());
const choice = new Choice(() => {
  for (const [name, card] of cards) if (card.box) card.box.checked = choice.has(name);
});

async function start() {
  try {
    await list.begin();
  } catch (error) {
    $('nothing-title').textContent = 'The sessions cannot be listed';
    $('nothing-text').textContent = error.message;
    $('nothing-how').hidden = true;
    $('reload').hidden = false;
    $('reload').addEventListener('click', () => location.reload());
    $('nothing').hidden = false;
    return finish('failed');
  }
  if (!list.sessions.size) {
    $('nothing').hidden = false;
    return finish('empty');
  }
  recall();
  $('filters').hidden = false;
  $('words').hidden = false;
  listen();
  show();
  finish('ready');
  // The next refresh asks for pages that do not come now.
  await list.complete().catch(() => {});
  refresh();
}

const finish = state => (document.documentElement.dataset.state = state);

/** Says how many sessions there are, and how far their load is. */
function tellCounts() {
  const {total, frames, bytes} = list.facts;
  $('totals').textContent = `${count(total, 'session')} · ${count(frames, 'frame')} · ${size(bytes)}`;
  $('zone').textContent = isUTC(Date.now()) ? 'Times are UTC.' : `Times are local: ${zoneName}.`;
  $('loaded').textContent = list.loaded === undefined ? '' : `${list.loaded} of ${total}`;
  tellShown();
}

/** Returns the text that the filter searches. */
function words({session, startMs, complete, error}) {
  const when = error ? error : `${second(startMs)} ${utc(startMs)} ${complete ? 'ended' : 'open'}`;
  return `${session} ${when}`.toLowerCase();
}

/** Shows what has changed from time to time. */
function refresh() {
  setTimeout(async () => {
    if (document.visibilityState === 'visible') await list.refresh().catch(() => {}); // Without an answer, the list stays as it was.
    for (const card of cards.values()) card.tellState();
    refresh();
  }, refreshMs);
}

/** Shows the sessions that the filter lets through, in their groups. */
function show() {
  const asked = $('filter').value.toLowerCase().split(/\s+/).filter(word => word);
  const order = sorts[$('sort').value];
  const names = new Intl.Collator('en', {numeric: true});
  const isFound = session => {
    session.words ??= words(session);
    return asked.every(word => session.words.includes(word));
  };
  const every = [...list.sessions.values()];
  const shown = asked.length ? every.filter(isFound) : every.slice();
  // Sessions that cannot be read come last.
  shown.sort((one, other) =>
    Boolean(one.error) - Boolean(other.error) || (one.error ? 0 : order(one, other)) ||
    names.compare(one.session, other.session));
  const found = groups(every, shown, $('group').value);
  let left = mostOpen;
  const isAlone = found.length === 1 && !found[0].title;
  const focused = document.activeElement;
  $('groups').replaceChildren(...found.map(group => {
    const isOpen = opened.get(group.title) ?? left > 0;
    if (isOpen) left -= group.sessions.length;
    return isAlone ? rows(group) : folded(group, isOpen);
  }));
  // A card that is moved loses the focus, and so does a button that is made anew.
  if (focused !== document.activeElement) (focused.isConnected ? focused : twin(focused))?.focus({preventScroll: true});
  passed = asked.length ? `${shown.length} of ${every.length} shown` : '';
  tellShown();
  remember();
}

/** Returns the button of a group that has taken the place of another one. */
const twin = old => [...document.querySelectorAll('#groups [data-of]')].find(({dataset}) => dataset.of === old.dataset.of);

/** Says what is shown. Screen readers read each new text: it has no number that grows while pages come. */
function tellShown() {
  const text = [passed, list.state].filter(part => part).join(', ');
  if ($('shown').textContent !== text) $('shown').textContent = text;
}

/** Returns a group that can be closed. Its cards are made when it is open. */
function folded(group, isOpen) {
  const live = group.sessions.filter(({complete, error}) => !complete && !error).length;
  const counts = [count(group.sessions.length, 'session'), ...(live && live < group.sessions.length ? [`${live} not ended`] : [])];
  const summary = element('summary', {},
    element('h2', {textContent: group.title || 'Others'}), element('span', {className: 'dim', textContent: counts.join(', ')}));
  summary.dataset.of = `group ${group.title}`;
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
  const items = element('ul', {className: `sessions ${view()}`}, ...sessions.slice(0, limit).map(session => card(session).root));
  if (sessions.length <= limit) return items;
  const more = element('button', {type: 'button', className: 'button', textContent: `Show more (${sessions.length - limit})`});
  more.dataset.of = `more of ${title}`;
  more.addEventListener('click', () => {
    limits.set(title, limit + atOnce);
    const wrapper = more.parentElement;
    const next = rows({title, sessions});
    wrapper.replaceWith(next);
    next.querySelectorAll('h3 a')[limit]?.focus();
  });
  return element('div', {className: 'long'}, items, more);
}

/** Returns the card of a session as it is now: a group that is opened late has it as it was. */
function card(old) {
  const session = list.sessions.get(old.session) ?? old;
  let made = cards.get(session.session);
  if (!made) {
    made = new Card(session, (name, isChosen) => choice.choose(name, isChosen));
    if (made.box) made.box.checked = choice.has(session.session);
    cards.set(session.session, made);
  }
  return made;
}

const view = () => ($('cards').getAttribute('aria-pressed') === 'true' ? 'cards' : 'rows');

function setView(wanted) {
  for (const name of ['cards', 'rows']) $(name).setAttribute('aria-pressed', name === wanted);
  for (const items of document.querySelectorAll('.sessions')) items.className = `sessions ${wanted}`;
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
  const fold = isOpen => () => {
    for (const details of document.querySelectorAll('.group')) {
      details.open = isOpen;
      opened.set(details.querySelector('h2').textContent, isOpen);
    }
  };
  $('open-all').addEventListener('click', fold(true));
  $('close-all').addEventListener('click', fold(false));
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
