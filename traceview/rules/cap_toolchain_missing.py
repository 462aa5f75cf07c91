"""
## What it finds
A compile that fails because of the machine, not the script: no C++ compiler, no Triton, no Python
headers, an unsupported GPU or Python.

## Why it costs
Inductor writes C++ for the CPU and Triton for a GPU, and builds it when the function is first
called. That call raises and the script ends there, although it would run in eager.

## Evidence
The exception that reached the script, or the failure in the log of compiles, with torch's or the
compiler's own words. An error if it ended the script; a warning if the script caught it.

## What to do
Install what is missing, or set where it is: CXX names the C++ compiler. `traceview doctor` shows
what is installed. Until then `backend="aot_eager"` runs without any compiler, and without any gain.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- https://docs.pytorch.org/docs/stable/torch.compiler_get_started.html
- torch/_inductor/exc.py, `InvalidCxxCompiler`, `TritonMissing`, `GPUTooOldForTriton`
- torch/_inductor/cpp_builder.py, `get_cpp_compiler`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from traceview.rules import _failures
from traceview.rules.kit import Cost, Evidence, Finding, Snippet, Tables, first_rank, rows

CODE = "TV115"
NEEDS = frozenset({"runs"})
SEVERITIES = ("error", "warning")


class _Lack(NamedTuple):
    """What is missing, why it is needed, how to get it."""

    title: str
    why: str
    remedy: str
    paste: str | None = None


_CXX = _Lack(
    "torch finds no working C++ compiler",
    "Inductor writes C++ for a CPU and calls a compiler to build it: the one that CXX names, or "
    "g++ on the PATH.",
    "Install g++ (or clang++), or set CXX to an installed compiler. If CXX is set, check its path.",
    "apt-get install g++   # or: export CXX=/usr/bin/clang++",
)
_TRITON = _Lack(
    "Triton is not installed, or too old for this torch",
    "Inductor writes Triton for a GPU, and each torch works with one version of it.",
    "Install the Triton that belongs to this torch: reinstall torch from its own index.",
)
_OLD_GPU = _Lack(
    "This GPU is too old for Triton",
    "Inductor writes Triton for a GPU, which needs compute capability 7.0 or newer.",
    'Leave the model in eager on this GPU; backend="cudagraphs" saves launches without Triton.',
)
_C_COMPILER = _Lack(
    "Triton finds no C compiler",
    "Triton builds a small C extension for each kernel, with the compiler that CC names, or gcc.",
    "Install gcc, or set CC to an installed compiler.",
    "apt-get install gcc   # or: export CC=/usr/bin/clang",
)
_HEADERS = _Lack(
    "The compiler does not find Python's headers (Python.h)",
    "The generated code is an extension of this Python and includes Python.h.",
    "Install this Python's headers.",
    "apt-get install python3-dev",
)
_PTXAS = _Lack(
    "Triton finds no ptxas",
    "Triton calls NVIDIA's assembler to build its kernels.",
    "Reinstall Triton, which includes ptxas, or set TRITON_PTXAS_PATH to the one of your CUDA.",
)
_PYTHON = _Lack(
    "This torch does not compile under this Python",
    "Dynamo reads bytecode, which each Python version changes.",
    "Use an older Python, or a newer torch.",
)
_LACKS = (
    (r"No working C\+\+ compiler found in [^\n]*", _CXX),
    (r"Compiler: \S+ is not found\.", _CXX),
    (r"Cannot find a working triton installation", _TRITON),
    (r"too old to be supported by the triton GPU compiler", _OLD_GPU),
    (r"Failed to find C compiler", _C_COMPILER),
    (r"Python\.h: No such file or directory", _HEADERS),
    (r"Cannot find ptxas|ptxas: (?:not found|No such file)", _PTXAS),
    (r"(?:torch\.compile|Dynamo) is not supported on Python[^\n]*", _PYTHON),
)

_ANY_LACK = re.compile("|".join(pattern for pattern, _ in _LACKS))


def is_lack(message: str | None) -> bool:
    """Whether an error with this message is the machine's, not the compiler's."""
    return bool(_ANY_LACK.search(message or ""))


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per kind of thing that is missing."""
    env = first_rank(rows(tables, "environment", section="env", name="CXX"))
    for pattern, lack in _LACKS:
        for failure in _failures.failures(tables, re.compile(pattern)):
            yield Finding(
                code=CODE,
                rule="cap-toolchain-missing",
                severity=failure.severity,
                title=lack.title,
                explanation=lack.why,
                cost=Cost(about="nothing is compiled on this machine"),
                confidence="measured",
                location=failure.place,
                about=failure.about,
                evidence=(
                    *failure.evidence,
                    *(Evidence(f"CXX={row['value']}", "environment") for row in env[:1]),
                ),
                what_to_do=lack.remedy,
                snippet=Snippet("shell", lack.paste) if lack.paste else None,
            )
