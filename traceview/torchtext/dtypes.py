"""Names of dtypes, in every spelling that torch's texts have, with their bytes per element."""

from __future__ import annotations

import re
from functools import lru_cache

#: torch's name; bytes of an element; its kind (0 bool, 1 integer, 2 float, 3 complex: where two
#: dtypes meet, the result is of the higher kind); how FX graphs, Triton, C++, Kineto and
#: guards write it.
_TABLE = """
    bool             1  0  b8 | i1 | Bool
    uint8            1  1  u8 | uint8_t | unsigned char | Byte
    int8             1  1  i8 | int8_t | char | signed char | Char
    uint16           2  1  u16 | uint16_t | unsigned short | short unsigned int
    int16            2  1  i16 | int16_t | short | short int | Short
    uint32           4  1  u32 | uint32_t | unsigned int
    int32            4  1  i32 | int32_t | int | Int
    uint64           8  1  u64 | uint64_t | unsigned long | long unsigned int
    int64            8  1  i64 | int64_t | long | long int | long long | Long
    float8_e4m3fn    1  2  f8e4m3fn | fp8e4nv | c10::Float8_e4m3fn
    float8_e5m2      1  2  f8e5m2 | fp8e5 | c10::Float8_e5m2
    float8_e4m3fnuz  1  2  f8e4m3fnuz
    float8_e5m2fnuz  1  2  f8e5m2fnuz
    float8_e8m0fnu   1  2  f8e8m0fnu
    float16          2  2  f16 | fp16 | half | at::Half | c10::Half | Half
    bfloat16         2  2  bf16 | at::BFloat16 | c10::BFloat16 | BFloat16
    float32          4  2  f32 | fp32 | float | Float
    float64          8  2  f64 | fp64 | double | Double
    complex32        4  3  c32 | c10::complex<c10::Half>
    complex64        8  3  c64 | c10::complex<float> | ComplexFloat
    complex128      16  3  c128 | c10::complex<double> | ComplexDouble
"""
_INTEGER = 1
_ROWS = [line.split(maxsplit=3) for line in _TABLE.strip().splitlines()]
_SIZES = {name: (int(size), int(kind)) for name, size, kind, _ in _ROWS}
_NAMES = {
    spelling.strip(): name for name, _, _, more in _ROWS for spelling in (name, *more.split("|"))
}
_DECORATION = re.compile(r"\bconst\b|[*&]|^torch\.|__restrict__")


@lru_cache(1024)
def dtype_of(spelling: str) -> str | None:
    """Torch's name of a dtype that is written some other way; None for what is no dtype."""
    return _NAMES.get(_DECORATION.sub("", spelling).strip())


def size_of(dtype: str) -> int:
    """Bytes of one element of ``dtype`` (torch's name)."""
    return _SIZES[dtype][0]


def is_integer(dtype: str | None) -> bool:
    """Whether ``dtype`` (torch's name) holds whole numbers; no truth values."""
    return _SIZES.get(dtype or "", (0, 0))[1] == _INTEGER


def promoted(tensors: list[tuple[str, int]]) -> str | None:
    """The dtype that (dtype, dimensions) of the operands give, as ``torch.result_type`` has it.

    A tensor without dimensions counts only where its kind of number is above that of all others.
    """
    if not tensors:
        return None
    top = max(_SIZES[dtype][1] for dtype, _ in tensors)
    ranked = [dtype for dtype, dims in tensors if dims and _SIZES[dtype][1] == top]
    if not ranked and any(dims for _, dims in tensors) and top == _SIZES["float32"][1]:
        return "float32"  # a Python float next to integers: the default dtype
    found = ranked or [dtype for dtype, _ in tensors if _SIZES[dtype][1] == top]
    largest = max(found, key=size_of)
    return "float32" if {"float16", "bfloat16"} <= set(found) and size_of(largest) == 2 else largest
