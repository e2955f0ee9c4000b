// The box of the picture on the stage: its shape, and the full screen.

export class Screen {
  #stage;
  #box;
  #video;
  #playback;

  /** @param stage - has a `.screen` with the video, and what is drawn over it. */
  constructor(stage, playback) {
    this.#stage = stage;
    this.#box = stage.querySelector('.screen');
    this.#video = stage.querySelector('video');
    this.#playback = playback;
  }

  /** Keeps the picture's aspect ratio, and crops the column and row that the encoder may have added. */
  fit() {
    const [stage, video] = [this.#stage, this.#video];
    const segment = this.#playback.segment ?? this.#playback.step.segment;
    let [width, height] = [segment.width, segment.height];
    let [codedWidth, codedHeight] = [segment.codedWidth, segment.codedHeight];
    // The old picture keeps its shape until the video shows the new one.
    if (video.videoWidth && (video.videoWidth !== codedWidth || video.videoHeight !== codedHeight)) {
      [width, height] = [codedWidth, codedHeight] = [video.videoWidth, video.videoHeight];
    }
    const scale = Math.min(stage.clientWidth / width, stage.clientHeight / height);
    for (const [box, across, down] of [[this.#box, width, height], [video, codedWidth, codedHeight]]) {
      const [styleWidth, styleHeight] = [`${across * scale}px`, `${down * scale}px`];
      if (box.style.width !== styleWidth) box.style.width = styleWidth;
      if (box.style.height !== styleHeight) box.style.height = styleHeight;
    }
  }

  set isEmpty(isEmpty) {
    this.#box.classList.toggle('empty', isEmpty);
  }

  /** Returns the segment whose picture the video shows; undefined for none, and while the picture has another size. */
  segmentOf(picture) {
    const {segment, isPlaying} = this.#playback;
    const isShown = picture === 'ready' || (isPlaying && picture === 'loading');
    const {videoWidth, videoHeight} = this.#video;
    return isShown && segment?.codedWidth === videoWidth && segment.codedHeight === videoHeight ? segment : undefined;
  }
}

// Safari before 16.4 has only the names with a prefix.
const enter = Element.prototype.requestFullscreen ?? Element.prototype.webkitRequestFullscreen;
const leave = Document.prototype.exitFullscreen ?? Document.prototype.webkitExitFullscreen;
const full = () => document.fullscreenElement ?? document.webkitFullscreenElement ?? undefined;

/** Shows an element on the full screen, with all that is drawn in it. */
export class FullScreen {
  #element;
  #button;

  /** @param button - is hidden where the browser has no full screen, such as on an iPhone. */
  constructor(element, button) {
    this.#element = element;
    this.#button = button;
    button.hidden = !enter || !(document.fullscreenEnabled ?? document.webkitFullscreenEnabled);
    for (const name of ['fullscreenchange', 'webkitfullscreenchange']) {
      document.addEventListener(name, () => button.setAttribute('aria-pressed', full() === element));
    }
  }

  toggle() {
    if (this.#button.hidden) return;
    const done = full() ? leave.call(document) : enter.call(this.#element);
    done?.catch(() => {}); // The browser has refused it, and the page stays as it is.
  }
}
