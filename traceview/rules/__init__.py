"""Rules: tables in, findings out. Each is a pure module of its own, listed in ``registry``."""

from __future__ import annotations

from traceview.rules.finding import Finding
from traceview.rules.registry import Rule, Unchecked, catalogue, run_rules

__all__ = ["Finding", "Rule", "Unchecked", "catalogue", "run_rules"]
