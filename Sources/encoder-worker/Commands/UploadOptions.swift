import ArgumentParser
import FileSystem
import Logging
import Remote
import SegmentEncoder
import Sessions

/// The store that takes the sessions of a spool when they have ended.
struct UploadOptions: ParsableArguments {
  @Option(
    help: .setting(
      "Bring each session into this object store when it has ended, then remove it here: s3://BUCKET[/PREFIX].",
      valueName: "url", example: "s3://bucket"),
    transform: S3Location.init(_:))
  var upload: S3Location?

  @Option(
    help: .setting(
      "With --upload: also bring what there is of a session that goes on, every so many minutes.", valueName: "minutes")
  )
  var uploadEvery: Int?

  @Option(
    help: .setting(
      "With --upload: keep sessions here for this time behind their upload.", default: "0s", valueName: "age",
      example: "12h"),
    transform: Age.init)
  var keepLocal: Age?

  var rules: UploadRules {
    UploadRules(everyMs: uploadEvery.map { Int64($0) * 60_000 }, keptMs: keepLocal?.ms ?? 0)
  }

  /// - Throws: ``ValidationError`` if options do not fit together.
  func validate(with source: QueueOptions, _ retention: RetentionOptions) throws {
    guard upload != nil else {
      return try CallOptions.refuse("--upload-every", "--keep-local", without: "--upload")
    }
    guard source.spool != nil else {
      throw ValidationError("--upload works with --spool; with --queue, sessions go to the --store at once")
    }
    if !retention.limits.isEmpty {
      throw ValidationError(
        "--retain and --max-bytes would remove what waits for --upload; --keep-local AGE limits what stays here")
    }
    if let uploadEvery { try require("--upload-every", uploadEvery, in: 1...43_200, "minutes") }
  }

  /// Connects to the store. A store that is away does not stop the worker.
  ///
  /// - Returns: nil without `--upload`. Packs are made in the staging, which is not on the disk of the sessions if `TMPDIR` is not: remove it
  ///   at the end.
  func passes(
    of local: any WorkerStore, as id: WorkerID, _ access: StoreAccess, _ shutdown: ShutdownState, _ logger: Logger
  ) throws -> (passes: UploadPasses, objects: S3Client, staging: Staging)? {
    guard let upload, let local = local as? DirectoryStore else { return nil }
    let objects = try S3Client(upload, access.settings(), isOverdue: { shutdown.isOverdue })
    let name = "\(upload)"
    do {
      try objects.requireConditions(tryingAt: "incoming/.\(id)", name: name)
    } catch let failure as any ClassifiedError where failure.kind == .environment {
      logger.error("upload.failed", metadata: ["error": "\(failure)"])
    }
    let staging = try Staging.temporary(for: id)
    let store = ObjectStore(objects, name: name, staging: staging, layout: .packed)
    let open = OpenUploads()
    let passes = UploadPasses(to: store.place, shutdown: shutdown) { [rules] listener in
      OutputUploads(
        of: local, to: store, rules, open: open, listener,
        cancellation: Cancellation {
          _ = shutdown.shouldContinue()
          return shutdown.isStopping
        })
    }
    return (passes, objects, staging)
  }
}
