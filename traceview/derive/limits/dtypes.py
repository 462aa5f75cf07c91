"""Names of dtypes, in every spelling that a run holds, with their bytes per element."""

from __future__ import annotations

import re

#: torch's name → bytes of an element, and rank when two dtypes meet: bool, int, float, complex.
_SIZES = {
    "bool": (1, 0), "uint8": (1, 1), "int8": (1, 1), "uint16": (2, 1), "int16": (2, 1),
    "uint32": (4, 1), "int32": (4, 1), "uint64": (8, 1), "int64": (8, 1),
    "float8_e4m3fn": (1, 2), "float8_e5m2": (1, 2), "float8_e4m3fnuz": (1, 2),
    "float8_e5m2fnuz": (1, 2), "float16": (2, 2), "bfloat16": (2, 2), "float32": (4, 2),
    "float64": (8, 2), "complex32": (4, 3), "complex64": (8, 3), "complex128": (16, 3),
}  # fmt: skip
#: How Kineto ("long int"), Triton ("*fp16") and generated C++ ("bfloat16*") write them.
_SPELLINGS = {
    "float": "float32", "double": "float64", "half": "float16", "c10::Half": "float16",
    "c10::BFloat16": "bfloat16", "char": "int8", "signed char": "int8", "unsigned char": "uint8",
    "short": "int16", "short int": "int16", "int": "int32", "long": "int64", "long int": "int64",
    "long long": "int64", "unsigned short": "uint16", "short unsigned int": "uint16",
    "unsigned int": "uint32", "unsigned long": "uint64", "long unsigned int": "uint64",
    "c10::Float8_e4m3fn": "float8_e4m3fn", "c10::Float8_e5m2": "float8_e5m2",
    "c10::complex<c10::Half>": "complex32", "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "fp16": "float16", "bf16": "bfloat16",
    "fp32": "float32", "fp64": "float64", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2",
    "int8_t": "int8", "int16_t": "int16", "int32_t": "int32", "int64_t": "int64",
    "uint8_t": "uint8", "uint16_t": "uint16", "uint32_t": "uint32", "uint64_t": "uint64",
    "at::Half": "float16", "at::BFloat16": "bfloat16",
}  # fmt: skip
_DECORATION = re.compile(r"\bconst\b|[*&]|^torch\.|__restrict__")


def dtype_of(spelling: str) -> str | None:
    """Torch's name of a dtype that is written some other way; None for what is no dtype."""
    name = _DECORATION.sub("", spelling).strip()
    name = _SPELLINGS.get(name, name)
    return name if name in _SIZES else None


def size_of(dtype: str) -> int:
    """Bytes of one element of ``dtype`` (torch's name)."""
    return _SIZES[dtype][0]


def promoted(tensors: list[tuple[str, int]]) -> str | None:
    """The dtype that (dtype, dimensions) of the operands give, as ``torch.result_type`` has it.

    A tensor without dimensions counts only where its kind of number is above that of all others.
    """
    if not tensors:
        return None
    top = max(_SIZES[dtype][1] for dtype, _ in tensors)
    ranked = [dtype for dtype, dims in tensors if dims and _SIZES[dtype][1] == top]
    if not ranked and any(dims for _, dims in tensors) and top == _SIZES["float32"][1]:
        return "float32"  # a Python float beside integers: the default dtype
    found = ranked or [dtype for dtype, _ in tensors if _SIZES[dtype][1] == top]
    largest = max(found, key=size_of)
    return "float32" if {"float16", "bfloat16"} <= set(found) and size_of(largest) == 2 else largest
