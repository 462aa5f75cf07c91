"""What a process computed, in a file small enough to compare with another process's.

Recorded are, at the script's end, the first call of
each compiled callable with the weights, arguments and random numbers that it had, and all operators
of its eager run; or, with ``--steps``, losses and weights of training steps. The form is that of
docs/run-folder.md.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .config import COMPARING_S, Config
from .copies import Copies, Originals
from .driver import Driver, Parts
from .environment import described, settings, world_size
from .frames import Frames
from .gate import Opened
from .logs import nothing_shown
from .operators import Doubled, Noted
from .regions import hide_from_dynamo, target_of
from .replay import Replay, Seeds, named_tensors, nudge_all, rms_of
from .samples import VALUES, digest, distance, flattened, places, sampled, short, statistics
from .secrets import masked_message
from .state import FOREVER, Gate, Region
from .taken import Mode, Taken, bytes_of, free_bytes
from .trial import TOLERANCE, kind_of, reason_of, tolerance_of

FORMAT = 1
FOLDER = "accuracy"  # of a run folder
#: Part of the free memory that a copy of a callable's weights may take while the script runs.
_MOST_OF_FREE = 0.1
#: Whatever is further than this part from float64 has drawn other random numbers there.
_OTHER_NUMBERS = 0.1


class Recording:
    """One file. What would make it larger than ``record_mb`` is counted and left out."""

    def __init__(self, torch: Any, config: Config, what: str, stance: str | None = None) -> None:
        self._torch = torch
        folder = config.run / FOLDER
        folder.mkdir(exist_ok=True)
        given = os.environ.get("RANK", "")
        rank = int(given) if given.isdigit() else None
        if world_size() is not None:
            rank = int(torch.distributed.get_rank())
        path = folder / f"{stance or what}-{rank or 0}-{os.getpid()}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0)
        self._file = os.fdopen(os.open(path, flags, 0o600), "w", encoding="ascii")
        self._left = config.record_mb * 1_000_000
        self._spent_s = 0.0
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._placed: set[int] = set()
        self.left_out: Counter[str] = Counter()
        ours = frozenset(config.variables)
        self.write(
            "environment",
            format=FORMAT,
            what=what,
            stance=stance,
            rank=rank,
            world_size=world_size(),
            python=platform.python_version(),
            versions=described(torch),
            settings={
                f"{section} {name}": value
                for section, name, value, _, by_us in settings(torch, ours)
                if not by_us
            },
        )

    def write(self, kind: str, **keys: object) -> bool:
        """One row; whether there was room for it."""
        line = json.dumps({"kind": kind, **keys}, default=repr, skipkeys=True) + "\n"
        self._left -= len(line)
        if self._left < 0:
            self._left += len(line)
            self.left_out[kind] += 1
            return False
        self._file.write(line)
        return True

    def tensor(self, value: Any, exact: Sequence[float | None] | None = None) -> int | None:
        """The number of its row, which is there once for all tensors that hold the same.

        ``exact``: its values in a run in float64.
        """
        torch, began = self._torch, time.monotonic()
        try:
            if self._spent_s > COMPARING_S / 2:
                raise TimeoutError
            with torch.no_grad():
                flat = flattened(torch, value)
                row = {
                    "dtype": str(value.dtype).removeprefix("torch."),
                    "shape": list(value.shape),
                    "strides": list(value.stride()) if value.layout is torch.strided else None,
                    "device": value.device.type,
                    "digest": digest(flat),
                }
                key = tuple(map(str, row.values()))
                if key not in self._numbers:
                    row |= statistics(torch, flat)
                    row["error"] = distance(row["values"], exact)
                    self._place(flat.numel())
                    number = len(self._numbers)
                    if not self.write("tensor", tensor=number, elements=flat.numel(), **row):
                        return None
                    self._numbers[key] = number
                return self._numbers[key]
        except Exception:  # noqa: BLE001 - a tensor of a kind that has no values to look at
            self.left_out["tensor"] += 1
            return None
        finally:
            self._spent_s += time.monotonic() - began

    def result(self, call: int, side: str, name: str, value: Any, exact: Any = None) -> None:
        """A tensor or a simple value that goes into a call or comes out of it."""
        keys: dict[str, Any] = {"call": call, "side": side, "name": name, "what": kind_of(name)}
        if isinstance(value, self._torch.Tensor):
            self.write("result", **keys, tensor=self.tensor(value, exact))
        else:
            self.write("result", **keys, value=masked_message(repr(value)[:200]))

    def close(self) -> None:
        """The last row has what was left out."""
        self._left = 1 << 20
        self.write("end", left_out=dict(self.left_out))
        self._file.close()

    def _place(self, elements: int) -> None:
        """Where the values of tensors of a size are from."""
        if elements > VALUES and elements not in self._placed:
            self._placed.add(elements)
            self.write("places", elements=elements, at=places(elements))


# -- the first call of each compiled callable ------------------------------------------------------


class Firsts:
    """The first call of each compiled callable as it was about to be made, to be run again later.

    ``at``: by region, the call and whether the weights are those of that time.
    """

    def __init__(self, torch: Any, frames: Frames) -> None:
        self._torch, self._frames = torch, frames
        self.at: dict[int, tuple[dict[str, Any], Replay]] = {}
        self._globals: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def complete(self) -> None:
        """Copied functions find what has come to the originals' globals, as compiled code does."""
        for names, originals in self._globals:
            names |= {name: originals[name] for name in originals.keys() - names.keys()}

    def keep(self, gate: Gate, taken: Taken) -> None:
        """A first call, with copies of its arguments."""
        torch, call, weights = self._torch, gate.original, "end"
        originals = Originals(torch, self._frames)
        with suppress(Exception):  # it can't be copied: then its weights are those of the end
            originals.of_callable(call)
            tensors = list(originals.tensors())
            size = bytes_of(tensors)
            if size <= _MOST_OF_FREE * free_bytes(torch, tensors):
                own = Gate(
                    gate.region, gate.compiled, Copies(torch, self._frames).of_callable(call)
                )
                own.how = gate.how
                both = (getattr(each, "__func__", each) for each in (own.original, call))
                known: list[Any] = [getattr(each, "__globals__", None) for each in both]
                if None not in known:  # a module keeps its own
                    self._globals.append((known[0], known[1]))
                taken, weights = replace(taken, gate=lambda: own), "first"
        named = target_of(call, torch.nn.Module)
        keys = {"name": named["name"], "file": named["target_file"], "line": named["target_line"]}
        site = self._frames.call_site(sys._getframe(1))
        if site and not self._frames.is_user(keys["file"] or ""):
            keys |= {"file": site["file"], "line": site["line"]}
        self.at[gate.region.region_id] = (
            keys | {"weights": weights},
            Replay(torch, taken, self._frames),
        )


def record_calls(parts: Parts, config: Config, firsts: Firsts) -> None:
    """At the process's end: inputs and results of each first call, eager and compiled; operators.

    Every rank runs the same, whatever comes out, since a call may wait for other ranks.
    """
    parts.stances.take("compiled")
    seeds = Seeds(parts.torch)
    recording = Recording(parts.torch, config, "calls")
    firsts.complete()
    for call, (region_id, (keys, replay)) in enumerate(firsts.at.items()):
        keys = keys | {"call": call, "region_id": region_id}
        with nothing_shown():
            try:
                _record_call(parts, recording, keys, replay)
            except Exception as error:  # noqa: BLE001 - the user's code, run on copies
                recording.write("call", **keys, why=masked_message(reason_of(error)))
    seeds.restore()
    if recording.left_out:
        said = ", ".join(f"{count} {kind} rows" for kind, count in recording.left_out.items())
        parts.recorder.note("recording of numbers", f"{said} did not fit or could not be read")
    recording.close()


def _record_call(parts: Parts, recording: Recording, keys: dict[str, Any], replay: Replay) -> None:
    torch, call = parts.torch, keys["call"]
    replay.check_room()
    eager, before = replay.run(), dict(replay.before)
    doubled = Doubled(torch)
    exact: Mapping[str, Any] = {}
    with suppress(Exception):  # not every operator knows float64
        exact = replay.run(double=True, watch=doubled, watch_gradients=doubled)
    values = {
        name: sampled(torch, flattened(torch, value))
        for name, value in exact.items()
        if isinstance(value, torch.Tensor)
    }
    for name, value in eager.items() if replay.draws else ():
        if isinstance(value, torch.Tensor) and name in values:
            off = distance(sampled(torch, flattened(torch, value)), values[name])
            if (off or 0.0) > _OTHER_NUMBERS * rms_of(value):
                values, doubled = {}, Doubled(torch)
                break
    compiled: Mapping[str, Any] = {}
    why = None
    try:
        with torch._inductor.config.patch(compile_threads=1):
            compiled = replay.run(lambda call: torch.compile(call, **replay.how))
    except Exception as error:  # noqa: BLE001 - the compiler's
        why = masked_message(reason_of(error))
    recording.write("call", **keys, draws=replay.draws, compiled_why=why)
    for side, found in (("input", before), ("eager", eager), ("compiled", compiled)):
        for name, value in found.items():
            plain = name.removesuffix(" (written)") if side == "input" else name
            recording.result(
                call, side, plain, value, values.get(name) if side == "eager" else None
            )
    noted = Noted(torch, parts.frames, recording, call, doubled)
    try:
        replay.run(watch=noted, watch_gradients=noted)
    except Exception as error:  # noqa: BLE001 - what can't run while it is watched
        why_not = masked_message(reason_of(error))
        recording.write("call", **keys, draws=replay.draws, compiled_why=why, operators_why=why_not)


# -- training steps --------------------------------------------------------------------------------


class Curve:
    """Stands in for the plan's `Listener`: N optimizer steps, with their losses and weights.

    ``nudged``: weights move by a rounding after the first step, which shows how roundings grow.
    """

    def __init__(self, parts: Parts, driver: Driver, config: Config) -> None:
        self._parts, self._driver, self._config = parts, driver, config
        self._recording: Recording | None = None
        self._held: dict[str, Any] = {}
        self._seen: set[int] = set()
        self._inputs: list[int | None] | None = None
        self._losses: list[Any] = []
        self._optimizer: Any = None
        self._steps, self._low = 0, False
        self._over, self._shown_s = False, 0.0

    def begin(self) -> None:
        """Watch ``backward``; the first optimizer that steps is the one that counts."""
        autograd = self._parts.torch.autograd
        plain = autograd.backward

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            given = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
            self._losses += [each.detach().clone() for each in given]
            return plain(tensors, *args, **kwargs)

        autograd.backward = backward

    def before(self, gate: Gate, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Opened | None:
        region, torch = gate.region, self._parts.torch
        if self._parts.control.off or self._over:
            region.grant(FOREVER)
            return None
        recording = self._opened()
        if self._config.mode == "compiled":  # so that dropout draws what it draws in eager
            torch._inductor.config.fallback_random = True
        if region.region_id not in self._seen:
            self._seen.add(region.region_id)
            region.first_called = True
            originals = Originals(torch, self._parts.frames)
            with suppress(Exception):  # the user's own classes
                originals.of_callable(gate.original)
                for kind, name, tensor in named_tensors(
                    originals, gate.original, args, kwargs, torch
                ):
                    if not name.startswith("argument "):
                        name = self._named(kind, name, tensor)
                    elif len(self._seen) > 1:
                        name = f"{name} of callable {len(self._seen)}"
                    recording.result(0, "input", name, tensor)
        if self._inputs is None:
            from torch.utils._pytree import tree_leaves

            leaves = tree_leaves((args, kwargs))
            self._inputs = [recording.tensor(v) for v in leaves if isinstance(v, torch.Tensor)]
            cast = Mode.now(torch).autocast.values()
            tensors = (each for each in (*leaves, *self._held.values()) if hasattr(each, "dtype"))
            low = any(tolerance_of(each) > TOLERANCE for each in tensors)
            self._low = low or any(enabled for enabled, _ in cast)
        return None

    def after(self, *_given: Any) -> None:
        """Nothing is measured."""

    def nested(self, region: Region) -> Opened:  # noqa: ARG002 - never asked: not watching
        return 0, 0, 0, None

    def after_nested(self, region: Region, opened: Opened) -> None:
        """Nothing is measured."""

    def stepped(self, optimizer: Any) -> None:
        """An optimizer's step has ended; after the last one the script is stopped."""
        if self._parts.control.off or self._optimizer not in (None, optimizer):
            return
        if self._over:
            self._driver.edge()
            return
        self._optimizer, recording = optimizer, self._opened()
        losses = [short(float(each.double().mean())) for each in self._losses]
        recording.write(
            "step", step=self._steps, inputs=self._inputs or [], losses=losses, low=self._low
        )
        self._steps += 1
        if (now := time.monotonic()) > self._shown_s + 1:
            self._shown_s, detail = now, f"step {self._steps} of {self._config.record_steps}"
            keys = {"step": self._steps, "stance": self._parts.stances.name}
            self._parts.recorder.write("phase", phase="training", detail=detail, **keys)
        self._inputs, self._losses = None, []
        weights = [each for group in optimizer.param_groups for each in group["params"]]
        known = {id(each) for each in self._held.values()}
        for number, weight in enumerate(weights):
            if id(weight) not in known:
                self._named("parameter", f"optimizer weight {number}", weight)
        if self._config.nudged and self._steps == 1:
            nudge_all(weights, 0, self._parts.torch)
        if self._steps >= self._config.record_steps:
            self.finish()
            self._driver.give_up()

    def finish(self) -> None:
        """The weights as they are now; once."""
        if self._over:
            return
        self._over, recording = True, self._opened()
        for name, tensor in self._held.items():
            recording.result(0, "end", name, tensor)
        recording.close()

    def _opened(self) -> Recording:
        """Its first rows say what device there is: not before the script uses it."""
        if self._recording is None:
            stance = "nudged" if self._config.nudged else self._config.mode
            self._recording = Recording(self._parts.torch, self._config, "steps", stance)
            hide_from_dynamo(self._parts.torch.autograd.backward)
        return self._recording

    def _named(self, kind: str, name: str, tensor: Any) -> str:
        """A name of its own for a weight or buffer; one that is known keeps it."""
        name = next((known for known, each in self._held.items() if each is tensor), name)
        number, plain = 2, name
        while self._held.get(name, tensor) is not tensor:
            name, number = f"{plain} ({number})", number + 1
        if kind in ("parameter", "buffer"):
            self._held[name] = tensor
        return name
