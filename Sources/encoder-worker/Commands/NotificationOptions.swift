import ArgumentParser
import FileSystem
import Notifying
import Remote
import SegmentEncoder

/// The receiver of the events of `run`.
struct NotificationOptions: ParsableArguments {
  @Flag(help: "Print results as JSON, one object a line.")
  var json = false

  @Option(
    help: .setting(
      "Send events to this address as HTTP POSTs, each at least once.",
      valueName: "url", example: "http://localhost", secret: .receiver))
  var notify: HTTPAddress?

  @OptionGroup var secret: SecretOption

  @Option(
    help: .setting(
      "Start no batch while this many wait for the delivery of their events.", valueName: "batches"))
  var notifyPending = 1_000

  @Option(
    help: .setting(
      "With --drain: give up, and put batches back, if the receiver takes no event for this many seconds.",
      valueName: "seconds"))
  var notifyTimeout = 60

  func validate() throws {
    try notify?.validate("--notify")
    try require("--notify-pending", notifyPending, in: 1...100_000, "batches")
    try require("--notify-timeout", notifyTimeout, in: 1...86_400, "seconds")
    if notify == nil, secret.notifySecretFile != nil {
      throw ValidationError("--notify-secret-file works with --notify")
    }
  }

  /// Prints an event; nil without `--json`.
  var write: (@Sendable (any Event) -> Void)? { json ? { @Sendable event in answer(event.line) } : nil }

  /// Returns nil without a receiver: then nothing is loaded, and no thread is started.
  ///
  /// - Throws: ``Failure``, ``DiskError``.
  func notifier() throws -> EventNotifier<EventSubject>? {
    try notify.map {
      EventNotifier(try WebhookReceiver($0, secret), limit: notifyPending, timeoutS: notifyTimeout)
    }
  }
}

/// The file with the secret that signs events.
struct SecretOption: ParsableArguments {
  @Option(
    help: .setting(
      "Sign each POST with the secret in this file, after Standard Webhooks. Others may not read the file.",
      valueName: "file"),
    completion: .file())
  var notifySecretFile: String?

  /// Returns nil without a secret.
  func signer() throws -> WebhookSigner? { try notifySecretFile.map(WebhookSigner.init(file:)) }
}

extension WebhookReceiver {
  init(_ url: HTTPAddress, _ secret: SecretOption) throws {
    try self.init(url, secret.signer(), userAgent: "encoder-worker/\(ProgramVersion.text)")
  }
}
