// Lanes below the map: a tick for each label, in a lane for each group of kinds that the session has. A tick has the colour of its level. One
// pixel may represent many labels. The list of labels has the same for screen readers.

const groups = [
  {name: 'Steps', kinds: ['step', 'caption']},
  {name: 'Marks', kinds: ['mark', 'key', 'log']},
  {name: 'Pages', kinds: ['page']},
  {name: 'Errors', kinds: ['error']},
];
const [laneHeight, tickWidth] = [9, 2];

/** Returns the group of a kind: those of producers are marks. */
const groupOf = kind => groups.find(({kinds}) => kinds.includes(kind)) ?? groups[1];

/** Returns how much a label matters: the greater one is drawn. */
export const weight = ({kind, level}) => (kind === 'error' || level === 'error' ? 2 : level === 'warning' ? 1 : 0);

const colours = ['tick', 'turn', 'bad'];

export class Lanes {
  #canvas;
  #session;

  constructor(canvas, session) {
    this.#canvas = canvas;
    this.#session = session;
  }

  /** The lanes that the session has. */
  get #groups() {
    const has = new Set(this.#session.labels.map(({kind}) => groupOf(kind)));
    return groups.filter(group => has.has(group));
  }

  /** @param view - {fromMs, toMs}, from the session's start. */
  draw(view) {
    const [canvas, lanes] = [this.#canvas, this.#groups];
    canvas.hidden = lanes.length === 0;
    canvas.dataset.lanes = lanes.map(({name}) => name).join(' ');
    if (!lanes.length) return;
    canvas.style.height = `${lanes.length * laneHeight}px`;
    const [width, scale] = [canvas.clientWidth, window.devicePixelRatio || 1];
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(lanes.length * laneHeight * scale)];
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const style = getComputedStyle(canvas);
    const colour = name => style.getPropertyValue(`--${name}`).trim();
    const weights = lanes.map(() => new Map());
    for (const label of this.#session.labels) {
      const column = Math.floor(((label.atMs - view.fromMs) / (view.toMs - view.fromMs)) * width);
      if (column < 0 || column > width) continue;
      const lane = weights[lanes.indexOf(groupOf(label.kind))];
      lane.set(column, Math.max(lane.get(column) ?? 0, weight(label)));
    }
    weights.forEach((lane, row) => {
      context.fillStyle = colour('line');
      context.fillRect(0, row * laneHeight + laneHeight - 1, width, 1);
      for (const [column, most] of lane) {
        context.fillStyle = colour(colours[most]);
        context.fillRect(Math.min(column, width - tickWidth), row * laneHeight + 1, tickWidth, laneHeight - 3);
      }
    });
  }
}
