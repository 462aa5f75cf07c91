"""Lets the tests import what the scenarios plant: ``fixtures/truths.py``."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "fixtures"))
