"""One log to read: where its bytes lie, what it is, and how it is opened."""

from __future__ import annotations

from pathlib import Path

import msgspec

from traceview.inputs import archives, packing, prefixes, remote
from traceview.inputs.look import Kind
from traceview.inputs.streams import Stream


class Source(msgspec.Struct, frozen=True):
    """A log, found and recognised; small and picklable, so that it can be opened elsewhere.

    ``name`` is how reports show it: relative to the argument, ``a.tar.gz!/b.log`` in an archive.
    ``size`` counts bytes as they lie, packed. ``run`` is the folder of ours it lies in. ``copy`` is
    an archive member's own bytes in the scratch folder. ``stamp`` changes when the file does.
    """

    name: str
    url: str
    kind: Kind
    size: int | None = None
    member: str | None = None
    run: str | None = None
    packed: packing.Packing = ""
    prefix: prefixes.Style = ""
    copy: str | None = None
    stamp: str | None = None

    @property
    def path(self) -> Path | None:
        """A local file whose bytes are the log's own, neither packed nor prefixed; else None."""
        plain = not self.packed and not self.prefix
        return self.local if plain else None

    @property
    def local(self) -> Path | None:
        """The local file that the log is, packed and prefixed perhaps; None if it is not one."""
        if self.copy is not None:
            path = Path(self.copy)
            return path if path.is_file() else None
        return None if self.member is not None or remote.is_url(self.url) else Path(self.url)

    def open(self) -> Stream:
        """The log's bytes, unpacked, without line prefixes: forward only, in bounded memory.

        Opening and reading may raise ``READ_ERRORS``; what a cut file holds is given before.
        """
        return prefixes.without(packing.unpacked(self._raw(), self.packed), self.prefix)

    def _raw(self) -> Stream:
        if (local := self.local) is not None:
            return local.open("rb")
        if self.member is not None:
            return archives.open_member(remote.open_url(self.url), self.member)
        return remote.open_url(self.url)
