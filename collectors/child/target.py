"""What ``--compile`` names, compiled while the script runs; without it, what could be named.

A module is compiled in place when it is called (``module.compile()``: the object, its state_dict
and its hooks stay what they are), a class by its instances that are there by then, a function when
it has been called once: its name is bound to the compiled one, wherever a module holds it. ``auto``
is the module called from outside of other modules whose calls took the most time.

Modules are seen by torch's hooks for all modules, a function by Python's profile function. Both are
gone before anything is compiled: Dynamo would see them.
"""

from __future__ import annotations

import difflib
import functools
import gc
import inspect
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from statistics import median
from types import FrameType, FunctionType, ModuleType
from typing import Any

from .clock import gpu_in_use
from .config import Config
from .driver import Parts
from .frames import outward
from .regions import Regions

AUTO = "auto"
CALLS = 5  # of the module that is chosen, after its first
MOST_MODULES = 64  # that are told apart
MOST_SEEN = 3  # that are written
NEAR = 3
_MISSING = object()

Site = dict[str, Any]


@dataclass
class _Seen:
    """A module that is called from outside of others; times in ns, without the first call."""

    spec: str
    calls: int = 0
    took: list[int] = field(default_factory=list)
    began: list[int] = field(default_factory=list)

    @property
    def forward_ms(self) -> float | None:
        return median(self.took) / 1e6 if self.took else None

    @property
    def period_ms(self) -> float | None:
        """From one call to the next."""
        pairs = zip(self.began, self.began[1:], strict=False)
        between = [later - earlier for earlier, later in pairs]
        return median(between) / 1e6 if between else None


class _Depth(threading.local):
    calls = 0
    began = 0


class Compiling:
    """Compiles what ``--compile`` names; without it, sees which modules the script calls."""

    def __init__(self, config: Config, parts: Parts, regions: Regions) -> None:
        self._torch, self._control = parts.torch, parts.control
        self._frames, self._sources = parts.frames, parts.sources
        self._recorder, self._regions = parts.recorder, regions
        self._asked = asked = config.compile_target
        self._options = dict(config.compile_options)
        self._named = asked is not None and asked != AUTO
        self._modules = sys.modules["torch.nn.modules.module"]
        self._is_compiling = parts.torch.compiler.is_compiling
        self._depth = _Depth()
        self._seen: weakref.WeakKeyDictionary[Any, _Seen] = weakref.WeakKeyDictionary()
        self._made: weakref.WeakKeyDictionary[Any, Site] = weakref.WeakKeyDictionary()
        self._undo: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Watch modules being called; for ``--compile``, also being made, and functions."""
        modules = self._modules
        before = modules.register_module_forward_pre_hook(self._before)
        after = modules.register_module_forward_hook(self._after, always_call=True)
        self._undo = [before.remove, after.remove]
        if self._asked is not None:
            self._watch_init()
        if self._named and sys.getprofile() is None:
            sys.setprofile(self._profile)
            self._undo.append(self._end_profile)

    def script_compiles(self) -> None:
        """The script has called torch.compile: nothing is looked for, unless it was named."""
        if self._undo and not self._named:
            self.stop()
            if self._asked is not None:
                self._write("script_compiles")

    def stop(self) -> None:
        """Nothing of ours is left in torch and in Python."""
        undo, self._undo = self._undo, []
        for each in undo:
            each()

    def finish(self) -> None:
        """The script ends, and this was still looked for."""
        if not self._undo:
            return
        self.stop()
        if self._asked == AUTO:
            self._write("too_few_calls" if self._seen else "not_called", calls=CALLS + 1)
        if not self._named:
            self._write_seen()
            return
        found, owner, name = self._resolve()
        if found is _MISSING:
            meant = list(sys.modules) if owner is None else dir(owner)
            near = difflib.get_close_matches(name, meant, NEAR)
            self._write("not_found", near=near)
        elif self._kind(found) is None:
            what = "a module" if isinstance(found, ModuleType) else f"of {type(found).__name__}"
            self._write("unsupported", why=what)
        else:
            self._write("not_called", kind=self._kind(found), name=_name(found))

    # -- modules ------------------------------------------------------------------------------

    def _watch_init(self) -> None:
        """Keep where each module was made."""
        cls, made = self._torch.nn.Module, self._made
        plain = cls.__init__

        @functools.wraps(plain)
        def __init__(module: Any, *args: Any, **kwargs: Any) -> None:
            plain(module, *args, **kwargs)
            with suppress(Exception):  # a class may hash by what it does not have yet
                outside = (each for each in outward(sys._getframe(1)) if not _makes(each, module))
                made[module] = self._frames.call_site(next(outside)) or {}

        cls.__init__ = __init__
        self._undo.append(functools.partial(setattr, cls, "__init__", plain))

    def _before(self, module: Any, _args: Any) -> None:
        """A module is about to run."""
        if self._is_compiling():
            return
        depth = self._depth
        depth.calls += 1
        try:
            if self._named:
                self._meet(module)
            elif depth.calls == 1:
                self._time(module)
        except Exception as error:  # noqa: BLE001 - the user's call must be made whatever fails here
            self._failed(error)

    def _after(self, module: Any, _args: Any, _result: Any) -> None:
        if self._is_compiling():
            return
        depth = self._depth
        depth.calls = max(0, depth.calls - 1)
        if depth.calls or not depth.began:
            return
        began, depth.began = depth.began, 0
        with suppress(Exception):  # as above: then this call is not counted
            seen = self._seen[module]
            self._drain()
            seen.calls += 1
            if seen.calls > 1:
                seen.took.append(time.perf_counter_ns() - began)
                seen.began.append(began)

    def _time(self, module: Any) -> None:
        """The clock of a module's call starts; or enough has been seen."""
        seen = self._seen.get(module)
        if seen is None:
            if len(self._seen) >= MOST_MODULES:
                return
            self._seen[module] = _Seen(self._spec(module, sys._getframe(2)))
        elif seen.calls > CALLS:
            self._choose()
            return
        self._drain()
        self._depth.began = time.perf_counter_ns()

    def _drain(self) -> None:
        cuda = self._torch.cuda
        if gpu_in_use(self._torch) and not cuda.is_current_stream_capturing():
            cuda.synchronize()

    def _choose(self) -> None:
        """Compile the module that took most (``auto``), or write those that could be named."""
        self.stop()
        timed = self._timed()
        if self._asked is None:
            self._write_seen()
        elif timed:
            seen, module = timed[0]
            self._compile_modules([module], **self._figures(seen, module))

    def _timed(self) -> list[tuple[_Seen, Any]]:
        """Those that are alive, with the most time first."""
        alive = [(seen, module) for module, seen in self._seen.items() if seen.took]
        return sorted(alive, key=lambda each: -sum(each[0].took))

    def _write_seen(self) -> None:
        for seen, module in self._timed()[:MOST_SEEN]:
            self._write("seen", **self._figures(seen, module))

    def _figures(self, seen: _Seen, module: Any) -> dict[str, Any]:
        return {
            "target": seen.spec,
            "kind": "module",
            "name": _name(module),
            "forward_ms": seen.forward_ms,
            "period_ms": seen.period_ms,
        }

    def _spec(self, module: Any, frame: Any) -> str:
        """How ``--compile`` names it: by a global, by a class that is not torch's, or not."""
        # The names of ``__main__``, then those of the user's modules that call.
        own = (at.f_globals for at in outward(frame) if self._frames.is_user(at.f_code.co_filename))
        for names in chain([vars(sys.modules["__main__"])], own):
            found = next((name for name, value in names.items() if value is module), None)
            if found is not None:
                return f"{names['__name__']}:{found}"
        cls = type(module)
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        theirs = file is not None and not self._frames.is_torch(file)
        return f"{cls.__module__}:{cls.__qualname__}" if theirs else AUTO

    def _meet(self, module: Any) -> None:
        """A module runs: it may be the one that was named, or an instance of that class."""
        found, _, _ = self._resolve()
        if found is module:
            self._compile_modules([module], kind="module", name=_name(module))
        elif isinstance(found, type) and issubclass(type(module), found):
            if issubclass(found, self._torch.nn.Module):
                instances = list(self._outermost(found))
                self._compile_modules(instances, kind="class", name=_name(found))
        elif isinstance(found, FunctionType) and sys.getprofile() != self._profile:
            self._compile_function(found)  # the script has a profiler of its own

    def _outermost(self, cls: type) -> Iterator[Any]:
        """Instances of ``cls`` that are part of no other one."""
        found = [each for each in gc.get_objects() if issubclass(type(each), cls)]
        inner = {id(part) for each in found for part in each.modules() if part is not each}
        return (each for each in found if id(each) not in inner)

    def _compile_modules(self, modules: list[Any], **figures: Any) -> None:
        """In place, each; what is compiled already is left as it is."""
        self.stop()
        optimized = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", ())
        ready = [
            each for each in modules
            if isinstance(each, optimized) or each._compiled_call_impl is not None
        ]  # fmt: skip
        if ready:
            self._write("compiled_already", **figures)
            return
        site = self._made.get(modules[0]) or {}

        def compile() -> None:
            for each in modules:
                each.compile(**self._options)

        self._compile(compile, site, instances=len(modules), **figures)

    # -- functions ----------------------------------------------------------------------------

    def _profile(self, frame: FrameType, event: str, _arg: Any) -> None:
        """Python's profile function, until the function that was named has been called."""
        if event != "call" or frame.f_code.co_name not in (self._last, "<lambda>"):
            return
        try:
            found, _, _ = self._resolve()
            code = getattr(inspect.unwrap(found), "__code__", None) if callable(found) else None
            if code is frame.f_code:
                self._compile_function(found)
        except Exception as error:  # noqa: BLE001 - the user's call must be made whatever fails here
            self._failed(error)

    @property
    def _last(self) -> str:
        return (self._asked or "").replace(":", ".").rpartition(".")[2]

    def _end_profile(self) -> None:
        if sys.getprofile() == self._profile:
            sys.setprofile(None)

    def _compile_function(self, fn: Any) -> None:
        """Bind the compiled function to every name in a module, or the class, that has this one."""
        self.stop()
        _, owner, name = self._resolve()
        figures = {"kind": "function", "name": _name(fn)}
        if hasattr(fn, "_torchdynamo_orig_callable"):
            self._write("compiled_already", **figures)
            return
        if not isinstance(fn, FunctionType):
            self._write("unsupported", why=f"of {type(fn).__name__}", **figures)
            return
        code = inspect.unwrap(fn).__code__
        site = {"file": code.co_filename, "line": code.co_firstlineno, "function": None}

        def compile() -> None:
            compiled = self._torch.compile(fn, **self._options)
            if isinstance(owner, type):
                setattr(owner, name, compiled)
            for module in list(sys.modules.values()):
                names = getattr(module, "__dict__", None) or {}
                for key in [key for key, value in list(names.items()) if value is fn]:
                    names[key] = compiled

        self._compile(compile, site, instances=1, **figures)

    # -- both ---------------------------------------------------------------------------------

    def _compile(self, act: Callable[[], None], site: Site, **figures: Any) -> None:
        """torch.compile, as if called where the object was made or the function is defined."""
        self._sources.keep(site.get("file"))
        self._regions.site = site
        first = len(self._control.regions)
        try:
            act()
        except Exception as error:  # noqa: BLE001 - what torch refuses stays in eager
            self._write("refused", why=f"{type(error).__name__}: {error}"[:4096], **figures)
            return
        finally:
            self._regions.site = None
        where = {"made_file": site.get("file"), "made_line": site.get("line")}
        self._write("compiled", region_id=first, **where, **figures)

    def _write(self, status: str, **keys: Any) -> None:
        self._recorder.write("target", asked=self._asked, status=status, **keys)

    def _failed(self, error: Exception) -> None:
        self.stop()
        self._recorder.note("looking for what to compile", error)

    def _kind(self, found: Any) -> str | None:
        """What it is, if it can be compiled."""
        if isinstance(found, self._torch.nn.Module):
            return "module"
        if isinstance(found, type):
            return "class" if issubclass(found, self._torch.nn.Module) else None
        return "function" if isinstance(found, FunctionType) else None

    def _resolve(self) -> tuple[Any, Any, str]:
        """(what ``--compile`` names or _MISSING, what that is looked up in, by which name)."""
        module, _, path = (self._asked or "").rpartition(":")
        parts = path.replace("[", ".").replace("]", "").split(".")
        start = _module(module) if module else None
        for taken in range(len(parts) - 1, 0, -1) if not module else ():
            start = _module(".".join(parts[:taken]))
            if start is not None:
                parts = parts[taken:]
                break
        if not module and start is None:
            start = sys.modules["__main__"]
        if start is None:
            return _MISSING, None, module
        found: Any = start
        owner: Any = None
        for part in parts:
            owner, found = found, inspect.getattr_static(found, part, _MISSING)
            if found is _MISSING:
                found = getattr(owner, part, _MISSING)
            if found is _MISSING:
                return _MISSING, owner, part
        return found, owner, parts[-1]


def _module(name: str) -> Any:
    """The module of that name or file that is imported; the script by its own name."""
    if name.endswith(".py"):
        ending = os.path.basename(name)  # noqa: PTH119
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            alike = isinstance(file, str) and file.endswith(ending)
            if alike and os.path.realpath(file) == os.path.realpath(name):  # type: ignore[arg-type]
                return module
        return None
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None) or ""
    is_script = os.path.splitext(os.path.basename(file))[0] == name  # noqa: PTH119, PTH122
    return sys.modules.get(name) or (main if is_script else None)


def _makes(frame: FrameType, module: Any) -> bool:
    """Whether it is an ``__init__`` that makes ``module``."""
    code = frame.f_code
    if code.co_name != "__init__" or not code.co_argcount:
        return False
    return frame.f_locals.get(code.co_varnames[0]) is module


def _name(found: Any) -> str:
    named = found if isinstance(found, (type, FunctionType)) else type(found)
    return str(named.__qualname__)
