"""What a trial switches: one grammar for the command line, for rules and for the target. Pure."""

from __future__ import annotations


def parse(text: str) -> object:
    """The setting that ``text`` names; ValueError, in one sentence, where it names none."""
    raise NotImplementedError(text)
