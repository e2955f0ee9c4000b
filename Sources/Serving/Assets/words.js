// The search for words on screen and in labels: sessions and instants, each with a link that opens the player there.

import {ask} from './server.js';
import {count, element, kindTitle} from './text.js';
import {second} from './time.js';

const $ = id => document.getElementById(id);

export class WordSearch {
  /** The words that were asked for last. */
  text = '';
  #asking;

  /** @param changed - called when other words are asked for. */
  constructor(changed) {
    $('words').addEventListener('submit', event => {
      event.preventDefault();
      this.run($('word').value);
      changed();
    });
  }

  /** Asks the server, and shows the answer. No words remove it. */
  async run(text) {
    this.#asking?.abort();
    this.text = text.trim();
    $('word').value = this.text;
    $('found').replaceChildren();
    $('found').hidden = true;
    $('search-text').textContent = this.text ? 'Searching…' : '';
    if (!this.text) return;
    const asking = (this.#asking = new AbortController());
    try {
      const answer = await (await ask(`/search.json?text=${encodeURIComponent(this.text)}`, asking.signal)).json();
      if (this.#asking === asking) this.#show(answer);
    } catch (error) {
      if (this.#asking === asking && error.name !== 'AbortError') $('search-text').textContent = error.message;
    }
  }

  #show({results, sessionsWithoutAllText, sessionsNotSearched, more}) {
    const facts = [results.length ? `${count(results.length, 'place')} found` : 'Nothing found'];
    if (more) facts.push('there are more');
    if (sessionsNotSearched) facts.push(`${count(sessionsNotSearched, 'session')} not searched, or not all of it`);
    if (sessionsWithoutAllText) facts.push(`${count(sessionsWithoutAllText, 'session')} without all words: encoder-worker text reads them`);
    $('search-text').textContent = `${facts.join('; ')}.`;
    $('found').replaceChildren(...results.map(({url, text, kind, session, unixMs}) => element('li', {},
      element('a', {className: 'card', href: url},
        element('b', {dir: 'auto', textContent: text}), ...(kind ? [element('span', {className: 'dim', textContent: kindTitle(kind)})] : []), element('span', {textContent: session}),
        element('span', {className: 'dim', textContent: second(unixMs)})))));
    $('found').hidden = !results.length;
  }
}
