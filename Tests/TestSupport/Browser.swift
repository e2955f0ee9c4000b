import Foundation

/// Headless Chromium, and a web server for its files. Both stop when the last reference is released.
public final class Browser {
  private let directory: String
  private let server: Server

  private static let options = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-extensions", "--autoplay-policy=no-user-gesture-required",
  ]

  /// - Parameter directory: The directory that the web server serves. Pages are written there.
  public init(serving directory: String) throws {
    self.directory = directory
    server = try Server(serving: directory)
  }

  /// The origin of its pages.
  public var origin: String { "http://127.0.0.1:\(server.port)" }

  /// Runs the body of an async function in a new page and returns its result, which is JSON.
  public func run<Result: Decodable>(
    _ script: String, parameters: some Encodable, as: Result.Type = Result.self
  ) throws -> Result {
    let values = try JSONEncoder().encode(parameters)
    let (name, url) = try page(
      """
      <!doctype html><meta charset=utf-8><script>
      (async parameters => { \(script) })(\(String(decoding: values, as: UTF8.self)))
        .then(value => ({value}), error => ({error: `${error}`}))
        .then(result => fetch('/result', {method: 'POST', body: JSON.stringify(result)}));
      </script>
      """)
    let chromium = Process()
    chromium.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    chromium.arguments = ["chromium"] + Self.options + ["--user-data-dir=\(directory)/\(name)", url]
    chromium.standardOutput = FileHandle.nullDevice
    chromium.standardError = FileHandle.nullDevice
    chromium.standardInput = FileHandle.nullDevice
    try chromium.run()
    defer {
      // SIGTERM is not enough: child processes inherit the blocked signals of the test's thread.
      kill(chromium.processIdentifier, SIGKILL)
      chromium.waitUntilExit()
    }
    return try JSONDecoder().decode(Answer<Result>.self, from: server.answer(of: "the script of \(url)")).get()
  }

  /// A picture of a video.
  public struct SourceFrame {
    /// A file name in the served directory.
    public let video: String
    /// The instant to seek to, in seconds from the video's start.
    public let seconds: Double
    /// The sample on screen must start at this second or later.
    public let start: Double

    public init(of video: String, at seconds: Double, shownFrom start: Double) {
      (self.video, self.seconds, self.start) = (video, seconds, start)
    }
  }

  /// Returns the pixels on screen of each frame, in sRGB, at one screen pixel per video pixel. One page shows all
  /// frames.
  public func screenshots(of stills: [SourceFrame], width: Int, height: Int) throws -> [Pixels] {
    // Chromium takes the screenshot after the page's load event. The image delays that event until each video shows its
    // picture. The last square then turns white, as proof.
    let columns = 8
    let rows = (stills.count + columns) / columns
    let videos = stills.map {
      "<video src='\($0.video)' data-seconds=\($0.seconds) data-start=\($0.start) muted preload=auto></video>"
    }
    let (name, url) = try page(
      """
      <!doctype html><meta charset=utf-8><style>
      body { margin: 0; background: black; display: grid; grid-template-columns: repeat(\(columns), \(width)px) }
      video, div { display: block; width: \(width)px; height: \(height)px }
      img { position: absolute; visibility: hidden }</style>
      \(videos.joined())<div></div><img src=/held><script>
      const event = (video, name) => new Promise(resolve => video.addEventListener(name, resolve, {once: true}));
      async function show(video) {
        const [seconds, start] = [Number(video.dataset.seconds), Number(video.dataset.start)];
        // The first picture may be presented after the seek: wait for the requested one.
        let shown = -1;
        const painted = (_, picture) => { shown = picture.mediaTime; video.requestVideoFrameCallback(painted); };
        video.requestVideoFrameCallback(painted);
        if (video.readyState < 2) await event(video, 'loadeddata');
        const seeked = event(video, 'seeked');
        video.currentTime = seconds;
        await seeked;
        while (shown < start || shown > seconds) await new Promise(requestAnimationFrame);
      }
      (async () => {
        await Promise.all([...document.querySelectorAll('video')].map(show));
        await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        document.querySelector('div').style.background = 'white';
        await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        await fetch('/release', {method: 'POST'});
      })();
      </script>
      """)
    let (image, window) = ("\(directory)/\(name).png", (width: max(columns * width, 500), height: rows * height + 200))
    let timeoutS = 300
    let result = try Tool.run(
      "timeout",
      ["--signal=KILL", "\(timeoutS)", "chromium"] + Self.options + [
        "--hide-scrollbars", "--force-color-profile=srgb", "--force-device-scale-factor=1",
        "--window-size=\(window.width),\(window.height)", "--user-data-dir=\(directory)/\(name)",
        "--timeout=\(timeoutS * 1_000)", "--screenshot=\(image)", url,
      ])
    guard result.status == 0, FileManager.default.fileExists(atPath: image) else {
      throw Tool.Failure(
        "no screenshot of \(stills.count) videos within \(timeoutS) s (status \(result.status)): \(result.errors)")
    }
    let all = try Pixels.decode(image, width: window.width, height: window.height)[0]
    func tile(_ index: Int) -> Pixels {
      let (left, top) = (index % columns * width, index / columns * height)
      var bytes: [UInt8] = []
      for row in top..<top + height {
        let first = (row * window.width + left) * 3
        bytes += all.bytes[first..<first + width * 3]
      }
      return Pixels(width: width, height: height, bytes: bytes)
    }
    guard tile(stills.count)[width / 2, height / 2] == [255, 255, 255] else {
      throw Tool.Failure("the browser took the screenshot before each of \(stills.count) videos showed its picture")
    }
    return stills.indices.map(tile)
  }

  /// Writes a page and returns its name and its address.
  private func page(_ text: String) throws -> (name: String, url: String) {
    let name = UUID().uuidString
    try Data(text.utf8).write(to: URL(fileURLWithPath: "\(directory)/\(name).html"))
    return (name, "\(origin)/\(name).html")
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

/// Serves the files of a directory and passes on the bodies of POST requests. GET /held has no answer until POST /release.
private final class Server {
  let port: Int
  private let process = Process()
  private let lines: Lines

  private static let program = """
    import http.server, sys, threading
    released = threading.Event()
    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map = {'.html': 'text/html', '.m3u8': 'application/vnd.apple.mpegurl', '': 'video/mp4'}
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=sys.argv[1])
        def do_GET(self):
            if self.path != '/held':
                return super().do_GET()
            released.wait()
            self.send_response(204)
            self.end_headers()
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get('Content-Length', 0))).decode()
            if self.path == '/release':
                released.set()
            else:
                print(body, flush=True)
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
    process.arguments = [Tool.python, "-c", Self.program, directory]
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    lines = Lines(pipe.fileHandleForReading)
    port = Int(String(decoding: try lines.next(waitingFor: "the web server's port"), as: UTF8.self)) ?? 0
  }

  /// Waits for the body of the next POST request and returns it.
  func answer(of sender: String) throws -> Data { try lines.next(waitingFor: sender) }

  deinit {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

/// The lines that a program writes to a pipe.
private final class Lines {
  private let file: FileHandle
  private var rest = Data()

  init(_ file: FileHandle) { self.file = file }

  private static let timeoutS = 600

  /// Waits for a line and returns it.
  ///
  /// - Parameter source: The line's meaning, for the error after a timeout.
  func next(waitingFor source: String) throws -> Data {
    while true {
      if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        let line = Data(rest[..<end])
        rest = Data(rest[(end + 1)...])
        return line
      }
      var polled = pollfd(fd: file.fileDescriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&polled, 1, Int32(Self.timeoutS) * 1_000) > 0 else {
        throw Tool.Failure("no answer from \(source) within \(Self.timeoutS) s")
      }
      let data = file.availableData
      guard !data.isEmpty else { throw Tool.Failure("the web server ended before an answer from \(source)") }
      rest += data
    }
  }
}
