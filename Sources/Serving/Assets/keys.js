// The buttons and keys of a page that plays: each names a command.

const common = {
  ' ': 'play', ArrowLeft: 'previous', ',': 'previous', ArrowRight: 'next', '.': 'next', ArrowDown: 'back',
  PageDown: 'back', ArrowUp: 'forward', PageUp: 'forward', Home: 'first', End: 'last', '+': 'zoom-in', '=': 'zoom-in',
  '-': 'zoom-out', 0: 'zoom-all', g: 'go',
};
const shifted = {ArrowLeft: 'back', ArrowRight: 'forward'};

/**
 * @param commands - functions by name. A button with this name as its `id` calls it, too.
 * @param more - further keys, in lower case, with the names of their commands.
 */
export function listenForCommands(commands, more = {}) {
  const keys = {...common, ...more};
  for (const [id, command] of Object.entries(commands)) document.getElementById(id)?.addEventListener('click', () => command());
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('select, input')) return;
    // A focused button handles its own key.
    if (event.key === ' ' && event.target.closest('button, a, summary')) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const command = commands[(event.shiftKey && shifted[key]) || keys[key]];
    if (!command) return;
    event.preventDefault();
    command();
  });
}
