import FileSystem
import JSON

extension [Profile.Measured] {
  /// The stages with their counts, and their times in milliseconds.
  package var json: JSONValue {
    .array(
      map { stage in
        let spread = zip(Profile.spreadNames, stage.spread).map { ($0 + "Ms", JSONValue.number(Profile.text($1))) }
        return JSONValue.object([
          "stage": .string(stage.stage.rawValue), "of": .string(stage.stage.unit), "times": .number(stage.count),
          "cpuMs": .number(Profile.text(Double(stage.sum.cpuNs), digits: 1)),
          "wallMs": .number(Profile.text(Double(stage.sum.wallNs), digits: 1)),
        ]).setting(Dictionary(spread) { $1 })
      })
  }
}
