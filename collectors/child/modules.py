"""What a script does with modules that it compiles: later hooks and copies, names of weights.

Dynamo does not guard a module without hooks against the first one, where the module lies within
what is compiled (``skip_nnmodule_hook_guards``): what was compiled before goes on without it.
Whether that is so is looked at in a few calls that nothing times, eager and compiled: a module's
hooks run where its ``__call__`` runs in Python. Python's profile function sees that; it is gone
before anything is compiled.

A copy of a module that was compiled in place is not compiled: ``nn.Module.__getstate__`` leaves the
compiled call out. Where that was, a copy gets a call that counts.

What torch.compile gives back for a module is a module around it: in the names of its parameters
there is ``_orig_mod.``, so that weights that are loaded by name may find none of their names.
"""

from __future__ import annotations

import functools
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from statistics import median
from types import FrameType
from typing import Any

from .compiles import Compiles
from .frames import OURS, Frames, Sources, outward
from .recorder import Recorder
from .regions import hide_from_dynamo
from .state import Control, Gate, Region

MOST_HOOKS = 64  # of one process
LOOKS = 3  # at calls of a region in one stance, after each hook that was registered
MOST_COPIED = 64  # lines that copy, of one process
TIMED_CALLS = 64  # of the copies that one line made
WARMING_CALLS = 2  # of these
MOST_LOADING = 64  # lines that load weights under other names, of one process
MOST_NAMES = 3  # of such a line
_WRAPPED = "_orig_mod"
_REGISTER = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
)


@dataclass(eq=False)
class _Late:
    """A hook; of each region that was called before: calls looked at, and whose module ran."""

    event: dict[str, Any]
    module: weakref.ref[Any]
    handle: Any
    looks: dict[int, _Looks]

    @property
    def there(self) -> bool:
        """Whether it has not been removed."""
        hooks = self.handle.hooks_dict_ref()
        return hooks is not None and self.handle.id in hooks


@dataclass(eq=False)
class _Looks:
    calls: dict[str, int] = field(default_factory=lambda: {"compiled": 0, "eager": 0})
    runs: dict[str, int] = field(default_factory=lambda: {"compiled": 0, "eager": 0})
    path: str | None = None
    recompiled: bool = False
    written: bool = False


class LateHooks:
    """Writes a ``late_hook`` event for each hook and region: did it run, eager and compiled?

    ``late``: the hooks that were registered so far.
    """

    def __init__(
        self,
        control: Control,
        recorder: Recorder,
        frames: Frames,
        sources: Sources,
        step: Callable[[], int],
    ) -> None:
        self._control, self._recorder = control, recorder
        self._frames, self._sources, self._step = frames, sources, step
        self.late: list[_Late] = []
        self._looked: dict[tuple[int, str], int] = {}
        self._ran: set[int] = set()
        self._looking: tuple[Gate, str, int] | None = None
        self._call: Any = None
        self._began = Compiles._began.__code__

    def watch(self, torch: Any) -> None:
        """Hear of every hook of a module that is registered from here on."""
        module = torch.nn.Module
        self._call = module.__call__.__code__
        hide_from_dynamo(self._profile)
        for name in _REGISTER:
            plain = getattr(module, name, None)
            if plain is not None:
                setattr(module, name, self._registering(plain, torch.compiler.is_compiling))

    def _registering(self, plain: Any, is_compiling: Callable[[], bool]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def register(self_: Any, *args: Any, **kwargs: Any) -> Any:
            handle = plain(self_, *args, **kwargs)
            if not is_compiling() and not self._control.off and len(self.late) < MOST_HOOKS:
                try:
                    hook = args[0] if args else kwargs.get("hook")
                    self._registered(self_, hook, handle, plain.__name__, sys._getframe(1))
                except Exception as error:  # noqa: BLE001 - the script's call must return
                    self._recorder.note("a hook that was registered", error)
            return handle

        hide_from_dynamo(register)
        return register

    def _registered(
        self, module: Any, hook: Any, handle: Any, method: str, frame: FrameType
    ) -> None:
        config = sys.modules.get("torch._dynamo.config")
        called = [region for region in self._control.regions if region.calls]
        if not called or not getattr(config, "skip_nnmodule_hook_guards", True):
            return
        site = self._frames.call_site(frame) or {}
        self._sources.keep(site.get("file"))
        event = {
            "method": method,
            "hook": getattr(hook, "__qualname__", type(hook).__qualname__),
            "module": type(module).__qualname__,
            **site,
            "registered_us": time.time_ns() / 1000,
            "step": self._step(),
        }
        looks = {region.region_id: _Looks() for region in called}
        self.late.append(_Late(event, weakref.ref(module), handle, looks))
        self._looked.clear()

    def begin(self, gate: Gate, stance: str) -> bool:
        """Look at this call, until `end`; false where there is nothing to see, or it can't be."""
        key = gate.region.region_id, stance
        if self._looked.get(key, 0) >= LOOKS or sys.getprofile() is not None:
            return False
        if stance not in ("compiled", "eager") or not any(
            each.there and key[0] in each.looks for each in self.late
        ):
            return False
        self._looked[key] = self._looked.get(key, 0) + 1
        self._ran.clear()
        self._looking = gate, stance, self._control.compiles
        sys.setprofile(self._profile)
        return True

    @contextmanager
    def looking(self, gate: Gate, stance: str) -> Iterator[None]:
        """Look at a call that is made on purpose, when the script has ended."""
        self.begin(gate, stance)
        try:
            yield
        except BaseException:
            self.end(returned=False)
            raise
        self.end()

    def end(self, *, returned: bool = True) -> None:
        """The call has ended; nothing happens where it was not looked at.

        What did not run in a call that has not ``returned`` might have come later.
        """
        if self._looking is None:
            return
        (gate, stance, compiles), self._looking = self._looking, None
        if sys.getprofile() == self._profile:
            sys.setprofile(None)
        for late in self.late if returned else ():
            looks, module = late.looks.get(gate.region.region_id), late.module()
            if looks is None or module is None or not late.there:
                continue
            looks.recompiled |= self._control.compiles > compiles
            looks.calls[stance] += 1
            looks.runs[stance] += id(module) in self._ran
            if looks.path is None:
                # Its name within the module that is compiled, if it is in one.
                owner = getattr(gate.original, "__self__", gate.original)
                named = getattr(owner, "named_modules", None)
                inner = () if named is None else named()
                looks.path = next((name for name, each in inner if each is module), None)
            if all(looks.calls.values()):
                self._write(late, gate.region.region_id)

    def finish(self) -> None:
        """Write those of which not both stances were seen."""
        for late in self.late:
            for region_id, looks in late.looks.items():
                if any(looks.calls.values()):
                    self._write(late, region_id)

    def _write(self, late: _Late, region_id: int) -> None:
        looks = late.looks[region_id]
        if looks.written:
            return
        looks.written = True
        self._recorder.write(
            "late_hook",
            region_id=region_id,
            **late.event,
            path=looks.path,
            recompiled=looks.recompiled,
            **{f"{stance}_calls": calls for stance, calls in looks.calls.items()},
            **{f"{stance}_runs": runs for stance, runs in looks.runs.items()},
        )

    def _profile(self, frame: FrameType, event: str, _arg: Any) -> None:
        if event != "call":
            return
        if frame.f_code is self._call:
            self._ran.add(id(frame.f_locals.get("self")))
        elif frame.f_code is self._began:
            sys.setprofile(None)


@dataclass(eq=False)
class _Copied:
    """Copies that one line made of what one region compiled; ``seconds`` of their first calls."""

    region: Region
    event: dict[str, Any]
    copies: int = 0
    calls: int = 0
    calls_before: int = 0
    made_s: float = 0.0
    seconds: list[float] = field(default_factory=list)


class EagerCopies:
    """Writes a ``module_copies`` event for each line that copied a module compiled in place."""

    def __init__(
        self, control: Control, recorder: Recorder, frames: Frames, sources: Sources
    ) -> None:
        self._control, self._recorder = control, recorder
        self._frames, self._sources = frames, sources
        self._lines: dict[tuple[Any, ...], _Copied] = {}
        self._copies: weakref.WeakKeyDictionary[Any, Region] = weakref.WeakKeyDictionary()
        self._is_compiling: Callable[[], bool] = bool

    def watch(self, torch: Any) -> None:
        """Hear of every module that gets another one's state."""
        module, self._is_compiling = torch.nn.Module, torch.compiler.is_compiling
        plain = module.__setstate__

        @functools.wraps(plain)
        def __setstate__(self_: Any, state: Any) -> None:
            plain(self_, state)
            if not self._control.off:
                try:
                    self._made(self_, sys._getframe(1))
                except Exception as error:  # noqa: BLE001 - the script's call must return
                    self._recorder.note("copies of compiled modules", error)

        module.__setstate__ = __setstate__

    def _made(self, copied: Any, frame: FrameType) -> None:
        is_torch = self._frames.is_torch
        by = next(each for each in outward(frame) if not is_torch(each.f_code.co_filename))
        local = by.f_locals if by.f_code.co_name == "_reconstruct" else {}
        region = self._region(copied, local.get("x"))
        files = (each.f_code.co_filename for each in outward(frame))
        near = (file for file in files if file.startswith(OURS) or self._frames.is_user(file))
        if region is None or next(near, OURS).startswith(OURS):
            return
        site = self._frames.call_site(frame) or {}
        key = region.region_id, site.get("file"), site.get("line")
        if key not in self._lines:
            if len(self._lines) >= MOST_COPIED:
                return
            self._sources.keep(site.get("file"))
            event = {"how": "deepcopy" if local else "pickle", "module": type(copied).__qualname__}
            self._lines[key] = _Copied(region, event | site)
        line = self._lines[key]
        line.copies += 1
        line.calls_before, line.made_s = region.calls, time.monotonic()
        self._copies[copied] = region
        copied._compiled_call_impl = self._counting(weakref.ref(copied), line)

    def _region(self, copied: Any, original: Any) -> Region | None:
        """Of the module that was copied, a copy itself perhaps; of its class, out of a pickle."""
        for gate in list(self._control.gates):
            if getattr(gate.original, "__name__", None) == "_call_impl":  # nn.Module.compile()
                owner = getattr(gate.original, "__self__", None)
                if owner is original if original is not None else type(owner) is type(copied):
                    return gate.region
        return None if original is None else self._copies.get(original)

    def _counting(self, of: weakref.ref[Any], line: _Copied) -> Callable[..., Any]:
        """What a copy calls in place of the compiled call; it must not keep the copy alive."""
        is_compiling, clock, control = self._is_compiling, time.perf_counter, self._control

        def call(*args: Any, **kwargs: Any) -> Any:
            module: Any = of()
            # Compiled code that is made to run in eager has it compiled within.
            if is_compiling() or (control.eager and control.depth):
                return module._call_impl(*args, **kwargs)
            line.calls += 1
            if line.calls > TIMED_CALLS:
                return module._call_impl(*args, **kwargs)
            began = clock()
            try:
                return module._call_impl(*args, **kwargs)
            finally:
                line.seconds.append(clock() - began)

        hide_from_dynamo(call)
        return call

    def finish(self) -> None:
        """The script has ended."""
        for line in self._lines.values():
            steady = list(islice(line.seconds, WARMING_CALLS, None))
            self._recorder.write(
                "module_copies",
                region_id=line.region.region_id,
                **line.event,
                copies=line.copies,
                calls=line.calls,
                call_ms=median(steady) * 1000 if steady else None,
                region_calls_before=line.calls_before,
                region_calls_after=line.region.calls - line.calls_before,
                since_s=time.monotonic() - line.made_s,
            )


@dataclass(eq=False)
class _Loading:
    """A line whose loads lost tensors; ``again``: of these, those that another one made good."""

    event: dict[str, Any]
    loads: int = 0
    again: int = 0


@dataclass(eq=False)
class _Lost:
    """Of one module: the names without weights, and the loads that lost them, by line.

    ``calls``: those of all regions until then.
    """

    module: weakref.ref[Any]
    calls: int
    names: set[str] = field(default_factory=set)
    loads: dict[_Loading, int] = field(default_factory=dict)


class LostWeights:
    """Writes a ``lost_weights`` event for each line whose load_state_dict() lost tensors.

    Those whose names differ from the module's in ``_orig_mod.`` alone. Where ``strict`` is false,
    torch leaves them out without a message.
    """

    def __init__(
        self, control: Control, recorder: Recorder, frames: Frames, sources: Sources
    ) -> None:
        self._control, self._recorder = control, recorder
        self._frames, self._sources = frames, sources
        self._lines: dict[tuple[Any, ...], _Loading] = {}
        self._lost: dict[int, _Lost] = {}
        self._load: Any = None

    def watch(self, torch: Any) -> None:
        """Hear of every state dict that is loaded from here on."""
        plain, is_compiling = torch.nn.Module.load_state_dict, torch.compiler.is_compiling

        @functools.wraps(plain)
        def load_state_dict(self_: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or self._control.off:
                return plain(self_, *args, **kwargs)
            try:
                result = plain(self_, *args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:  # this frame is not the script's
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            try:
                given = args[0] if args else kwargs["state_dict"]
                self._loaded(self_, given, result, sys._getframe(1))
            except Exception as error:  # noqa: BLE001 - the script's call must return
                self._recorder.note("weights that were loaded", error)
            return result

        torch.nn.Module.load_state_dict = self._load = load_state_dict

    def hide(self) -> None:
        """Dynamo has been imported by now."""
        if self._load is not None:
            hide_from_dynamo(self._load)

    def _loaded(self, module: Any, given: Mapping[str, Any], result: Any, frame: FrameType) -> None:
        missing = {_unwrapped(name): name for name in result.missing_keys}
        lost = {
            name: missing[_unwrapped(name)]
            for name in result.unexpected_keys
            if _unwrapped(name) in missing
        }
        inner = module._modules.get(_WRAPPED, module)
        before = self._lost.get(id(inner))
        calls = sum(region.calls for region in self._control.regions)
        if before is not None and (before.module() is not inner or before.calls != calls):
            before = None  # it may have been used as it was
        if not lost:
            if before is not None and before.names.isdisjoint(missing):
                for line, loads in self._lost.pop(id(inner)).loads.items():
                    line.again += loads
            return
        site = self._frames.call_site(frame) or {}
        key = site.get("file"), site.get("line"), type(inner)
        if key not in self._lines:
            if len(self._lines) >= MOST_LOADING:
                return
            self._sources.keep(site.get("file"))
            loaded = len(given) - len(result.unexpected_keys)
            wrapped = [_wraps(name) > _wraps(other) for name, other in lost.items()]
            event = {
                "module": type(inner).__qualname__,
                "tensors": loaded + len(result.missing_keys),
                "loaded": loaded,
                "lost": len(lost),
                "prefixed": "both" if len(set(wrapped)) > 1 else ("own", "given")[wrapped[0]],
                "names": [max(each, key=_wraps) for each in lost.items()][:MOST_NAMES],
            }
            self._lines[key] = _Loading(event | site)
        line = self._lines[key]
        line.loads += 1
        kept = before or _Lost(weakref.ref(inner), calls)
        kept.names.update(map(_unwrapped, lost))
        kept.loads[line] = kept.loads.get(line, 0) + 1
        self._lost[id(inner)] = kept

    def finish(self) -> None:
        """The script has ended."""
        for line in self._lines.values():
            self._recorder.write(
                "lost_weights", **line.event, loads=line.loads, loaded_later=line.again
            )


def _unwrapped(name: str) -> str:
    """A parameter's name, as it is where nothing is compiled."""
    return ".".join(part for part in name.split(".") if part != _WRAPPED)


def _wraps(name: str) -> int:
    return name.split(".").count(_WRAPPED)
