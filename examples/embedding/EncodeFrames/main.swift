// Encodes a batch into an output directory: EncodeFrames BATCH SESSION OUTPUT
import Glibc
import SegmentEncoder

let words = CommandLine.arguments
do {
  let output = try OutputDirectory(words[3])
  defer { output.close() }
  for receipt in try BatchEncoder(output: output).publish(words[1], session: words[2]) {
    print(
      "\(receipt.frames) frames in \(receipt.segments) segments of session \(receipt.session), below \(output.path)")
  }
} catch {
  print("not published: \(error)")
  exit(1)
}
