import Logging
import Remote

#if Observability
  import Tracing
#endif

/// The export of the steps of batches as spans, as OpenTelemetry's variables say. It is in builds with the package's trait `Observability`.
struct TraceExport {
  #if Observability
    private let exporter: SpanExporter
  #endif

  /// Starts the export. Call it before the first batch, and once in a process.
  ///
  /// - Returns: nil if no receiver is named, or the export cannot start; the log says why. Batches are worth more than their spans.
  init?(_ logger: Logger) {
    do {
      guard let settings = try TraceExportSettings(version: EncoderWorker.version) else { return nil }
      #if Observability
        exporter = try SpanExporter(settings) { lost, cause in
          let facts: Logger.Metadata = ["spans": .stringConvertible(lost), "reason": "\(cause)"]
          logger.warning("traces.lost", metadata: facts)
        }
        InstrumentationSystem.bootstrap(SpanTracer(exporter, settings.sampler))
        logger.info("traces.exported", metadata: ["receiver": "\(settings.name)", "protocol": "http/json"])
      #else
        let advice = "build the program with the trait Observability, see docs/tracing.md"
        logger.notice(
          "traces.off",
          metadata: [
            "receiver": "\(settings.name)", "reason": "this build exports no spans", "advice": "\(advice)",
          ])
        return nil
      #endif
    } catch {
      logger.warning("traces.off", metadata: ["reason": "\(error)"])
      return nil
    }
  }

  /// Sends the spans that wait, for two seconds at most.
  func stop() {
    #if Observability
      exporter.stop()
    #endif
  }
}
