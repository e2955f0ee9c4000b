/// The properties of an image file, as ffprobe reports them.
public struct ImageProbe {
  public let file: String
  public let codec: String
  public let width: Int
  public let height: Int
  public let pixelFormat: String

  public init(_ file: String) throws {
    self.file = file
    let entries = "stream=codec_name,width,height,pix_fmt"
    let text = String(
      decoding: try Tool.output("ffprobe", ["-v", "error", "-show_entries", entries, "-of", "csv=p=0", file]),
      as: UTF8.self)
    let fields = text.split { $0 == "," || $0.isNewline }.map(String.init)
    guard fields.count == 4, let width = Int(fields[1]), let height = Int(fields[2]) else {
      throw Tool.Failure("\(file): ffprobe says \(text)")
    }
    (codec, self.width, self.height, pixelFormat) = (fields[0], width, height, fields[3])
  }

  /// Returns the decoded picture.
  public func pixels() throws -> Pixels { try Pixels.decode(file, width: width, height: height)[0] }
}
