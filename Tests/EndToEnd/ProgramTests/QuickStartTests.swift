import Foundation
import TestSupport
import Testing

/// The commands of README.md and of docs/make-a-film.md, run in their order by a user without privileges.
@Suite struct QuickStartTests {
  /// The lines of all `sh` code blocks of both pages.
  private func commands() throws -> [String] {
    try ["README.md", "docs/make-a-film.md"].flatMap { name -> [String] in
      let page = try String(contentsOf: Fixture.root.appendingPathComponent(name), encoding: .utf8)
      return page.components(separatedBy: "```sh\n").dropFirst().flatMap {
        $0.components(separatedBy: "```")[0].split(separator: "\n").map(String.init)
      }
    }
  }

  @Test func everyCommandOfBothPagesRunsAsWritten() throws {
    let commands = try commands()
    #expect(commands.count > 10)
    // A server runs until it is stopped; it is ready once it prints its address.
    let lines = commands.map { command in
      guard command.hasPrefix("encoder-worker serve") else { return command }
      return """
        \(command) --listen 0 >address & server=$!
        for i in $(seq 600); do [ -s address ] && break; sleep 0.05; done
        grep -q http:// address && kill $server && wait $server
        """
    }
    let script = """
      set -e
      place=$(mktemp -d /tmp/quick-start-XXXXXX)
      trap 'rm -rf "$place"' EXIT
      mkdir "$place/bin" "$place/clone"
      cp "$1" "$place/bin/encoder-worker"
      cp -r "$2/fixtures" "$place/clone/"
      chmod -R a+rX "$place"
      chmod a+rwx "$place/clone"
      cat >"$place/commands"
      chmod a+r "$place/commands"
      cd "$place/clone"
      user=
      [ "$(id -u)" != 0 ] || user="setpriv --reuid=65534 --regid=65534 --clear-groups"
      $user env HOME="$place/clone" PATH="$place/bin:$PATH" sh -e "$place/commands"
      """
    let result = try Tool.run(
      "sh", ["-c", script, "sh", EncoderWorker.path, Fixture.root.path],
      input: Data(lines.joined(separator: "\n").appending("\n").utf8))
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains("shots: published"))
  }
}
