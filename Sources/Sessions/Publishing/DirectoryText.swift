import Encoding
import FileSystem
import FrameBatches

extension DirectoryStore {
  package func readText(
    of session: SessionID, fromMs: Int64, _ engine: TextEngine, decoders: DecoderForkServer?,
    cancellation: Cancellation,
    progress: (Int, Int) throws -> Void
  ) throws -> SessionTextReport {
    let directory = SessionDirectory(output: staging.output, session: session, decoders: decoders)
    return try SessionText(engine, of: directory, cancellation: cancellation).write(.missing, progress: progress)
  }

  package func textArguments(of session: String) -> String { "OUTPUT/\(session)" }
}
