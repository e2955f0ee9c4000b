// The list of sessions as it has come from the server: page by page, then its changes.

import {ask as request} from './server.js';

/** Sessions of a page: the server makes it in a few milliseconds. */
const pageSize = 500;
/** After this many reloads, 15 of 16 refreshes are left out. */
const mostReloads = 4;

const ask = async asked => (await request(`/sessions.json?${asked}`)).json();

export class Listing {
  /** The sessions that have come, by their names. */
  sessions = new Map();
  /** Of all sessions: `total`, `frames` and `bytes`. */
  facts;
  /** Of the load of a list with several pages, in words. */
  state = '';

  #page;
  /** The state of the list of which all changes are still to be asked for. */
  #revision;
  /** The names on the pages that have come, and the place of the next page; undefined when all have come. */
  #load;
  /** Reloads of late of a list with several pages. Two servers at one address cause many. */
  #reloads = 0;
  #refreshes = 0;

  /**
   * @param page - what shows the list: `changed` is called with a new or changed session, and whether it can be read is as before,
   * `dropped` with the name of one that was removed, `counted` after each page, and `moved` when the order is another one.
   */
  constructor(page) {
    this.#page = page;
  }

  /** The number of sessions on the pages of the load that have come; undefined when all have come. */
  get loaded() {
    return this.#load?.names.size;
  }

  /** Gets the first page. */
  async begin() {
    this.#begin(await ask(`limit=${pageSize}`));
  }

  /** Gets the other pages. After an error, `refresh` goes on. */
  async complete() {
    if (!this.#load) return;
    this.state = 'loading';
    this.#page.counted();
    try {
      while (this.#load) {
        const {names, next} = this.#load;
        this.#take(await ask(`limit=${pageSize}&after=${encodeURIComponent(next)}`), names);
      }
      this.state = 'all loaded';
    } catch (error) {
      this.state = 'not all loaded, trying again soon';
      throw error;
    } finally {
      this.#page.moved();
    }
  }

  /** Gets what has changed. Call it every 30 seconds. */
  async refresh() {
    if (!this.#load && this.#refreshes++ % 2 ** this.#reloads) return;
    await this.complete();
    let [isMoved, step] = [false, -1];
    try {
      for (let list = {more: true}; list.more;) {
        list = await ask(`since=${encodeURIComponent(this.#revision)}`);
        if (list.since === this.#revision) {
          isMoved = this.#apply(list) || isMoved;
        } else {
          // The server was started again, or too much has changed: this is the first page.
          this.#begin(list);
          [isMoved, step] = [true, this.#load ? 1 : -1];
        }
      }
      this.#reloads = Math.min(mostReloads, Math.max(0, this.#reloads + step));
    } finally {
      if (isMoved) this.#page.moved();
    }
    await this.complete();
  }

  /** Reads the first page. Sessions that are known stay until all pages have come. */
  #begin(list) {
    this.#revision = list.revision;
    this.#take(list, new Set());
  }

  /** Reads a page; `names` are those of the pages before it. After the last one, drops the sessions that were on none. */
  #take(list, names) {
    for (const session of list.sessions) {
      names.add(session.session);
      this.#put(session);
    }
    this.#load = list.next ? {names, next: list.next} : undefined;
    if (!this.#load) for (const name of this.sessions.keys()) if (!names.has(name)) this.#drop(name);
    this.#count(list);
  }

  /** Applies changes. Returns whether the order is another one. */
  #apply(changes) {
    for (const name of changes.removed) this.#drop(name);
    const moved = changes.sessions.filter(session => this.#put(session));
    this.#revision = changes.revision;
    this.#count(changes);
    return changes.removed.length + moved.length > 0;
  }

  #put(session) {
    const known = this.sessions.get(session.session);
    this.sessions.set(session.session, session);
    const isAsBefore = known?.error === session.error;
    this.#page.changed(session, isAsBefore);
    return !known || !isAsBefore || known.startMs !== session.startMs;
  }

  #drop(name) {
    this.sessions.delete(name);
    this.#page.dropped(name);
  }

  #count({total, frames, bytes}) {
    this.facts = {total, frames, bytes};
    this.#page.counted();
  }
}
