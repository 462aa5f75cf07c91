"""Names of marks: one pattern serves ``re`` and polars."""

import re

import polars as pl
import pytest

from traceview.torchtext import marks


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("TorchDynamo Cache Lookup", "cache_lookup"),
        ("Pregraph bytecode", "pregraph_bytecode"),
        ("AOTDispatcher Runtime Wrapper Prologue", "runtime_wrappers"),
        ("CompiledFunctionBackward", "runtime_wrappers"),
        ("Torch-Compiled Region: 0/0", "compiled_region"),
        ("## Call CompiledFxGraph fabc ##", "generated_wrapper"),
        ("aten::add", None),
    ],
)
def test_the_parts_of_a_compiled_call(name, part):
    assert marks.part_of_call(name) == part


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        (marks.STEP, "ProfilerStep#12", True),
        (marks.STEP, "traceview step 3", True),
        (marks.STEP, "traceview cut 3", False),
        (marks.STEP, "ProfilerStep#", False),
        (marks.starting(marks.DATA_LOADER), "enumerate(DataLoader)#_Single.__next__", True),
        (marks.starting(marks.DATA_LOADER), "enumerate[DataLoader]#", False),
        (marks.starting(marks.OUR_GC, marks.GRAPH), "## Call CompiledFxGraph f ##", True),
        (marks.starting(marks.OUR_GC, marks.GRAPH), "x ## Call CompiledFxGraph f ##", False),
    ],
)
def test_a_pattern_means_the_same_to_re_and_to_polars(pattern, name, fits):
    assert bool(re.search(pattern, name)) is fits
    assert pl.Series([name]).str.contains(pattern).item() is fits
