"""The result of a gate as text, JSON, SARIF, JUnit XML and GitHub commands; computes nothing."""
