import TestSupport

/// A suite that shows films of the fixtures in a browser.
protocol PlaybackSuite {}

extension PlaybackSuite {
  static var fixtures: [Fixture] {
    ["exact-1fps", "jittered", "gap", "rotation", "irregular-3fps", "on-change", "single-frame"].map { Fixture($0) }
  }

  /// Functions of the page: load a video, seek in it, play it, and read the number in its picture.
  static var page: String {
    """
    function number(video) {
      const canvas = number.canvas ??= document.createElement('canvas');
      canvas.width = video.videoWidth, canvas.height = video.videoHeight;
      const context = number.context ??= canvas.getContext('2d', {willReadFrequently: true});
      context.drawImage(video, 0, 0);
      const row = context.getImageData(0, Math.floor(canvas.height * 3 / 8), canvas.width, 1).data;
      let result = 0;
      for (let bit = 0; bit < 8; bit++) {
        if (row[4 * Math.floor(canvas.width * (2 * bit + 1) / 16) + 1] > 127) result |= 1 << bit;
      }
      return result;
    }
    const event = (target, name) => new Promise((resolve, reject) => {
      target.addEventListener(name, resolve, {once: true});
      target.addEventListener('error', () => reject(`${name}: ${target.error?.message}`), {once: true});
    });
    // Only a broken file or browser takes this long.
    const within = (promise, what) => Promise.race([promise, new Promise(
      (_, reject) => setTimeout(() => reject(`${what}: nothing for 200 s`), 200_000))]);
    // Waits until a new video shows its first picture.
    async function firstPicture(video) {
      const loaded = event(video, 'loadeddata');
      const shown = new Promise(resolve => video.requestVideoFrameCallback((_, frame) => resolve(frame)));
      await within(loaded, 'loadeddata');
      video.firstFrame = await within(shown, 'first picture');
    }
    async function film(file) {
      const video = Object.assign(document.createElement('video'), {muted: true});
      const ready = firstPicture(video);
      video.src = file.endsWith('.mp4') ? URL.createObjectURL(await (await fetch(file)).blob()) : file;
      await ready;
      return video;
    }
    // Chromium presents a picture after each seek, except a seek to the current position.
    async function seek(video, seconds) {
      if (video.currentTime !== Math.min(seconds, video.duration)) {
        const seeked = event(video, 'seeked');
        const shown = new Promise(resolve => video.requestVideoFrameCallback(resolve));
        video.currentTime = seconds;
        await within(seeked, `seeked event at ${seconds} s`);
        await within(shown, `picture after the seek to ${seconds} s`);
      }
      return number(video);
    }
    // Plays to the end. Reads each picture when the browser reports that it presents the picture. Counts the pictures
    // that the browser dropped, and those that this page read too late.
    async function play(video) {
      const seen = {}, times = [];
      let [presented, missed, lateMs] = [video.firstFrame.presentedFrames, 0, 0];
      const start = performance.now();
      const look = () => seen[number(video)] ??= performance.now() - start;
      look();
      video.requestVideoFrameCallback(function note(_, frame) {
        times.push(frame.mediaTime * 1000);
        missed += Math.max(0, frame.presentedFrames - presented - 1);
        presented = frame.presentedFrames;
        look();
        lateMs = Math.max(lateMs, performance.now() - frame.presentationTime);
        video.requestVideoFrameCallback(note);
      });
      const ended = event(video, 'ended');
      await within(video.play(), 'start of playback');
      await within(ended, `end of ${video.duration} s`);
      const endedMs = performance.now() - start;
      look();
      const dropped = video.getVideoPlaybackQuality().droppedVideoFrames;
      return {seen, times, endedMs, dropped, missed, lateMs};
    }
    // A busy machine can drop pictures although the file is good. Plays again while pictures are missing and the
    // browser reports drops or late frames.
    async function playThrough({file, numbers, times}) {
      const attempts = [];
      while (true) {
        const attempt = await play(await film(file));
        attempts.push(attempt);
        const isComplete = numbers.every(number => attempt.seen[number] !== undefined)
          && times.every(time => attempt.times.some(other => Math.abs(other - time) < 1));
        const isDisturbed = attempt.dropped > 0 || attempt.missed > 0 || attempt.lateMs > 30;
        if (isComplete || !isDisturbed || attempts.length === 8) return attempts;
      }
    }

    """
  }
}
