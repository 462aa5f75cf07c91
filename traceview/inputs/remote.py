"""URLs that fsspec opens, such as s3://bucket/run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from traceview.errors import UsageError
from traceview.inputs.streams import Stream

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?:::|://)")
_PATTERN = re.compile(r"[*?\[]")


class RemoteFile(msgspec.Struct, frozen=True):
    """A file behind a URL."""

    name: str
    url: str
    size: int | None
    stamp: str


def is_url(argument: str) -> bool:
    """Whether ``argument`` is for fsspec: ``s3://…``, ``simplecache::https://…``."""
    return _URL.match(argument) is not None


def open_url(url: str) -> Stream:
    """The bytes of ``url``, or of a local path."""
    if not is_url(url):
        return open(url, "rb")  # noqa: PTH123
    try:
        return cast(Stream, _fsspec().open(url, "rb").open())
    except (ImportError, ValueError) as error:
        raise _unusable(url, error) from error


def files(url: str) -> Iterator[RemoteFile]:
    """The file that ``url`` names, the files below it, or those that its pattern finds."""
    try:
        system, path = _fsspec().core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise _unusable(url, error) from error
    if _PATTERN.search(path) and not system.exists(path):
        paths, root = sorted(system.glob(path)), _PATTERN.split(path)[0].rpartition("/")[0]
    elif system.isdir(path):
        paths, root = sorted(system.find(path)), path
    else:
        paths, root = [path], path.rpartition("/")[0]
    chain, mark, _ = url.rpartition("::")  # filesystems that the last one lies in
    for found in paths:
        info = system.info(found)
        if info.get("type") == "file":
            name = found.removeprefix(root).lstrip("/")
            full = chain + mark + cast(str, system.unstrip_protocol(found))
            yield RemoteFile(name, full, info.get("size"), system.ukey(found))


def _unusable(url: str, error: Exception) -> UsageError:
    fact = f"{url} can't be opened ({error})."
    remedy = "Install what fsspec needs for it, such as pip install 'traceview[s3]'."
    return UsageError(fact, remedy, slug="unusable-url")


def _fsspec() -> Any:  # noqa: ANN401
    try:
        import fsspec
    except ImportError:
        fact = "Reading URLs needs fsspec, which is not installed."
        remedy = "pip install 'traceview[s3]', or fsspec and the filesystem that the URL names."
        raise UsageError(fact, remedy, slug="no-fsspec") from None
    return fsspec
