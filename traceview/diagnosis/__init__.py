"""The diagnosis: everything that a report says, as plain data."""

from __future__ import annotations

from traceview.diagnosis.build import diagnose
from traceview.diagnosis.contract import from_json, to_json
from traceview.diagnosis.excerpts import source_reader
from traceview.diagnosis.model import Diagnosis

__all__ = ["Diagnosis", "diagnose", "from_json", "source_reader", "to_json"]
