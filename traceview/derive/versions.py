"""Versions as a process logged them: what is known of them where nothing was collected."""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl

from traceview.tables import Tables

SECTION = "versions"


def logged_versions(tables: Tables, *of: pl.Expr) -> dict[str, str]:
    """torch, python, cuda, triton, torch_commit, as far as the rows ``of`` table configs tell."""
    found: dict[str, str] = {}
    for known in _told(tables["configs"].filter(pl.col("section") == SECTION, *of)):
        found = {**known, **found}
    return found


def _told(rows: pl.DataFrame) -> Iterator[dict[str, str]]:
    for text in rows["settings"].drop_nulls().unique(maintain_order=True):
        try:
            known = json.loads(text)
        except ValueError:
            continue
        if isinstance(known, dict):
            yield {name: value for name, value in known.items() if isinstance(value, str) and value}
