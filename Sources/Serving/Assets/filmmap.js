// The map of a film, as in docs/map.md: the film's time to the instant that it shows, and back. Exact. Pure.

/** Ticks in a millisecond of film time. */
const ticksPerMs = 90;

export class FilmMap {
  #pieces;
  #speed;
  #shown;
  #endTick;

  /** @param map - the JSON of a map: `speed`, `fromMs`, `toMs` and `pieces`. */
  constructor({speed, fromMs, toMs, pieces}) {
    // Products of two times exceed what a Number holds exactly.
    const thousandths = BigInt(Math.round(speed * 1000));
    const whole = ms => BigInt(Math.round(ms * speed));
    this.#speed = thousandths;
    this.#shown = {fromMs, toMs};
    this.#pieces = pieces.map(({filmMs, filmEndMs, unixMs, unixEndMs}) => ({
      at: whole(filmMs), film: whole(filmEndMs) - whole(filmMs), unixMs, unixEndMs, unix: BigInt(unixEndMs - unixMs),
    }));
    const last = this.#pieces.at(-1);
    this.#endTick = last ? this.#tick(last, last.unix) : 0n;
  }

  /** The length of the film, in milliseconds. */
  get durationMs() {
    return Number(this.#endTick) / ticksPerMs;
  }

  /**
   * Returns when the film shows an instant, in milliseconds from its start. An instant that the film leaves out gets the
   * place where it would be; one outside of the film's part of the session gets undefined.
   */
  filmMs(unixMs) {
    const piece = this.#last(({unixMs: startMs}) => startMs <= unixMs);
    if (!piece || !(unixMs >= this.#shown.fromMs && unixMs < this.#shown.toMs)) return undefined;
    const since = BigInt(Math.min(Math.floor(unixMs), piece.unixEndMs) - piece.unixMs);
    return Number(this.#tick(piece, since)) / ticksPerMs;
  }

  /** Returns the instant that the film shows at a time, in unix milliseconds; undefined before and behind the film. */
  unixMs(filmMs) {
    if (!Number.isFinite(filmMs)) return undefined;
    // A time from a video is a fraction: it may be a little less than the tick that it means.
    const tick = BigInt(Math.floor(filmMs * ticksPerMs + 0.001));
    const piece = this.#last(piece => this.#tick(piece, 0n) <= tick);
    if (!piece || tick < 0n || tick >= this.#endTick) return undefined;
    // The latest instant whose tick is not later.
    const room = (tick + 1n) * piece.unix * this.#speed - piece.at * piece.unix * this.#scale;
    const since = (room - 1n) / (piece.film * this.#scale);
    return piece.unixMs + Number(since < piece.unix ? since : piece.unix - 1n);
  }

  /** Ticks in a millisecond at a speed of one thousandth. */
  #scale = BigInt(ticksPerMs) * 1000n;

  /** Returns the tick of an instant in a piece, `since` milliseconds from the piece's beginning. */
  #tick({at, film, unix}, since) {
    return ((at * unix + since * film) * this.#scale) / (unix * this.#speed);
  }

  /** Returns the last piece with a property that all before it have; undefined if there is none. */
  #last(isBefore) {
    let [low, high] = [0, this.#pieces.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(this.#pieces[middle])) low = middle + 1;
      else high = middle;
    }
    return this.#pieces[low - 1];
  }
}
