"""What one torch.compile call was given, as plain data for the ``region`` event."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from types import CodeType, MethodType
from typing import Any

CUDAGRAPH_MODES = ("reduce-overhead", "max-autotune")


def arguments(
    compile_fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """All arguments by name with torch's defaults; those as given if they don't bind."""
    try:
        bound = inspect.signature(compile_fn).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return {**dict(zip(("model",), args, strict=False)), **kwargs}
    bound.apply_defaults()
    return dict(bound.arguments)


def options_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The ``region`` event's keys about how to compile."""
    backend = given.get("backend") or "inductor"
    options = given.get("options")
    return {
        "backend": backend if isinstance(backend, str) else repr(backend),
        "backend_is_callable": not isinstance(backend, str),
        "mode": given.get("mode"),
        "dynamic": str(given.get("dynamic")),
        "fullgraph": bool(given.get("fullgraph")),
        "disable": bool(given.get("disable")),
        "options": None if options is None else json.dumps(options, default=repr, skipkeys=True),
    }


def backends_offered() -> list[str]:
    """Every backend that this torch knows by name, those for debugging too."""
    registry = sys.modules.get("torch._dynamo.backends.registry")
    try:
        return list(registry.list_backends(exclude_tags=()))  # type: ignore[union-attr]
    except Exception:  # noqa: BLE001 - torch's internals differ between versions
        return []


def uses_cudagraphs(given: Mapping[str, Any]) -> bool:
    """Whether these arguments ask for cudagraphs."""
    options = given.get("options")
    asked = isinstance(options, Mapping) and bool(options.get("triton.cudagraphs"))
    return given.get("mode") in CUDAGRAPH_MODES or asked


def target_of(model: Any, module_type: type) -> dict[str, Any]:
    """``kind`` and ``name`` of what is being compiled, and the ``target_…`` of its code."""
    kind, named, code_of = _kind(model, module_type)
    code = getattr(inspect.unwrap(code_of) if callable(code_of) else None, "__code__", None)
    return {
        "kind": kind,
        "name": str(getattr(named, "__qualname__", None) or type(named).__qualname__),
        "target_file": getattr(code, "co_filename", None),
        "target_line": getattr(code, "co_firstlineno", None),
        "target_last_line": _last_line(code) if isinstance(code, CodeType) else None,
    }


def _last_line(code: CodeType) -> int:
    """The last line that has code of the function or of one within."""
    inner = (_last_line(each) for each in code.co_consts if isinstance(each, CodeType))
    own = (line for _, _, line in code.co_lines() if line is not None)
    return max((*own, *inner), default=code.co_firstlineno)


def _kind(model: Any, module_type: type) -> tuple[str, Any, Any]:
    """The kind, the object that gives the name, and the function that gives the place."""
    if isinstance(model, type):
        calls = "forward" if issubclass(model, module_type) else "__call__"
        return "class", model, getattr(model, calls, None)
    if isinstance(model, module_type):
        return "module", type(model), getattr(type(model), "forward", None)
    if isinstance(model, MethodType):
        owner = model.__self__
        if isinstance(owner, module_type) and model.__name__ in ("_call_impl", "_lazy_forward"):
            return "module_compile", type(owner), getattr(type(owner), "forward", None)
        return "method", model, model.__func__
    if inspect.isfunction(model):
        return "function", model, model
    return "other", model, model
