"""Recompiles, gathered by the function that was compiled again and by what changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePath

import msgspec

from traceview.rules import _costs, _places
from traceview.rules._evidence import MOST_EVIDENCE, from_row
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Location
from traceview.tables import Tables
from traceview.torchtext.frames import StackFrame, readable_name, resumed
from traceview.words.text import shorten

TENSOR_RATE = (
    "Give the optimizer its learning rate as a tensor; schedulers then change it in place. (Adam "
    "and AdamW with foreach=True take a tensor only with capturable=True, on a GPU: else leave "
    "foreach out.)"
)

Frame = tuple[str | None, int | None]

#: What Dynamo calls a value that was on Python's stack at a graph break.
_ON_STACK = re.compile(r"___stack\d+")
#: torch's function around a torch.nn module or a method of an optimizer, and its arguments.
_WRAPPER = "torch/_dynamo/external_utils.py"
_GIVEN = re.compile(r"args\[(\d+)\]")
_LOCAL = re.compile(r"\bL\['(\w+)'\]")
_GLOBAL = re.compile(r"^G\['(\w+)'\]")
#: Where nn.Module keeps what is registered.
_REGISTERED = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")
#: What torch appends to a guard on a parameter (torch/csrc/dynamo/guards.cpp).
_ON_PARAMETER = "force_parameter_static_shapes"
#: torch prints the class of an enum's member like any other (``type.__repr__``). Of the objects of
#: users' own classes only enums' members are guarded by identity (variables/builder.py), and the
#: classes themselves, which are new ones where a function makes them: ``<locals>``.
_ENUM = re.compile(r"type=<(?:enum|flag|class) '(?!torch\.|numpy\.)(?!.*<locals>)[\w.]+\.\w+'>")
_CLASS = re.compile(r"<class '(?:[^']*\.)?(\w+)'>")
_LONG_FLOAT = re.compile(r"-?\d+\.\d{5,30}(?:e-?\d{1,3})?")
#: What of its source a guard of a kind is about, where it is not the value.
SUBJECTS = {
    "length": "the length of {source}", "keys": "the keys of {source}",
    "dtype": "the dtype of {source}", "stride": "the memory layout of {source}",
    "rank": "the number of dimensions of {source}", "device": "the device of {source}",
    "requires_grad": "requires_grad of {source}", "type_id": "the type of {source}",
    "dispatch_keys": "the kind of tensor that {source} is", "global_state": "torch's state",
    "alias": "whether {source} and another argument are one tensor",
    "backend": "the backend object",
}  # fmt: skip
#: Kinds whose values say nothing to a reader: addresses, and lists of torch's inner names.
_UNTOLD = frozenset({"obj_id", "backend", "dispatch_keys", "global_state", "stride"})
#: torch's state, and what a tensor has of it: inference mode shows as a tensor's dispatch keys.
_STATES = ("global_state", "dispatch_keys")
_A_TENSOR, _NONE = "a tensor", "<class 'NoneType'>"
_FEW_DIGITS = (4, 6, 8, 10, 12)
#: A string, a boolean or None as a guard shows it.
_CHOICE = re.compile(rf"""(['"]).*\1|True|False|None|{_A_TENSOR}""", re.DOTALL)


def as_written(source: str) -> str:
    """``self._modules['net']._modules['0']._parameters['bias']`` is ``self.net[0].bias``."""
    return _REGISTERED.sub(lambda m: f"[{m[1]}]" if m[1].isdecimal() else f".{m[1]}", source)


def is_wrapper(row: Row) -> bool:
    """Whether ``row`` is about torch's own function around a callable."""
    return (row["co_filename"] or "").endswith(_WRAPPER)


def called(row: Row) -> str:
    """What the code object of ``row`` is to its user."""
    return "the compiled callable" if is_wrapper(row) else readable_name(row["co_name"])


def plain(source: str | None) -> str:
    """``L['x'].size()[0]`` as guards write it: ``x.size()[0]``."""
    return _LOCAL.sub(r"\1", source or "")


def frame_of(row: Row) -> Frame:
    """The code object of a row of ``compiles`` or ``recompiles``."""
    return row["co_filename"], row["co_firstlineno"]


def whole_path(cut: str, files: Iterable[str | None]) -> str | None:
    """The one of ``files`` that a guard names as ``cut``.

    torch leaves out what a path has in common with its own, and one letter more below ``/``.
    """
    name = PurePath(cut).name
    return next((f for f in files if f and f.endswith(cut) and PurePath(f).name == name), None)


def on_stack(source: str) -> bool:
    """Whether a guard's source is what was on Python's stack at a graph break."""
    return _ON_STACK.search(source) is not None


def is_member(guard: str | None) -> bool:
    """Whether a guard on an object's identity is, as far as it tells, about an enum's member."""
    return _ENUM.search(guard or "") is not None


def opening(name: str) -> str:
    """``name`` to begin a sentence with: words get a capital letter, code stays as it is."""
    return name[:1].upper() + name[1:] if name.startswith(("the ", "dimension ")) else name


class Cause(msgspec.Struct, frozen=True):
    """All recompiles of one function that one source decided (rows: never empty, in log order)."""

    rows: tuple[Row, ...]

    @property
    def row(self) -> Row:
        return self.rows[0]

    @property
    def source(self) -> str:
        name = self.row["source_name"] or "a guard"
        if _ON_STACK.fullmatch(name):
            return "the value read before a graph break"
        if self.is_wrapper and (given := _GIVEN.fullmatch(name)):
            return f"argument {given[1]}"
        return _GLOBAL.sub(r"the global \1", as_written(name))

    @property
    def subject(self) -> str:
        """What changed, in words: ``mode``, or ``dimension 1 of ids`` for a size."""
        dims = sorted({row["dim"] for row in self.rows if row["dim"] is not None})
        if self.row["kind"] in ("size", "shape_guard") and dims:
            return f"dimension {' and '.join(map(str, dims))} of {self.source}"
        words = SUBJECTS.get(str(self.row["kind"]), "{source}")
        return words.format(source=self.source)

    @property
    def function(self) -> str:
        return called(self.row)

    @property
    def is_wrapper(self) -> bool:
        """Whether it is torch's own function around a callable whose code Dynamo does not enter."""
        return is_wrapper(self.row)

    @property
    def about(self) -> frozenset[str]:
        return _places.about(*self.rows)

    @property
    def on_parameter(self) -> bool:
        """Whether torch says of it that a tensor is a parameter: its sizes never get symbolic."""
        return any(_ON_PARAMETER in (row["guard"] or "") for row in self.rows)

    @property
    def is_learning_rate(self) -> bool:
        """Whether it is an optimizer's learning rate, which a scheduler changes."""
        return "['lr']" in self.source

    @property
    def is_loop(self) -> bool:
        """Whether it is the ``range`` that a loop around a graph break iterates over."""
        return "_range_iter(" in (self.row["source_name"] or "")

    @property
    def is_enum(self) -> bool:
        """Whether it is an enum's member: a value, though guards see which object it is."""
        return any(is_member(row["guard"]) for row in self.rows)

    @property
    def is_left_out(self) -> bool:
        """Whether it is a tensor in some calls and None in others."""
        return any(row["old"] == _A_TENSOR for row in self.rows)

    @property
    def is_choice(self) -> bool:
        """Whether the values are strings, booleans or None: they choose, nobody calculates."""
        met = [row["old"] for row in self.rows if row["old"] is not None]
        return bool(met) and all(_CHOICE.fullmatch(value) for value in met)

    def place(self, files: Collection[str] = ()) -> Location | None:
        """The line that reads what changed, where the log names it; else the function's.

        torch cuts the front off paths in guards: ``files`` are whole ones of the user's. It does
        not say whose line it is: a function that was inlined may stand around it.
        """
        named = next((row for row in self.rows if row["user_line"] is not None), None)
        if named is None or not named["user_file"]:
            return _places.code_object(self.row)
        file = named["user_file"]
        if not PurePath(file).is_absolute():
            file = whole_path(file, (self.row["co_filename"], *files))
        return Location(file, named["user_line"]) if file else _places.code_object(self.row)

    def values(self, most: int = 6) -> str:
        """``0 → 1 → 2``: the values that guards expected, then the last one met where known."""
        if self.row["kind"] in _UNTOLD:
            return ""
        met = [row["old"] for row in self.rows if row["old"] is not None]
        last = self.rows[-1]["new"]
        distinct = list(dict.fromkeys(met if last is None else [*met, last]))
        more = len(distinct) > most or (bool(distinct) and last is None)
        return " → ".join(_brief(distinct[:most])) + (" → …" if more else "")

    def marks(self, name: str | None = None) -> str:
        """Lines that make the dimensions that changed symbolic from the first call on.

        torch specialises on sizes of 0 and 1 whatever it is told, so where one was met the mark can
        only be a wish: ``maybe_mark_dynamic``.
        """
        met = {row[column] for row in self.rows for column in ("old", "new")}
        name = name or ("maybe_mark_dynamic" if {"0", "1"} & met else "mark_dynamic")
        tensor = _GLOBAL.sub(r"\1", self.row["source_name"] or "")
        if not tensor.isidentifier() or resumed(self.row["co_name"]):
            return ""
        dims = sorted({row["dim"] for row in self.rows if row["dim"] is not None})
        return "\n".join(f"torch._dynamo.{name}({tensor}, {dim})" for dim in dims)

    def evidence(self) -> tuple[Evidence, ...]:
        return tuple(
            from_row(f"{row['compile_id']}: {shorten(row['guard'])}", "recompiles", row)
            for row in self.rows[:MOST_EVIDENCE]
        )

    def cost(self, tables: Tables, *, but_one: bool = False) -> Cost:
        """Seconds of all those compiles; ``but_one``: its remedy makes one graph for all sizes."""
        keys = {row["compile_key"] for row in first_rank(list(self.rows))}
        return _costs.compiled_again(tables, keys, but_one=but_one)


def _brief(values: list[str]) -> list[str]:
    """Floats of many digits with as few as tell them apart."""
    tried = ([_shown(value, digits) for value in values] for digits in _FEW_DIGITS)
    whole = [_shown(value, 17) for value in values]
    return next((shown for shown in tried if len(set(shown)) == len(set(whole))), whole)


def _shown(value: str, digits: int) -> str:
    """A float with so many digits, a class by its name; anything else as it is."""
    named = _CLASS.fullmatch(value)
    if named:
        return named[1]
    return f"{float(value):.{digits}g}" if _LONG_FLOAT.fullmatch(value) else value


def spot(tables: Tables, cause: Cause) -> _places.Spot:
    """``cause.place()``; where that is a library's line, the user's own line that led there."""
    found = cause.place(tables["sources"]["file"].to_list())
    owners = tables.once(_places.Owners)
    if found and owners.owns(StackFrame(found.file, found.line, found.function)):
        return _places.Spot(found)
    called = owners.code(cause.row)
    if called.place and called.inside:
        return _places.Spot(called.place, found or called.inside)
    return _places.Spot(_compile_call(tables, cause) or found, found)


def _compile_call(tables: Tables, cause: Cause) -> Location | None:
    region = _places.region_of(tables, cause.row["compile_key"])
    return _places.compile_call(region) if region else None


def causes(tables: Tables) -> Iterator[Cause]:
    """One cause a function, kind, source and dimension; only the guard that decided counts.

    A dimension is left out of the key, so that a tensor that changes in two is one cause.
    """
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in deciding(tables):
        key = (*frame_of(row), row["kind"], row["source_name"])
        found.setdefault(key, []).append(row)
    for group in found.values():
        yield Cause(tuple(group))


def deciding(tables: Tables) -> list[Row]:
    """For each recompile the failed guard that decided it: that of the variant used last.

    torch's state is checked before all else, so a variant that failed another guard was compiled
    for the state of this call: state was not what had changed.

    Where a tensor was expected and None came, or the reverse, the value changed: the one guard
    looks at the type, the other at the value.
    """
    groups: list[list[Row]] = []
    for row in rows(tables, "recompiles"):
        if row["order"] in (0, None) or not groups:
            groups.append([])
        groups[-1].append(row)
    return [_left_out(_deciding(group)) for group in groups]


def _left_out(row: Row) -> Row:
    """``row`` as a change of value, where it is about a tensor that is an argument left out."""
    if row["kind"] != "type_id" or row["old"] != "a tensor type" or row["new"] != _NONE:
        return row
    return {**row, "kind": "value", "old": _A_TENSOR, "new": "None"}


def _deciding(group: list[Row]) -> Row:
    """Of a tensor, too, the variant that came furthest decides: the one of as many dimensions."""
    first = group[0]
    if first["kind"] == "rank":
        same = (row for row in group if row["source_name"] == first["source_name"])
        return next((row for row in same if row["kind"] in ("size", "shape_guard")), first)
    if first["kind"] in _STATES:
        values = (row for row in group if row["kind"] not in (*_STATES, "other"))
        tensors = (row for row in group if row["kind"] == "dispatch_keys")
        return next(values, next(tensors, first))
    return first


def limited_frames(tables: Tables) -> set[Frame]:
    """Functions that reached the recompile limit."""
    frames = {frame_of(row) for row in rows(tables, "compiles", outcome="limit")}
    warned = {
        (row["file"], row["line"]) for row in rows(tables, "warnings", kind="recompile_limit")
    }
    return frames | warned


def main_cause(tables: Tables, frame: Frame) -> Cause | None:
    """The cause behind most recompiles of ``frame``."""
    own = [cause for cause in causes(tables) if frame_of(cause.row) == frame]
    return max(own, key=lambda cause: len(cause.rows), default=None)
