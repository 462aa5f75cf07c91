"""Names for generated C++ kernels in the profiler's trace, while a window is open.

Inductor can write them into the kernels itself (``cpp.enable_kernel_profile``), but then the C++
compiler takes up to three times as long for each: a header then comes before the precompiled one,
which is of no use any more. So the generated modules call marked kernels while a window is open.
Not seen are kernels that generated C++ calls (``cpp_wrapper``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .regions import hide_from_dynamo

_PREFIX = "cpp_"  # torch/_inductor/codegen: cpp_fused_…, cpp_bmm_…, cpp_CppMicroGemm…, cpp_flex…


class KernelMarks:
    """Puts ranges around generated C++ kernels between `start` and `stop`.

    ``begin`` opens a range of that name and gives what closes it by ``__exit__``.
    """

    def __init__(self, begin: Callable[[str], Any]) -> None:
        self._begin = begin
        self._unmarked: list[tuple[dict[str, Any], str, Any]] = []

    def start(self) -> None:
        cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
        for names in {id(each): vars(each) for each in getattr(cache, "modules", ())}.values():
            for name, kernel in list(names.items()):
                if name.startswith(_PREFIX) and callable(kernel):
                    self._unmarked.append((names, name, kernel))
                    names[name] = self._marked(name, kernel)

    def stop(self) -> None:
        """Take the ranges away again."""
        while self._unmarked:
            names, name, kernel = self._unmarked.pop()
            names[name] = kernel

    def _marked(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        begin = self._begin

        def call(*args: Any) -> Any:
            mark = begin(name)
            try:
                return kernel(*args)
            finally:
                mark.__exit__(None, None, None)

        hide_from_dynamo(call)
        return call
