// Runs a worker on a spool, as a part of a server that ends with its standard input: RunWorker SPOOL
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
  await worker.stop()
  try await work.value
  logger.info("stopped")
} catch {
  logger.error("\(error)")
}
