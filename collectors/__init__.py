"""Collecting: runs inside and around the target's interpreter; see docs/run-folder.md.

Here is the parent's side: it finds the interpreter, makes the run folder, runs the target as the
user would have, and watches it end. What runs inside the target is in ``child/``.
"""

from traceview.collectors.options import CollectOptions, Console
from traceview.collectors.passes import collect

__all__ = ["CollectOptions", "Console", "collect"]
