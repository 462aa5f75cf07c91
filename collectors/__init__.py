"""Collecting: runs inside and around the target's interpreter; see docs/run-folder.md."""
