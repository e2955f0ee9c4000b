import Foundation
import TestSupport
import Testing

/// The arguments of `serve`, and its behaviour under load.
@Suite struct ServeCommandTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test func spoolInsteadOfItsOutputIsRefusedWithAdvice() throws {
    let spool = try TestSpool()
    try spool.addSmall("session", startMs: 1_767_859_512_340)
    try spool.drain()
    let result = try EncoderWorker.run("serve", spool.path, "--listen", "127.0.0.1:0")
    #expect(result.status == 64 && result.errors.contains("\(spool.path)/output"), "\(result.errors)")
  }

  /// A server may start before the first worker makes its output.
  @Test func serverWaitsForItsOutput() throws {
    let output = scratch.path("output")
    func start() throws -> (process: Process, answers: FileHandle) {
      let (process, answers, errors) = (Process(), Pipe(), Pipe())
      process.executableURL = URL(fileURLWithPath: EncoderWorker.path)
      process.arguments = ["serve", output, "--listen", "127.0.0.1:0"]
      (process.standardOutput, process.standardError) = (answers, errors)
      try process.runTakingSignals()
      let said = String(decoding: errors.fileHandleForReading.availableData, as: UTF8.self)
      #expect(said.contains("waiting for \(output)"))
      return (process, answers.fileHandleForReading)
    }
    func stop(_ process: Process) -> Int32 {
      process.terminate()
      process.waitUntilExit()
      return process.terminationReason == .exit ? process.terminationStatus : -1
    }
    let early = try start()
    #expect(stop(early.process) == 0)
    let (process, answers) = try start()
    defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
    _ = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    #expect(String(decoding: answers.availableData, as: UTF8.self).hasPrefix("http://127.0.0.1:"))
    #expect(stop(process) == 0)
  }

  @Test func manySessionsAndConcurrentClientsAreServed() throws {
    let script = Fixture.root.appendingPathComponent("Benchmarks/serving.py").path
    let result = try Tool.run(Tool.python, [script, EncoderWorker.path, "--seconds", Extent.of("2", full: "5")])
    #expect(result.status == 0 && result.text.contains(" 0 errors "), "\(result.text)\(result.errors)")
  }

  @Test func wrongUsageIsReported() throws {
    let none = try scratch.file("none", [])
    let file = try EncoderWorker.run("serve", none, "--listen", "127.0.0.1:0")
    #expect(file.status == 64 && file.errors.contains(none), "\(file.errors)")
    _ = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    let taken = try EncoderWorker.run("serve", scratch.path("output"), "--listen", "127.0.0.1:\(server.port)")
    #expect(taken.status == 75 && taken.errors.contains("\(server.port)"), "\(taken.errors)")
    for address in ["127.0.0.1", "x:y", "127.0.0.1:99999", "::1:80", ":80"] {
      let result = try EncoderWorker.run("serve", scratch.path("output"), "--listen", address)
      #expect(result.status == 64 && result.errors.contains("HOST:PORT"), "\(address)")
    }
  }
}
