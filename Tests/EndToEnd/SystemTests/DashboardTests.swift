import Foundation
import TestSupport
import Testing

/// The dashboard and the alert rules in a real Prometheus.
@Suite struct DashboardTests {
  @Test(.enabled(if: access("/usr/bin/prometheus", X_OK) == 0, "prometheus is not installed"))
  func everyQueryAndAlertRuleAnswersInPrometheus() async throws {
    let result = try await runWaiting("prometheus/dashboard.py")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }
}
