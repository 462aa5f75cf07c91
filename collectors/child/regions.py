"""torch.compile, patched: every call becomes a region, and its result counts its calls.

What the script gets back is what it would have got: a module's result is torch's own
``OptimizedModule`` whose instance attribute ``forward`` counts, a function's result is a function
with all of torch's attributes. Everything else (classes, ``disable=True``) is passed on untouched.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

from .copies import content
from .frames import OURS, Frames, Sources, outward
from .gate import Listener, counting, dress
from .recorder import Recorder
from .state import Control, Gate, Region

# torch's own ways to torch.compile: the decorator with arguments, and nn.Module.compile
_DOORS = (os.path.join("torch", "__init__.py"), os.path.join("nn", "modules", "module.py"))  # noqa: PTH118
#: Regions that one line makes of one function. A script that compiles for each call would have as
#: many regions as steps; what it makes after these counts as the last of them.
MOST_ALIKE = 64
CUDAGRAPH_MODES = ("reduce-overhead", "max-autotune")
#: Code of these kinds returns before it has run.
_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_HOW = ("backend", "mode", "dynamic", "fullgraph", "options")


class Regions:
    """Patches ``torch.compile`` and keeps count of what it gave back."""

    def __init__(
        self, torch: Any, control: Control, recorder: Recorder, frames: Frames, sources: Sources
    ) -> None:
        self._torch = torch
        self._control = control
        self._recorder = recorder
        self._frames = frames
        self._sources = sources
        #: Where what is compiled for the user was made (`target`), as if torch.compile stood there.
        self.site: dict[str, Any] | None = None
        self._made: dict[tuple[Any, ...], list[tuple[Region, object]]] = {}
        self.on_first: Callable[[], None] | None = None

    def install(self, listener: Listener) -> None:
        """Replace ``torch.compile``; ``listener`` hears of the calls of every region."""
        self._listener = listener
        compile_fn = self._torch.compile
        signature = inspect.signature(compile_fn)

        @functools.wraps(compile_fn)
        def compile(*args: Any, **kwargs: Any) -> Any:
            given = arguments(signature, args, kwargs)
            model = given.get("model")
            asked = self.site is not None or not self._from_torch(sys._getframe(1))
            if self._control.off or model is None or not asked:
                return compile_fn(*args, **kwargs)
            event = self._describe(model, given, sys._getframe(1))
            options = given.get("options")
            graphs = isinstance(options, Mapping) and bool(options.get("triton.cudagraphs"))
            cudagraphs = given.get("mode") in CUDAGRAPH_MODES or graphs
            how = [event[key] for key in _HOW]
            region = self._region(event, cudagraphs, (how, sizes_of(model)))
            plain = model.__call__ if isinstance(model, type) else None
            began = time.perf_counter()
            try:
                result = compile_fn(*args, **kwargs)
            except Exception as error:
                event["error"] = f"{type(error).__name__}: {error}"
                self._recorder.write("region", **event, backends_offered=backends_offered())
                raise
            region.compile_calls_s += time.perf_counter() - began
            if region.compile_calls == 1:
                self._recorder.write("region", **event, error=None)
            return self._count(result, given, region, plain)

        self._torch.compile = compile

    def _from_torch(self, frame: Any) -> bool:
        """Whether torch itself asks (flex attention does): no region of the user's."""
        for each in outward(frame):
            file = each.f_code.co_filename
            if file.startswith(OURS) or file.endswith(_DOORS):
                continue
            return self._frames.is_torch(file)
        return False

    def _describe(self, model: Any, given: dict[str, Any], frame: Any) -> dict[str, Any]:
        site = self.site if self.site is not None else self._frames.call_site(frame) or {}
        target = target_of(model, self._torch.nn.Module)
        self._sources.keep(target["target_file"])
        self._sources.keep(site.get("file"))
        backend, options = given.get("backend") or "inductor", given.get("options")
        packed = None if options is None else json.dumps(options, default=repr, skipkeys=True)
        return {
            "region_id": len(self._control.regions),
            **target,
            "call_file": site.get("file"),
            "call_line": site.get("line"),
            "call_function": site.get("function"),
            "backend": backend if isinstance(backend, str) else repr(backend),
            "backend_is_callable": not isinstance(backend, str),
            "mode": given.get("mode"),
            "dynamic": str(given.get("dynamic")),
            "fullgraph": bool(given.get("fullgraph")),
            "disable": bool(given.get("disable")),
            "options": packed,
        }

    def _region(self, event: dict[str, Any], cudagraphs: bool, asked: object) -> Region:
        """A new region; or the last one that this line made of this function, of too many.

        Regions that a line makes of one function are alike where what was ``asked`` is the same.
        """
        site = tuple(event[key] for key in ("call_file", "call_line", "target_file", "target_line"))
        made = self._made.setdefault(site, [])
        alike = [region for region, what in made if what == asked]
        if len(made) >= MOST_ALIKE:
            last = alike[-1] if alike else made[-1][0]
            last.compile_calls += 1
            return last
        number = event["region_id"]
        group = alike[0].group if alike else number
        region = Region(number, cudagraphs, group)
        if alike:
            region.made_after = alike[-1], alike[-1].outermost
        made.append((region, asked))
        self._control.add(region)
        if event["call_file"]:
            self._control.reached.add((event["call_file"], event["call_line"]))
        return region

    def _count(self, result: Any, given: dict[str, Any], region: Region, plain: Any) -> Any:
        """``plain``: how instances of a class were called before it was compiled."""
        try:
            wrapped = self._wrap(result, given, region, plain)
        except Exception as error:  # noqa: BLE001 - torch's own result serves the user as well
            self._recorder.note(f"counting calls of region {region.region_id}", error)
            return result
        if self.on_first is not None:
            first, self.on_first = self.on_first, None
            first()
        return wrapped

    def _wrap(self, result: Any, given: dict[str, Any], region: Region, plain: Any) -> Any:
        how = {name: value for name, value in given.items() if name != "model"}

        def counted(compiled: Any, original: Any) -> Callable[..., Any]:
            gate = Gate(region, compiled, original, how)
            call = dress(counting(gate, self._control, self._listener), compiled)
            hide_from_dynamo(call)
            self._control.admit(gate)
            region.held += 1
            weakref.finalize(call, region.collected).atexit = False
            return call

        def also(compiled: Any, original: Any) -> Callable[..., Any]:
            self._control.nests()  # a module's step calls its forward
            return counted(compiled, original)

        optimized = sys.modules["torch._dynamo.eval_frame"].OptimizedModule
        if result is given["model"]:  # a class, or disabled: torch.compile is a no-op then
            if plain is not None and result.__call__ is not plain:
                result.__call__ = counted(result.__call__, plain)
            return result
        if isinstance(result, optimized):
            object.__setattr__(result, "forward", counted(result.forward, result._orig_mod))
            _watch_methods(optimized)
            _methods[result] = region
            _watch_context(result.dynamo_ctx)
            _contexts[result.dynamo_ctx] = also
        elif type(result) is FunctionType:
            return counted(result, _innermost(given["model"]))
        return result


def _innermost(fn: Any) -> Any:
    """The user's own function below torch's and our wrappers, as torch's ``innermost_fn``."""
    while hasattr(fn, "_torchdynamo_orig_callable") and (
        getattr(fn, "_torchdynamo_wrapper_id", id(fn)) == id(fn)
    ):
        fn = fn._torchdynamo_orig_callable
    return fn


def hide_from_dynamo(call: Callable[..., Any]) -> None:
    """Keep Dynamo's frame hook away from a wrapper that runs inside a broken graph."""
    skip = getattr(sys.modules.get("torch._dynamo.eval_frame"), "skip_code", None)
    if skip is not None:
        skip(call.__code__)


_methods: weakref.WeakKeyDictionary[Any, Region] = weakref.WeakKeyDictionary()


def _watch_methods(optimized: Any) -> None:
    """Record which methods of the user's class are fetched through an ``OptimizedModule``."""
    plain = optimized.__getattr__
    if hasattr(plain, "_traceview"):
        return

    @functools.wraps(plain)
    def __getattr__(self: Any, name: str) -> Any:
        value = plain(self, name)
        if name[:1] != "_" and name != "forward" and callable(value):
            region = _methods.get(self)
            if region is not None and name not in region.methods_used:
                classes = type(self._orig_mod).__mro__
                owner = next((cls for cls in classes if name in vars(cls)), optimized)
                theirs = owner.__module__.split(".")[0] != "torch"
                if theirs and callable(vars(owner)[name]):
                    region.methods_used.append(name)
        return value

    __getattr__._traceview = True  # type: ignore[attr-defined]
    optimized.__getattr__ = __getattr__


_contexts: weakref.WeakKeyDictionary[Any, Callable[..., Any]] = weakref.WeakKeyDictionary()


def _watch_context(context: Any) -> None:
    """Count the functions that a compiled module's ``dynamo_ctx`` is given later.

    Lightning throws the ``OptimizedModule`` away and compiles ``training_step`` and the others
    with its context.
    """
    kind = type(context)
    plain = kind.__call__
    if hasattr(plain, "_traceview"):
        return

    @functools.wraps(plain)
    def __call__(self: Any, fn: Any) -> Any:
        result = plain(self, fn)
        also = _contexts.get(self)
        if also is None or type(result) is not FunctionType:
            return result
        return also(result, _innermost(fn))

    __call__._traceview = True  # type: ignore[attr-defined]
    kind.__call__ = __call__


# -- what a torch.compile call was given, as plain data for the ``region`` event -------------------


def arguments(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """All arguments by name with torch's defaults; those as given if they don't bind."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return {**dict(zip(("model",), args, strict=False)), **kwargs}
    bound.apply_defaults()
    return dict(bound.arguments)


def sizes_of(model: Any) -> list[tuple[str, str, tuple[int, ...]]]:
    """Name, dtype and sizes of each parameter of a module, or of what a method belongs to.

    Those of one network that a script builds again are the same; those of another one differ.
    """
    parameters = getattr(getattr(model, "__self__", model), "named_parameters", None)
    try:
        return [(name, str(each.dtype), tuple(each.shape)) for name, each in parameters()]  # type: ignore[misc]
    except Exception:  # noqa: BLE001 - a class, a function, lazy parameters, the user's own
        return []


def backends_offered() -> list[str]:
    """Every backend that this torch knows by name, those for debugging too."""
    registry = sys.modules.get("torch._dynamo.backends.registry")
    try:
        return list(registry.list_backends(exclude_tags=()))  # type: ignore[union-attr]
    except Exception:  # noqa: BLE001 - torch's internals differ between versions
        return []


def target_of(model: Any, module_type: type) -> dict[str, Any]:
    """``kind`` and ``name`` of what is being compiled, and the ``target_…`` of its code."""
    kind, named, code_of = "other", model, model  # what has the name, and the function
    if isinstance(model, type):
        calls = "forward" if issubclass(model, module_type) else "__call__"
        kind, code_of = "class", getattr(model, calls, None)
    elif isinstance(model, module_type):
        kind, named, code_of = "module", type(model), getattr(type(model), "forward", None)
    elif isinstance(model, MethodType):
        kind, code_of, owner = "method", model.__func__, model.__self__
        if isinstance(owner, module_type) and model.__name__ in ("_call_impl", "_lazy_forward"):
            kind, named = "module_compile", type(owner)
            code_of = getattr(named, "forward", None)
    elif inspect.isfunction(model):
        kind = "function"
    code = getattr(inspect.unwrap(code_of) if callable(code_of) else None, "__code__", None)
    return {
        "kind": kind,
        "name": str(getattr(named, "__qualname__", None) or type(named).__qualname__),
        "target_file": getattr(code, "co_filename", None),
        "target_line": getattr(code, "co_firstlineno", None),
        "target_last_line": _last_line(code) if isinstance(code, CodeType) else None,
        "resumable": bool(code.co_flags & _RESUMABLE) if isinstance(code, CodeType) else None,
    }


def torchscript_of(original: Any, torch: Any) -> tuple[str | None, bool]:
    """Class of the TorchScript module or function that it is, or else of the first within it.

    Within: a module below it, or what a function reads as a global or from around it. Dynamo can't
    look into either: it leaves a call of such a one in eager.
    """
    kinds = (torch.jit.ScriptModule, torch.jit.ScriptFunction)
    owner = getattr(original, "__self__", original)
    if isinstance(owner, kinds):
        return type(owner).__name__, False
    if isinstance(owner, torch.nn.Module):
        near: Iterable[Any] = owner.modules()
    else:
        code = getattr(original, "__code__", None)
        names = getattr(original, "__globals__", {})
        around = map(content, getattr(original, "__closure__", None) or ())
        near = (*(names.get(name) for name in getattr(code, "co_names", ())), *around)
    found = next((type(each).__name__ for each in near if isinstance(each, kinds)), None)
    return found, found is not None


def _last_line(code: CodeType) -> int:
    """The last line that has code of the function or of one within."""
    inner = (_last_line(each) for each in code.co_consts if isinstance(each, CodeType))
    own = (line for _, _, line in code.co_lines() if line is not None)
    return max((*own, *inner), default=code.co_firstlineno)
