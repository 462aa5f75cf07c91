"""Act right after a module's first import has finished, without importing it ourselves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Act = Callable[[ModuleType], None]
Within = Callable[[], AbstractContextManager[None]]


def after_import(name: str, act: Act, within: Within = nullcontext) -> None:
    """Call ``act(module)`` once ``name`` has been imported; at once if it has been already.

    Each attempt to import it runs inside of ``within()``.
    """
    module = sys.modules.get(name)
    if module is not None:
        act(module)
    else:
        sys.meta_path.insert(0, _Finder(name, act, within))


class _Finder:
    """Stands in front of the real finders for one name, until that name has been found."""

    def __init__(self, name: str, act: Act, within: Within) -> None:
        self._name = name
        self._act = act
        self._within = within

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    loader = _Loader(spec.loader, self, self._act, self._within)
                    spec.loader = loader  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """The real loader, which it puts back into the module before the module runs."""

    def __init__(self, loader: Any, finder: _Finder, act: Act, within: Within) -> None:
        self._loader = loader
        self._finder = finder
        self._act = act
        self._within = within

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        with self._within():
            self._loader.exec_module(module)
        if self._finder in sys.meta_path:  # it has succeeded: leave the import system as it was
            sys.meta_path.remove(self._finder)
        self._act(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
