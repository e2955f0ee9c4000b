/// A pseudo-terminal for a program.
public enum Terminal {
  /// Runs the program with its standard output and standard error on a terminal.
  ///
  /// - Returns: The exit status and the terminal output.
  public static func run(
    _ arguments: [String], columns: Int = 80, environment: [String: String] = [:]
  ) throws -> Tool.Result {
    let script = """
      import fcntl, os, pty, struct, sys, termios
      here, there = pty.openpty()
      fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
      child = os.fork()
      if child == 0:
          os.setsid()
          os.dup2(there, 1)
          os.dup2(there, 2)
          os.execv(sys.argv[2], sys.argv[2:])
      os.close(there)
      while True:
          try:
              said = os.read(here, 65536)
          except OSError:
              said = b""
          if not said:
              break
          os.write(1, said)
      sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
      """
    return try Tool.run(
      Tool.python, ["-c", script, "\(columns)", EncoderWorker.path] + arguments,
      environment: ["TERM": "xterm"].merging(environment) { $1 })
  }
}
