// The name of a batch in a queue, where more belongs to it than the name that its producer gave: names of different producers must not
// meet, and the worker has to know how wrong the device's clock was. The name is the one thing that a spool, a store, a queue of names
// and a quarantine all keep.

import FileSystem

/// `~PRODUCER~OFFSET~NAME`: a producer, perhaps empty; the milliseconds that are added to all instants, perhaps none; the batch's own name.
package struct DeliveredName: Sendable, Equatable {
  /// Nil if the producer has no name, or the name is not of this form.
  package let producer: String?
  package let clockOffsetMs: Int64
  /// The name that the producer gave.
  package let name: String

  /// Bytes of a producer in a name at most. A longer one is replaced by its digest.
  private static let producerBytes = 24

  /// - Parameter producer: any text.
  package init(_ name: String, of producer: String?, clockOffsetMs: Int64 = 0) {
    self.producer = producer.map { text in
      let encoded = PercentEncoding.encoded(text).replacing("~", with: "%7E")
      return encoded.utf8.count <= Self.producerBytes ? encoded : String(SHA256.hex(of: Array(text.utf8)).prefix(16))
    }
    (self.clockOffsetMs, self.name) = (clockOffsetMs, name)
  }

  /// Reads any name of a batch.
  package init(reading text: String) {
    let parts = text.split(separator: "~", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 4, parts[0].isEmpty, parts[1].isPlain(and: "-_.%"), !parts[3].isEmpty,
      let offset = parts[2].isEmpty ? 0 : Self.offset(parts[2])
    else {
      (producer, clockOffsetMs, name) = (nil, 0, text)
      return
    }
    (producer, clockOffsetMs, name) = (parts[1].isEmpty ? nil : String(parts[1]), offset, String(parts[3]))
  }

  private static func offset(_ text: Substring) -> Int64? {
    guard text.utf8.count <= 16, let first = text.first, first == "-" || ("0"..."9").contains(first) else { return nil }
    return Int64(text)
  }

  /// The name in the queue: the producer's own, as long as nothing belongs to it.
  package var text: String {
    guard producer != nil || clockOffsetMs != 0 || name.hasPrefix("~") else { return name }
    return "~\(producer ?? "")~\(clockOffsetMs == 0 ? "" : "\(clockOffsetMs)")~\(name)"
  }
}
