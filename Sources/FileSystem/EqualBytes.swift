import Glibc

/// Returns whether both have the same bytes. `==` and `elementsEqual` compare byte by byte, which takes ten times as long.
package func haveEqualBytes(_ one: ArraySlice<UInt8>, _ other: [UInt8]) -> Bool {
  guard one.count == other.count else { return false }
  return one.withUnsafeBytes { one in
    other.withUnsafeBytes { other in
      one.isEmpty || memcmp(one.baseAddress!, other.baseAddress!, one.count) == 0
    }
  }
}
