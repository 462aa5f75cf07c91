"""Recorded runs as the sides of a comparison, and the same with their lines moved or poisoned."""

import copy
from functools import cache

from msgspec.structs import replace
from recordings import diagnosis_of, run_of, tables_of

from traceview.compare import Side, cache_counts
from traceview.diagnosis import from_json, source_reader, to_json

NASTY = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>]]>`|\x1b[31m\u202e\x00"
    "\r\n::error::x%0A,|\ufffe{{7*7}}"
)
# Words that the model allows only some of.
_WORDS = {
    "outcome", "severity", "confidence", "clock", "basis", "language", "kind", "compile_id",
    "stance", "format", "identity",
}  # fmt: skip


@cache
def side(name):
    """A recorded run, diagnosed."""
    tables = tables_of(name)
    read = source_reader(run_of(name), tables)
    return Side(name, "run", diagnosis_of(name), read, cache_counts(tables))


def changed(given, edit, read=None):
    """``given`` with its diagnosis as ``edit`` leaves its JSON."""
    data = copy.deepcopy(to_json(given.diagnosis))
    edit(data)
    return replace(given, diagnosis=from_json(data), read=read or given.read)


def of_format_1(document):
    """A diagnosis in JSON as a version of traceview before format 2 wrote it."""
    old = copy.deepcopy(document)
    old["format"] = 1
    new = ("headline", "support", "remarks", "difference_ms", "why", "unexplained_ms", "advice")
    for key in new:
        del old["verdict"][key]
    return old


def moved(given, above, name=None):
    """The same run of a script with the lines ``above`` put before it, perhaps renamed."""
    (file,) = {finding.location.file for finding in given.diagnosis.findings if finding.location}
    text = given.read(file)
    other = file if name is None else file.rpartition("/")[0] + "/" + name
    by = above.count("\n")

    def edit(data):
        for row in _objects(data):
            if row.get("file") == file and isinstance(row.get("lines"), list):
                row["lines"] = [[number + by, text] for number, text in row["lines"]]
            for place, line in (("file", "line"), ("co_filename", "co_firstlineno")):
                if row.get(place) == file and isinstance(row.get(line), int):
                    row[place], row[line] = other, row[line] + by
        data["environment"]["argv"] = [other.rpartition("/")[2]]

    return changed(given, edit, {other: above + text}.get)


def poisoned(given):
    """The same diagnosis with an attack in every text that a log or a script could bring."""

    def edit(data):
        for row in _objects(data):
            for key, value in row.items():
                if isinstance(value, str) and key not in _WORDS:
                    row[key] = NASTY + value
                elif isinstance(value, list) and value and isinstance(value[0], str):
                    row[key] = [NASTY + item for item in value]

    return replace(changed(given, edit), name=NASTY)


def _objects(value):
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)
