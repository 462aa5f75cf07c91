"""Compiled templates kept beside the package's own bytecode, as Python keeps its modules'.

Compiling them takes as long as filling them. A file is used if this Python, this jinja2 and this
text of the template made it; where none can be written, templates are compiled each time.
"""

from __future__ import annotations

import marshal
import os
import sys
from contextlib import suppress
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, BytecodeCache


class Beside(BytecodeCache):
    """The cache of the templates in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "__pycache__"

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give ``bucket`` its code, if it is there."""
        head = _head(bucket)
        with suppress(OSError, EOFError, ValueError, TypeError):
            data = self._file(bucket).read_bytes()
            if data.startswith(head):
                bucket.code = marshal.loads(data[len(head) :])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code of ``bucket``; a half-written file is never seen under its name."""
        if sys.dont_write_bytecode:
            return
        file = self._file(bucket)
        part = file.with_name(f"{file.name}.{os.getpid()}")
        with suppress(OSError):
            file.parent.mkdir(exist_ok=True)
            part.write_bytes(_head(bucket) + marshal.dumps(bucket.code))
            part.replace(file)

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"template-{bucket.key}.{sys.implementation.cache_tag}.bin"


def _head(bucket: Bucket) -> bytes:
    return b"%s %s %s\n" % (
        MAGIC_NUMBER.hex().encode(),
        jinja2.__version__.encode(),
        bucket.checksum.encode(),
    )
