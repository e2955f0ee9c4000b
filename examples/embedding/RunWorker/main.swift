// Encodes what comes into a spool as one part of a server, which lives until its standard input ends: RunWorker SPOOL
import Logging
import SegmentEncoder

let logger = Logger(label: "server") { label in
  var handler = StreamLogHandler.standardOutput(label: label)
  handler.logLevel = .info
  return handler
}
do {
  let worker = try SpoolWorker(spool: CommandLine.arguments[1], logger: logger)
  let work = Task.detached { try await worker.run() }
  while let line = readLine() { logger.info("\(line): \(worker.trouble ?? "ready")") }
  worker.stop()
  try await work.value
  logger.info("stopped")
} catch {
  logger.error("\(error)")
}
