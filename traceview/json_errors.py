"""Decoding JSON that others wrote: what that may raise, and names in it that are no text.

A text may be no JSON, no UTF-8, of other types, or nested deeper than the stack allows: a few
hundred brackets are enough for that. Who reads what others wrote catches all of it.
"""

from __future__ import annotations

import json

#: ``json``'s errors and msgspec's are ValueErrors, as those of bytes that are no UTF-8 are.
NOT_JSON = (ValueError, RecursionError)


def in_utf8(data: bytes) -> bytes:
    """JSON with a question mark for each byte of a file's name that is no UTF-8.

    Python writes such a byte as half of a surrogate pair, which neither msgspec nor polars takes.
    """
    if b"\\ud" not in data.lower():
        return data
    return json.dumps(json.loads(data), ensure_ascii=False).encode("utf-8", "replace")
