import Foundation

/// The map of a film as `--map` writes it, read without code of the project.
public struct FilmMapJSON: Decodable, Equatable {
  public struct Piece: Decodable, Equatable {
    public let filmMs: Double
    public let filmEndMs: Double
    public let unixMs: Int64
    public let unixEndMs: Int64
  }

  public struct Chapter: Decodable, Equatable {
    public let filmMs: Int64
    public let unixMs: Int64
    public let time: String?
    public let kind: String
    public let title: String
  }

  public let format: String
  public let session: String
  public let durationMs: Int64
  public let speed: Double
  public let fromMs: Int64
  public let toMs: Int64
  public let clock: String?
  public let pieces: [Piece]
  public let chapters: [Chapter]

  /// - Parameter path: of a file.
  public init(_ path: String) throws {
    self = try JSONDecoder().decode(Self.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
  }

  /// Returns the instant that a film at normal speed shows, in unix milliseconds.
  ///
  /// - Parameter tick: from the film's start.
  public func unixMs(atTick tick: Int64) -> Int64? {
    guard let piece = pieces.last(where: { Int64($0.filmMs) * 90 <= tick }), Double(tick) < piece.filmEndMs * 90 else {
      return nil
    }
    let (film, unix) = (Int64(piece.filmEndMs - piece.filmMs), piece.unixEndMs - piece.unixMs)
    // The latest millisecond that has begun.
    let since = ((tick - Int64(piece.filmMs) * 90 + 1) * unix - 1) / (film * 90)
    return piece.unixMs + min(since, unix - 1)
  }
}
