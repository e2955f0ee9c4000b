import Batching
import FileSystem
import Logging
import Serving
import Synchronization

/// The listener of `run --ingest`, with the threads that it needs.
package final class IngestServer: Sendable {
  /// Milliseconds between two parts of the receipts that are swept, and between two tries to forward batches.
  private static let (sweepMs, forwardMs) = (10_000, 500)

  package var address: ListenAddress { server.address }
  private let server: HTTPServer
  private let pictures: PictureIntake?
  private let forwarder: BatchForwarder?
  private let threads: [PeriodicThread]

  /// Removes what dead processes left, and starts to answer.
  ///
  /// - Parameters:
  ///   - hosts: further host names to accept.
  ///   - forwarder: brings the batches of pictures to their queue; nil if they are in it.
  package init(
    _ routes: IngestRoutes, _ context: IngestContext, on socket: ListeningSocket, hosts: [String],
    pictures: PictureIntake?, forwarder: BatchForwarder?, logger: Logger
  ) throws {
    self.pictures = pictures
    self.forwarder = forwarder
    try UploadDraft.removeAbandoned(in: context.intake.drafts)
    try pictures?.start()
    let number = Atomic(0)
    var threads = [
      try PeriodicThread("receipts", everyMs: Self.sweepMs) {
        do {
          try context.intake.sweep(number.add(1, ordering: .relaxed).newValue)
        } catch {
          logger.error("ingest.failed", metadata: ["error": "\(error)"])
        }
      }
    ]
    if let forwarder {
      threads.append(try PeriodicThread("forward", everyMs: Self.forwardMs) { forwarder.step() })
    }
    self.threads = threads
    server = try HTTPServer(on: socket, hosts: hosts, routes: routes.body)
  }

  /// Ends the threads. Pictures that no batch has stay for the next run.
  package func stop() {
    for thread in threads { thread.stop() }
    pictures?.stop()
    try? forwarder?.run()
  }
}
