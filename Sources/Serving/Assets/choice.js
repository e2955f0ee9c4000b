// Two sessions that the user chooses to see side by side.

const $ = id => document.getElementById(id);

export class Choice {
  #chosen = [];
  #changed;

  /** @param changed - called when another session is chosen, with their names. */
  constructor(changed) {
    this.#changed = changed;
    $('choose').addEventListener('click', () => {
      this.isOn = !this.isOn;
      if (!this.isOn) this.#chosen = [];
      this.#show();
    });
  }

  get isOn() {
    return $('choose').getAttribute('aria-pressed') === 'true';
  }

  set isOn(isOn) {
    $('choose').setAttribute('aria-pressed', isOn);
    document.body.classList.toggle('choosing', isOn);
    this.#show();
  }

  has(name) {
    return this.#chosen.includes(name);
  }

  /** Takes a session, or lets go of it. A third one takes the place of the first one. */
  choose(name, isChosen) {
    this.#chosen = this.#chosen.filter(other => other !== name);
    if (isChosen) this.#chosen = [...this.#chosen.slice(-1), name];
    this.#show();
  }

  #show() {
    const [a, b] = this.#chosen;
    $('chosen').hidden = !this.isOn;
    $('chosen-text').textContent = b ? `${a} and ${b}` : a ? `${a} and another one: choose it` : 'Choose two sessions';
    $('compare').hidden = !b;
    if (b) $('compare').href = `/compare?${new URLSearchParams({a, b})}`;
    this.#changed(this.#chosen);
  }
}
