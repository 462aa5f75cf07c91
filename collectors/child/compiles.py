"""What the compiler does while the script runs: compiles, resets, patterns that its passes match.

And what trials need of it: its counts, its caches, copies of the code that it has compiled.

Compiles by torch._dynamo.callback; torch.compiler.reset() where the script throws away what has
been compiled. How many patterns Inductor's graph passes matched is in no log of torch's: its own
counter, ``counters["inductor"]["pattern_matcher_count"]`` (torch/_inductor/pattern_matcher.py),
counts for the whole process, so it is read before and after each pass over a graph.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from .frames import Frames, Sources
from .importhook import after_import
from .recorder import Recorder
from .state import Control

#: torch's name for the logger of that artifact.
_CUDAGRAPHS = "torch._inductor.cudagraph_trees.__cudagraphs"
MOST_RESETS = 1000  # a script that resets on every call is known for it by then
#: Our word for a pass: the function of torch/_inductor/compile_fx.py that makes it.
_PASSES = {
    "pre_grad": "_recursive_pre_grad_passes",
    "joint": "_recursive_joint_graph_passes",
    "post_grad": "_recursive_post_grad_passes",
}


@dataclass(eq=False)
class Compiles:
    """Counts compiles in ``control.compiles``, and writes a ``compile`` or ``reset`` event each.

    ``silent``: only counts.
    """

    control: Control
    recorder: Recorder
    frames: Frames
    sources: Sources
    step: Callable[[], int]
    silent: bool = False
    _started: tuple[float, int, float] | None = None
    _hushed: logging.Logger | None = None

    def listen(self) -> None:
        """Register with Dynamo if it has been imported; again after torch._dynamo.reset()."""
        handler = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
        if handler is None or self._began in handler.start_callbacks:
            return
        handler.register_start_callback(self._began)
        handler.register_end_callback(self._ended)

    def hush(self) -> None:
        """From here on torch's cudagraphs log has recordings only.

        With that log on, a call writes, of each recorded graph that it looks at and can't use,
        every address that differs, with a stack (``_run`` in torch/_inductor/cudagraph_trees.py).
        That is no time of the script's: in a decoder with a static cache it was 4 of 5.7 ms.
        """
        self._hushed = logging.getLogger(_CUDAGRAPHS)
        self._hushed.disabled = True

    def _began(self, *args: Any) -> None:
        if self._hushed is not None and _trigger(args) == "CUDAGRAPH_RECORDING":
            self._hushed.disabled = False
        self._started = (time.time_ns() / 1000, time.perf_counter_ns(), _cpu_s())

    def _ended(self, *args: Any) -> None:
        if self._hushed is not None:
            self._hushed.disabled = True
        if self.control.off:
            return
        self.control.compiles += 1
        trigger = _trigger(args)
        started, self._started = self._started, None
        if started is None:
            return
        duration_ms = (time.perf_counter_ns() - started[1]) / 1e6
        self.control.compile_s += duration_ms / 1e3
        if self.silent:
            return
        self.recorder.write(
            "compile",
            trigger=trigger.lower() if trigger else None,
            compile_id=getattr(args[0], "compile_id", None) if args else None,
            started_us=started[0],
            duration_ms=duration_ms,
            cpu_ms=(_cpu_s() - started[2]) * 1e3,
            step=self.step(),
        )

    def watch_resets(self) -> None:
        """Hear of torch._dynamo.reset(). torch drops our callbacks there, so listen again.

        ``torch.compiler.reset`` calls it by its name in that module.
        """
        dynamo: Any = sys.modules.get("torch._dynamo")
        reset = getattr(dynamo, "reset", None)
        if reset is None:
            return
        events = 0

        @functools.wraps(reset)
        def watched() -> Any:
            nonlocal events
            result = reset()
            if self.control.off:
                return result
            self.listen()
            events += 1
            if events <= MOST_RESETS:
                site = self.frames.call_site(sys._getframe(1)) or {}
                self.sources.keep(site.get("file"))
                now = time.time_ns() / 1000
                self.recorder.write("reset", **site, started_us=now, step=self.step())
            return result

        dynamo.reset = watched


@dataclass(frozen=True)
class Counts:
    """What has been compiled so far, and when that was asked."""

    at_us: float
    compiles: int
    compile_s: float
    graphs: int | None
    breaks: int | None

    @classmethod
    def now(cls, control: Control) -> Counts:
        """The process's."""
        counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
        graphs = breaks = None
        if counters is not None:
            graphs = int(counters["stats"]["unique_graphs"])
            breaks = sum(counters["graph_break"].values())
        return cls(time.time_ns() / 1000, control.compiles, control.compile_s, graphs, breaks)

    def since(self, control: Control) -> dict[str, Any]:
        """Keys of the ``trial`` event that began with these."""
        now = Counts.now(control)

        def more(after: int | None, before: int | None) -> int | None:
            return None if after is None or before is None else after - before

        return {
            "began_us": self.at_us,
            "timed_us": now.at_us,
            "compiles": now.compiles - self.compiles,
            "compile_s": now.compile_s - self.compile_s,
            "graphs": more(now.graphs, self.graphs),
            "graph_breaks": more(now.breaks, self.breaks),
        }


@contextmanager
def caches_in(folder: Path | None) -> Iterator[None]:
    """Torch's caches on disk are in ``folder``, for what is compiled meanwhile; None: as before."""
    if folder is None:
        yield
        return
    where = {"TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder / "triton"}
    with _variables({name: str(path) for name, path in where.items()}):
        yield


def forget_caches() -> None:
    """Empty what Inductor keeps in memory of its caches on disk; loaded code stays."""
    utils = sys.modules.get("torch._inductor.utils")
    clear = getattr(utils, "clear_caches", None) or getattr(utils, "clear_inductor_caches", None)
    if clear is not None:
        clear()


def copies(frames: Frames) -> dict[int, CodeType]:
    """A copy of each code object that Dynamo has compiled, by the id of the original.

    Not of torch's own: torch knows some of them by their code.
    """
    return {
        id(code): copied(code)
        for code in _compiled_codes()
        if not frames.is_torch(code.co_filename)
    }


def copied(code: CodeType) -> CodeType:
    """Another code object that does the same, with copies of the functions' within."""
    inner = (copied(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_consts=tuple(inner))


def _compiled_codes() -> list[CodeType]:
    tracker = getattr(sys.modules.get("torch._dynamo.convert_frame"), "input_codes", None)
    codes = (ref() for ref in getattr(tracker, "seen", ()))
    return [code for code in codes if code is not None]


def variants_of_torchs_own(frames: Frames) -> int:
    """The most compiled variants that one of torch's own functions has by now."""
    frame_hook: Any = sys.modules.get("torch._C._dynamo.eval_frame")
    entries = getattr(frame_hook, "_debug_get_cache_entry_list", None)
    own = (code for code in _compiled_codes() if frames.is_torch(code.co_filename))
    return max((len(entries(code)) for code in own), default=0) if entries is not None else 0


@contextmanager
def more_variants(number: int) -> Iterator[None]:
    """Let torch compile ``number`` more variants of a function than its limit says."""
    config: Any = sys.modules.get("torch._dynamo.config")
    if not number or config is None:
        yield
        return
    with config.patch({"recompile_limit": config.recompile_limit + number}):
        yield


@contextmanager
def stance_aside() -> Iterator[None]:
    """The stance that the script has set is put aside, where it has: compiling is allowed again.

    If the script sets another one meanwhile, that stays.
    """
    if stance_in_force() == "default":
        yield
        return
    dynamo: Any = sys.modules["torch._dynamo"]
    usual = dynamo.set_stance("default")
    try:
        yield
    finally:
        if dynamo.eval_frame._stance is usual.stance:
            usual.__exit__(None, None, None)


def stance_in_force() -> str:
    """torch's own name of it, at this moment."""
    module = sys.modules.get("torch._dynamo.eval_frame")
    return getattr(getattr(module, "_stance", None), "stance", "default")


@contextmanager
def debug_in(folder: Path | None) -> Iterator[None]:
    """What is compiled meanwhile leaves torch's debug folders (TORCH_COMPILE_DEBUG) there."""
    dynamo: Any = sys.modules.get("torch._dynamo.config")
    inductor: Any = sys.modules.get("torch._inductor.config")
    with ExitStack() as stack:
        if folder is not None and dynamo is not None and inductor is not None:
            stack.enter_context(_variables({"TORCH_COMPILE_DEBUG": "1"}))
            stack.enter_context(dynamo.patch(debug_dir_root=str(folder)))
            stack.enter_context(inductor.patch({"trace.enabled": True}))
        yield


@contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def without_caches(torch: Any) -> Iterator[None]:
    """Every try compiles: what is left out of the compiler is in no key of a cache."""
    with ExitStack() as stack:
        for config, name in (
            (torch._inductor.config, "force_disable_caches"),
            (torch._inductor.config, "fx_graph_cache"),
            (torch._functorch.config, "enable_autograd_cache"),
        ):
            with suppress(AttributeError, KeyError):
                stack.enter_context(config.patch({name: name == "force_disable_caches"}))
        yield


@contextmanager
def unheard(torch: Any) -> Iterator[None]:
    """What is compiled meanwhile is no part of the script: no log, cache or listener has it."""
    handler: Any = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
    lists = [getattr(handler, name, []) for name in ("start_callbacks", "end_callbacks")]
    lists.append(logging.getLogger("torch.__trace").handlers)  # it heeds no level
    heard, disabled = [list(each) for each in lists], logging.root.manager.disable
    with without_caches(torch), torch._inductor.config.patch(compile_threads=1):
        logging.disable(logging.CRITICAL)
        try:
            for each in lists:
                each.clear()
            yield
        finally:
            logging.disable(disabled)
            for each, before in zip(lists, heard, strict=True):
                each[:] = before


def compiled(torch: Any, act: Callable[..., Any]) -> Callable[..., Any]:
    """``act`` compiled by itself, as code of its own: torch counts variants by code."""

    def call(*arguments: Any) -> Any:
        return act(*arguments)

    call.__code__ = copied(call.__code__)
    made: Callable[..., Any] = plain_compile(torch)(call, dynamic=False, fullgraph=True)
    return made


def plain_compile(torch: Any) -> Callable[..., Any]:
    """torch.compile without our gate around what it gives."""
    found: Callable[..., Any] = getattr(torch.compile, "__wrapped__", torch.compile)
    return found


def _trigger(args: tuple[Any, ...]) -> str | None:
    """Name of torch's ``CallbackTrigger`` in the arguments of a callback."""
    about = args[0] if args else None
    return getattr(getattr(about, "callback_trigger", None), "name", None)


def current_compile_id() -> str | None:
    """Of the compile that goes on in this thread, as torch writes it; None where none does."""
    context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    try:
        found = context.current_compile_id()  # type: ignore[union-attr]
    except (AttributeError, AssertionError):
        return None
    return None if found is None else str(found)


def _cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended (C++ compilers)."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system


def count_patterns(recorder: Recorder) -> None:
    """Write one ``graph_pass`` event a pass, once Inductor is imported; of those that torch has."""
    inside = False

    def counted(stage: str, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:  # of a graph within the graph
                return run(*args, **kwargs)
            before, inside = _matched(), True
            try:
                made = run(*args, **kwargs)
            finally:
                inside = False
            after = _matched()
            if before is not None and after is not None:
                keys = {"compile_id": current_compile_id(), "patterns": after - before}
                recorder.write("graph_pass", stage=stage, **keys)
            return made

        return call

    def watch(module: ModuleType) -> None:
        for stage, name in _PASSES.items():
            run = getattr(module, name, None)
            if callable(run):
                setattr(module, name, counted(stage, run))

    after_import("torch._inductor.compile_fx", watch)


def _matched() -> int | None:
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    try:
        return int(counters["inductor"]["pattern_matcher_count"])  # type: ignore[index]
    except (TypeError, KeyError, ValueError):
        return None
