"""Changes to Inductor's C++ for this project."""

from torch._inductor.codegen import cpp


def use_fast_erf():
    """erf by a function of ours, which the generated file doesn't declare."""
    for overrides in (cpp.CppOverrides, cpp.CppVecOverrides):
        overrides.erf = staticmethod(lambda x: f"fast_erf({x})")
