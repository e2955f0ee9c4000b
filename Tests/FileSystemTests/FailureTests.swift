import FileSystem
import Testing

/// The consequences of failures.
@Suite struct FailureTests {
  @Test func textHasTheActionItsObjectTheCauseAndTheAdvice() {
    let failure = Failure(.usage, "read", "keys", "no file", advice: "name another one")
    #expect("\(failure)" == "read keys: no file; name another one")
    #expect("\(Failure(.usage, "", "a/b", "no file"))" == "a/b: no file")
    #expect("\(Failure(.usage, "no file", advice: "name one"))" == "no file; name one")
  }

  @Test(arguments: [
    (Failure.Kind.input, 65, 422, false), (.usage, 64, 400, false), (.environment, 75, 503, true),
    (.gone, 65, 404, false), (.cancelled, 75, 499, true),
  ])
  func consequencesFollowFromTheKind(_ kind: Failure.Kind, _ exit: Int32, _ http: Int, _ isTransient: Bool) {
    let consequence = Failure(kind, "it").consequence
    #expect(consequence.exitStatus == exit && consequence.httpStatus == http)
    #expect(consequence.isTransient == isTransient)
  }

  @Test func errorWithoutAKindIsAFaultOfTheProgram() {
    struct Unknown: Error {}
    #expect(Unknown().consequence == Failure.Kind.environment.consequence)
  }
}
