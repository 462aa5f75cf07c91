"""What the script ran in: versions, device, variables, settings that are not torch's defaults."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

from .recorder import Recorder
from .secrets import masked, masked_variable

_VARIABLES = re.compile(
    "TORCH|PYTORCH|CUDA|CUBLAS|NVIDIA|NCCL|OMP|MKL|TRITON|INDUCTOR|KMP|ATEN|ONEDNN|CXX|MALLOC_"
    "|LD_PRELOAD"
)
_CONFIGS = {
    "dynamo_config": "torch._dynamo.config",
    "inductor_config": "torch._inductor.config",
    "functorch_config": "torch._functorch.config",
    "compiler_config": "torch.compiler.config",
}
_PRECISION = (
    "cuda.matmul.allow_tf32",
    "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction",
    "cudnn.allow_tf32",
    "cudnn.benchmark",
    "cudnn.deterministic",
    "cudnn.enabled",
)
#: Backends of attention, as torch.backends.cuda has them: on a CPU they count as well.
_ATTENTION = ("flash_sdp", "mem_efficient_sdp", "cudnn_sdp", "math_sdp")
# what the variables that the parent sets change in torch's configs
_OUR_SETTINGS = frozenset({"cpp.enable_kernel_profile", "trace.provenance_tracking_level"})
MAX_TEXT = 2000
_CGROUP = Path("/sys/fs/cgroup")


def write_environment(torch: Any, recorder: Recorder, ours: frozenset[str]) -> None:
    """The ``torch`` event and one ``setting`` event each. Imports nothing and starts no CUDA.

    ``ours`` names the environment variables that the parent set.
    """
    recorder.write("torch", **described(torch), torch_file=torch.__file__)
    for section, name, value, default, by_us in settings(torch, ours):
        keys = {"section": section, "name": name, "value": value, "default": default}
        recorder.write("setting", **keys, set_by="traceview" if by_us else "user")


def described(torch: Any) -> dict[str, Any]:
    """Versions and devices."""
    cuda = torch.cuda if torch.cuda.is_initialized() else None
    capability = cuda and ".".join(map(str, cuda.get_device_capability()))
    return {
        "torch_version": str(torch.__version__),
        "triton_version": _triton_version(),
        "cuda_version": torch.version.cuda,
        # From the kernel module's own file: nvidia-smi takes a second.
        "driver_version": _in_file(
            "/proc/driver/nvidia/version", r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s"
        ),
        "device_name": cuda and cuda.get_device_name(),
        "device_count": cuda and cuda.device_count(),
        "device_capability": capability,
        "device_memory_bytes": cuda and cuda.get_device_properties("cuda").total_memory,
        # Of the first processor; Arm's kernels name none.
        "cpu_name": _in_file("/proc/cpuinfo", r"(?m)^model name\s*:\s*(.*\S)"),
        "cpu_threads": torch.get_num_threads(),
        "cpu_count": usable(),
    }


def settings(torch: Any, ours: frozenset[str]) -> Iterator[tuple[str, str, str, str | None, bool]]:
    """Section, name, value, default, and whether the parent has set it."""
    for name in sorted(filter(_VARIABLES.match, os.environ)):
        by_us = name in ours and name != "TORCH_LOGS"  # the user's own: see logs.py
        yield "env", name, masked_variable(name, os.environ[name]), None, by_us
    for section, module in _CONFIGS.items():
        config: Any = sys.modules.get(module)
        for name, entry in list(getattr(config, "_config", {}).items()):
            try:
                if getattr(entry, "alias", None) is not None or config._is_default(name):
                    continue
                value, default = getattr(config, name), getattr(entry, "default", None)
                if value != default:  # else set to what it was
                    yield section, name, _text(value), _text(default), name in _OUR_SETTINGS
            except Exception:  # noqa: BLE001 - torch's internals differ between versions
                continue
    precision = _text(torch.get_float32_matmul_precision())
    yield "precision", "float32_matmul_precision", precision, None, False
    for flag in _PRECISION:
        try:
            yield "precision", flag, _text(attrgetter(flag)(torch.backends)), None, False
        except (AttributeError, RuntimeError):  # the flag is not known, or mixed with the new API
            continue
    deterministic = _text(torch.are_deterministic_algorithms_enabled())
    yield "precision", "deterministic_algorithms", deterministic, None, False
    yield "torch", "grad_enabled_steps", _text(torch.is_grad_enabled()), None, False
    yield "torch", "autograd.detect_anomaly", _text(torch.is_anomaly_enabled()), None, False
    for name in _ATTENTION:  # cudnn's is of torch 2.4
        if enabled := getattr(torch.backends.cuda, f"{name}_enabled", None):
            yield "torch", f"cuda.{name}", _text(enabled()), None, False
    yield "torch", "autograd.profiler", _text(torch.autograd._profiler_enabled()), None, False
    if modes := ", ".join(refused_modes()):
        yield "torch", "dispatch_modes", _text(modes), None, False
    if (world := world_size()) is not None:
        yield "torch", "world_size", _text(world), None, False


def compiling_disabled() -> str | None:
    """What switches torch.compile off for the whole process: ``env``, ``config`` or nothing."""
    names = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
    if any(os.environ.get(name, "") == "1" for name in names):
        return "env"
    config = sys.modules.get("torch._dynamo.config")
    return "config" if getattr(config, "disable", False) else None


def refused_modes() -> list[str]:
    """Classes of the active dispatch modes that Dynamo compiles nothing under, outermost first.

    As ``any_torch_dispatch_mode_on_stack`` in torch/utils/_python_dispatch.py (2.10) has it; older
    versions refuse them all but their own (``is_infra_mode``). The context that a script enters
    may start a private one of its name: FlopCounterMode a _FlopCounterMode.
    """
    module = sys.modules.get("torch.utils._python_dispatch")
    stack: list[object] = getattr(module, "_get_current_dispatch_mode_stack", list)()
    passed = ("is_infra_mode", "ignore_compile_internals")
    return [
        type(mode).__name__.lstrip("_")
        for mode in stack
        if not any(getattr(mode, name, bool)() for name in passed)
    ]


def world_size() -> int | None:
    """Processes in torch.distributed's default group, None where the script has made none."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_world_size())


def _triton_version() -> str | None:
    """Without importing it: from the module if it is loaded, else from its metadata."""
    loaded = getattr(sys.modules.get("triton"), "__version__", None)
    if loaded is not None or importlib.util.find_spec("triton") is None:
        return loaded
    from importlib import metadata

    for name in ("triton", "pytorch-triton", "pytorch-triton-rocm"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _in_file(path: str, pattern: str) -> str | None:
    """What the pattern's group finds in a file of the kernel's; None where there is none."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(pattern, text)
    return found and found[1]


def _text(value: object) -> str:
    return masked(str(value)[:MAX_TEXT])


def usable() -> int | None:
    """Processors that this process may run on; fewer where its cgroup's quota is lower.

    The quota is processors' worth of time, in version 2 of cgroups and then in version 1.
    """
    try:
        count = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count()
    try:
        if (version_2 := _CGROUP / "cpu.max").exists():
            limit, period = version_2.read_text(encoding="ascii").split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            limit, period = (
                (_CGROUP / "cpu" / name).read_text(encoding="ascii").strip() for name in names
            )
        unlimited = limit in ("max", "-1")
        return count if unlimited else max(1, min(count, math.ceil(int(limit) / int(period))))
    except (OSError, ValueError, ZeroDivisionError):
        return count
