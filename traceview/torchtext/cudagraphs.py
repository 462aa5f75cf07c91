"""Messages of torch's cudagraphs logger (``torch/_inductor/cudagraph_*.py``).

    skipping cudagraphs due to mutated inputs (2 instances). Found from : \\n File …
    [0/1] Recording cudagraph tree for symint key (7, 16)
    [0/1] Recording function=FunctionID(id=0) …
    Created 3 graph partitions: 2 cudagraphable, 1 non-cudagraphable
    Partition 1: …
        op3: reason=cpu ops, ir=…

The reason of a skip also stands, without its line, in a compile's metrics.
"""

from __future__ import annotations

import re

import msgspec

from traceview.torchtext.frames import StackFrame, parse_traceback

_ID = r"^(?:\[[^\]]{0,60}\] )?"
_EVENTS = tuple(
    (event, re.compile(pattern))
    for event, pattern in (
        ("skip", r"^(?:skipping cudagraphs? due to (?!function \d)|disabling cudagraphs )"),
        (
            "rerecord_limit",
            r"^skipping cudagraph due to function (?P<function>\d{1,9}) exceeding "
            r"max re-recording limit \(=(?P<count>\d{1,9})\)",
        ),
        ("tree", _ID + r"Recording cudagraph tree for "),
        ("record", _ID + r"Recording function="),
        ("rerecord", _ID + r"Re-recording function="),
        ("warmup", _ID + r"Running (?:warmup|eager) function="),
        (
            "checkpoint",
            r"^Checkpointing cuda caching allocator state\. Number of checkpoints "
            r"(?P<count>\d{1,9})",
        ),
        ("partition", r"^Created (?P<count>\d{1,9}) graph partitions: "),
        ("partition", r"^ *Partition \d{1,9}(?::| has )"),
        ("partition", r"^ {4}\S+: reason="),
        (
            "dynamic_shapes",
            r"^CUDAGraph supports dynamic shapes by recording .*"
            r"We have observed (?P<count>\d{1,9}) distinct sizes",
        ),
        (
            "overwritten",
            r"^Error: accessing (?:gradient )?tensor output of CUDAGraphs that has "
            r"been overwritten",
        ),
    )
)
_FOUND_FROM = re.compile(r"\.? ?Found from ?:")
_INSTANCES = re.compile(r"\((\d{1,9}) instances?\)")
_SIZES = re.compile(r"Recording cudagraph tree for symint key (.+)")
_INPUTS = re.compile(r"Recording function=.*?\binputs: (?P<inputs>.+)", re.DOTALL)
_ADDRESS = re.compile(r"data_ptr=(\w+)")
_NUMBER = re.compile(r"\d{1,18}")
_RUN = re.compile(r"^\[([^\]]+)\]")
_CREATED = re.compile(r"^Created \d+ graph partitions: \d+ cudagraphable, (?P<without>\d+) non-")
_MOVED = re.compile(
    r"^input name: (?P<name>\S+)\. data pointer changed from \d+ to \d+\. input stack trace:"
    r"(?P<stack>.*(?:\n(?!input name: ).*)*)",
    re.MULTILINE,
)
_WHY = re.compile(r"\breason=(?P<why>.+?), ir=")
#: torch's words for a reason → what stands in the way.
_CAUSES = (
    ("copy", r"DeviceCopy ops"),
    ("cpu", r"cpu device|\bcpu ops"),
    ("devices", r"multiple devices"),
    ("operator", r"incompatible op|CUDAGraph-unsafe|cudagraph-unsafe"),
    ("unbacked", r"unbacked binding ops"),
    ("cond", r"Conditional ops"),
    ("mutation", r"mutated inputs"),
)


class CudagraphText(msgspec.Struct, frozen=True):
    """One message: its event as table ``cudagraph_events`` has it, its text without a stack."""

    event: str
    reason: str
    function_id: int | None = None
    count: int | None = None


def read_event(text: str) -> CudagraphText:
    """What one message reports; ``other`` for one that is not known here."""
    matches = ((name, match) for name, form in _EVENTS if (match := form.match(text)))
    event, match = next(matches, ("other", None))
    named = match.groupdict() if match else {}
    function, count = named.get("function"), named.get("count")
    if event == "skip":
        count = instances(text)
        text = _FOUND_FROM.split(text, maxsplit=1)[0]
    return CudagraphText(
        event, text.strip(), int(function) if function else None, int(count) if count else None
    )


def instances(text: str) -> int | None:
    """``mutated inputs (2 instances)``: how many."""
    found = _INSTANCES.search(text)
    return int(found[1]) if found else None


def skip_cause(text: str) -> str | None:
    """What keeps a graph, or a partition of it, out of cudagraphs: a word of ``_CAUSES``."""
    why = partition_reason(text) or _FOUND_FROM.split(text, maxsplit=1)[0]
    return next((cause for cause, words in _CAUSES if re.search(words, why)), None)


def partition_reason(text: str) -> str | None:
    """Why an operation is in a partition without a cudagraph; None for any other message."""
    found = _WHY.search(text)
    return found["why"] if found else None


def partitions_without(text: str) -> int | None:
    """Partitions without a cudagraph of a graph that was split; None for any other message."""
    found = _CREATED.match(text)
    return int(found["without"]) if found else None


def tree_sizes(text: str) -> tuple[int, ...] | None:
    """The sizes that a tree is recorded for, sorted; None where its graph has no symbols."""
    found = _SIZES.search(text)
    return tuple(sorted(map(int, _NUMBER.findall(found[1])))) if found else None


def recorded_for(text: str) -> str | None:
    """The first inputs that a cudagraph is recorded for, whatever their addresses.

    None for any other message, and where the torch in use doesn't name them.
    """
    found = _INPUTS.search(text)
    return _ADDRESS.sub("", found["inputs"]) if found else None


def other_addresses(one: str, other: str) -> int:
    """How many of the inputs that two recordings name lie at other addresses, of as many inputs.

    0 for other messages, and where the recordings are for other inputs.
    """
    return _moved(one, other) or 0


def same_addresses(one: str, other: str) -> bool:
    """Whether two recordings name the same inputs at the same addresses; of other messages not."""
    return _moved(one, other) == 0


def _moved(one: str, other: str) -> int | None:
    """Inputs at other addresses; None where the messages are no recordings of the same inputs."""
    if recorded_for(one) is None or recorded_for(one) != recorded_for(other):
        return None
    pairs = zip(_ADDRESS.findall(one), _ADDRESS.findall(other), strict=True)
    moved: int = sum(before != after for before, after in pairs)
    return moved


def moved_inputs(text: str) -> dict[str, tuple[StackFrame, ...]]:
    """Static inputs whose address changed, so that a recorded graph can't be used, and their uses.

    In torch/_inductor/cudagraph_utils.py ``log_data_ptr_mismatch``. Empty for any other message.
    """
    return {match["name"]: parse_traceback(match["stack"]) for match in _MOVED.finditer(text)}


def run_id(text: str) -> str | None:
    """The compile id in front of a message about a run."""
    found = _RUN.match(text)
    return found[1] if found else None
