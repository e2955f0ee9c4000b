import CLinux
import Glibc
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches

/// A compromised decoder sends wrong messages. The worker refuses each within its bounds.
@Suite struct LyingDecoderTests {
  private let decoder: DecoderProcess
  /// The socket end of the decoder.
  private let socket: Int32
  private let channel: DecoderChannel

  init() throws {
    var sockets: [Int32] = [-1, -1]
    try #require(clinux_stream_pair(&sockets) == 0)
    // The largest process number, which the kernel never assigns.
    decoder = DecoderProcess(process: .max, socket: sockets[0], slots: try DecoderForkServer.newSlots(Limits()))
    socket = sockets[1]
    channel = DecoderChannel(socket: socket)
  }

  /// Asks a question while `lies` plays the decoder. Closes the socket before it joins that thread.
  private func ask(
    _ exchange: DecoderExchange = DecoderExchange(), question: Int = 8, seconds: Int = 60,
    lies: @escaping @Sendable (DecoderChannel) -> Void
  ) throws {
    signal(SIGPIPE, SIG_IGN)
    let group = ThreadGroup()
    try group.start { [channel] in lies(channel) }
    defer {
      shutdown(socket, Int32(SHUT_RDWR))
      group.join()
      close(socket)
    }
    _ = try decoder.ask([UInt8](repeating: 0, count: question), seconds: seconds, exchange)
  }

  private static let bytes = [UInt8](repeating: 0, count: 8)

  /// Sends one message repeatedly until the socket is closed.
  private static func repeatedly(_ socket: Int32, ms: UInt32, _ put: (inout WireWriter) -> Void) {
    var message = WireWriter()
    put(&message)
    let bytes = message.framed
    while send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count { usleep(1_000 * ms) }
  }

  @Test func silentDecoderTimesOut() {
    #expect(throws: DecoderFailure.late) { try ask(seconds: 1) { _ in } }
  }

  @Test func slowPartsOfAResultTimeOut() {
    var exchange = DecoderExchange()
    exchange.output = { _ in }
    #expect(throws: DecoderFailure.late) {
      try ask(exchange, seconds: 1) { channel in
        Self.repeatedly(channel.socket, ms: 100) { message in
          message.put(DecoderChannel.Message.output)
          message.put(Self.bytes)
        }
      }
    }
  }

  /// Reads at the end of the file, and repeated reads of the same bytes.
  @Test(arguments: [(file: [UInt8](), inputBytes: Int.max), (file: bytes, inputBytes: 1_000)])
  func endlessReadsAreRefused(file: [UInt8], inputBytes: Int) {
    var exchange = DecoderExchange()
    exchange.inputBytes = inputBytes
    exchange.input = { _, _ in file }
    #expect(throws: DecoderFailure.readLimitExceeded) {
      try ask(exchange) { channel in
        Self.repeatedly(channel.socket, ms: 0) { message in
          message.put(DecoderChannel.Message.input)
          message.put(0)
          message.put(8)
        }
      }
    }
  }

  @Test(arguments: [0, 100]) func moreStepsThanPermittedAreRefused(steps: Int) {
    var exchange = DecoderExchange()
    exchange.steps = steps
    #expect(throws: DecoderFailure.malformed) {
      try ask(exchange) { channel in
        Self.repeatedly(channel.socket, ms: 0) { $0.put(DecoderChannel.Message.step) }
      }
    }
  }

  @Test func longWorkWithStepsIsWaitedFor() throws {
    var exchange = DecoderExchange()
    exchange.steps = 10
    try ask(exchange) { channel in
      for _ in 0..<4 {
        usleep(400_000)
        channel.step()
      }
      channel.answer(to: ConfinementRequest.self, true)
    }
  }

  @Test func slowReaderTimesOut() {
    #expect(throws: DecoderFailure.late) {
      try ask(question: 64 << 20, seconds: 1) { channel in
        var bytes = [UInt8](repeating: 0, count: 1_000)
        while read(channel.socket, &bytes, bytes.count) > 0 { usleep(1_000) }
      }
    }
  }

  @Test func exitedDecoderIsReported() {
    #expect(throws: DecoderFailure.gone) { try ask { shutdown($0.socket, Int32(SHUT_RDWR)) } }
  }
}
