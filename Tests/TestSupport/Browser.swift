import Foundation

/// Headless Chromium, and a web server for what it is to show. Both end with the last reference.
public final class Browser {
  private let directory: String
  private let server: Server

  /// - Parameter directory: what the web server serves; pages are put there.
  public init(serving directory: String) throws {
    self.directory = directory
    server = try Server(serving: directory)
  }

  /// Runs the body of an async function in a page of its own; what it returns is JSON.
  public func run<Result: Decodable>(_ script: String, parameters: [Any], as: Result.Type = Result.self) throws
    -> Result
  {
    let values = try JSONSerialization.data(withJSONObject: parameters)
    let page = """
      <!doctype html><meta charset=utf-8><script>
      (async parameters => { \(script) })(\(String(decoding: values, as: UTF8.self)))
        .then(value => ({value}), error => ({error: `${error}`}))
        .then(result => fetch('/result', {method: 'POST', body: JSON.stringify(result)}));
      </script>
      """
    let name = UUID().uuidString
    try Data(page.utf8).write(to: URL(fileURLWithPath: "\(directory)/\(name).html"))
    let chromium = Process()
    chromium.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    chromium.arguments = [
      "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
      "--autoplay-policy=no-user-gesture-required", "--user-data-dir=\(directory)/\(name)",
      "http://127.0.0.1:\(server.port)/\(name).html",
    ]
    chromium.standardOutput = FileHandle.nullDevice
    chromium.standardError = FileHandle.nullDevice
    chromium.standardInput = FileHandle.nullDevice
    try chromium.run()
    defer {
      // Nothing milder: what tests start has inherited their threads' blocked signals.
      kill(chromium.processIdentifier, SIGKILL)
      chromium.waitUntilExit()
    }
    return try JSONDecoder().decode(Answer<Result>.self, from: server.answer()).get()
  }

  /// What is seen of a video at an instant, at one pixel a pixel, in sRGB.
  ///
  /// - Parameters:
  ///   - seconds: from the video's start.
  ///   - start: the sample shown then starts at this second or later.
  public static func screenshot(
    of video: String, at seconds: Double, shownFrom start: Double, width: Int, height: Int
  ) throws -> Pixels {
    let scratch = try ScratchDirectory()
    // A square beside the video turns white once the picture is there: a screenshot is taken when time is up, ready or not.
    let page = """
      <!doctype html><style>body { margin: 0; background: black; display: flex }
      div { width: 16px; height: 16px }</style>
      <video src="\(URL(fileURLWithPath: video).absoluteString)" muted preload=auto></video><div></div><script>
      const video = document.querySelector('video');
      const event = name => new Promise(resolve => video.addEventListener(name, resolve, {once: true}));
      // The picture a paused video came up with may be handed over after the seek: only the one asked for counts.
      let shown = -1;
      const painted = (_, picture) => { shown = picture.mediaTime; video.requestVideoFrameCallback(painted); };
      video.requestVideoFrameCallback(painted);
      (async () => {
        if (video.readyState < 2) await event('loadeddata');
        const seeked = event('seeked');
        video.currentTime = \(seconds);
        await seeked;
        while (shown < \(start) || shown > \(seconds)) await new Promise(requestAnimationFrame);
        await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        document.querySelector('div').style.background = 'white';
      })();
      </script>
      """
    let file = try scratch.file("page.html", Array(page.utf8))
    let (image, seen) = (scratch.path("screen.png"), (width: max(width + 16, 500), height: height + 200))
    for attempt in 1...5 {
      _ = try Tool.output(
        "timeout",
        [
          "60", "chromium",
          "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
          "--force-color-profile=srgb", "--force-device-scale-factor=1", "--window-size=\(seen.width),\(seen.height)",
          "--virtual-time-budget=\(5_000 * attempt * attempt)", "--user-data-dir=" + scratch.path("profile\(attempt)"),
          "--screenshot=" + image, "file://" + file,
        ])
      let all = try Pixels.decode(image, width: seen.width, height: seen.height)[0]
      guard all[width + 8, 8] == [255, 255, 255] else { continue }
      let rows = (0..<height).flatMap { row in all.bytes[(row * seen.width * 3)..<((row * seen.width + width) * 3)] }
      return Pixels(width: width, height: height, bytes: rows)
    }
    throw Tool.Failure("\(video): the browser does not show it at \(seconds) s")
  }

  private struct Answer<Value: Decodable>: Decodable {
    let value: Value?
    let error: String?

    func get() throws -> Value {
      guard let value else { throw Tool.Failure("in the browser: \(error ?? "nothing")") }
      return value
    }
  }
}

/// Serves a directory's files, and hands on what is posted to it.
private final class Server {
  let port: Int
  private let process = Process()
  private let lines: Lines

  private static let program = """
    import http.server, sys
    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map = {'.html': 'text/html', '.m3u8': 'application/vnd.apple.mpegurl', '': 'video/mp4'}
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=sys.argv[1])
        def do_POST(self):
            print(self.rfile.read(int(self.headers['Content-Length'])).decode(), flush=True)
            self.send_response(204)
            self.end_headers()
        def log_message(self, *arguments):
            pass
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
    """

  init(serving directory: String) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", Self.program, directory]
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    lines = Lines(pipe.fileHandleForReading)
    port = Int(String(decoding: try lines.next(), as: UTF8.self)) ?? 0
  }

  /// Waits for what is posted next.
  func answer() throws -> Data { try lines.next() }

  deinit {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

/// The lines that a program writes.
private final class Lines {
  private let file: FileHandle
  private var rest = Data()

  init(_ file: FileHandle) { self.file = file }

  /// Waits for a line, but not for ever.
  func next() throws -> Data {
    while true {
      if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        let line = Data(rest[..<end])
        rest = Data(rest[(end + 1)...])
        return line
      }
      var polled = pollfd(fd: file.fileDescriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&polled, 1, 300_000) > 0, case let data = file.availableData, !data.isEmpty else {
        throw Tool.Failure("no answer from the browser")
      }
      rest += data
    }
  }
}
