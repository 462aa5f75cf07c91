"""Asked of the target's interpreter with ``-c``, for ``traceview doctor``: what its torch can do.

This one imports torch, whose annotations differ between versions, and triton, which is not in every
environment: so the ``unused-ignore``. ``os.path`` is as in ask_target. Every question stands alone:
what can't be answered is null. Standard library and torch only. Answers with one line on stdout:
``MARK`` and a JSON object.
"""

import json
import os
import sys
import tempfile

MARK = "traceview-answer:"


def ask_torch() -> "dict[str, object]":
    """torch's version, devices and profiler; ``torch_error`` where it can't be loaded."""
    try:
        import torch
    except Exception as error:  # noqa: BLE001 - a broken torch is an answer, whatever it raises
        return {"torch_error": type(error).__name__ + ": " + str(error)[:300]}
    facts = {"torch_version": torch.__version__, "cuda_version": torch.version.cuda}  # type: dict[str, object]
    for name, question in (
        ("device", device),
        ("activities", activities),
        ("compiler", cpp_compiler),
        ("triton_version", triton_version),
    ):
        try:
            facts[name] = question()
        except Exception as error:  # noqa: BLE001 - torch's internals differ between versions
            facts[name] = None
            facts[name + "_error"] = type(error).__name__ + ": " + str(error)[:300]
    return facts


def device() -> "str | None":
    """The GPU that torch sees, None without one."""
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else None


def activities() -> "list[str]":
    """What the profiler can record: CPU, CUDA (which needs CUPTI), …"""
    import torch

    kinds = torch.profiler.supported_activities()  # type: ignore[no-untyped-call, unused-ignore]
    return sorted(str(kind).rpartition(".")[2] for kind in kinds)


def cpp_compiler() -> str:
    """The C++ compiler that Inductor would call."""
    from torch._inductor.cpp_builder import get_cpp_compiler

    return str(get_cpp_compiler())


def triton_version() -> str:
    """Triton's version; raises where it can't be imported."""
    import triton  # type: ignore[import-not-found, unused-ignore]

    return str(triton.__version__)


def inductor_cache() -> str:
    """Where Inductor keeps its cache by itself (torch/_inductor/runtime/cache_dir_utils.py)."""
    import getpass

    own = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    return own or os.path.join(tempfile.gettempdir(), "torchinductor_" + getpass.getuser())  # noqa: PTH118


def main() -> "dict[str, object]":
    """All facts."""
    facts = {"python_version": list(sys.version_info[:3]), "prefix": sys.prefix}  # type: dict[str, object]
    facts["cache"] = inductor_cache()
    facts.update(ask_torch())
    return facts


if __name__ == "__main__":
    sys.stdout.write("\n" + MARK + json.dumps(main()) + "\n")
