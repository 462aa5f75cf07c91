"""A comparison of two runs as text, Markdown, JSON and one HTML page; computes nothing."""
