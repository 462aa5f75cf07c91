"""What ``traceview.testing`` and the pytest plugin say of code under test; real compiles."""

import importlib

import pytest
import torch

from traceview.testing import (
    Compiles,
    assert_compiles_once,
    assert_no_graph_breaks,
    compile_budget,
)

pytestmark = pytest.mark.live
pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    """Or torch puts one into the environment when it is imported, where the next tests find it."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    importlib.import_module("torch._inductor")


def failure_of(limit, work):
    """What the AssertionError says that ``limit`` raises of ``work``."""

    def within():
        with limit:
            work()

    with pytest.raises(AssertionError) as failed:
        within()
    return str(failed.value)


@pytest.fixture
def scale():
    @torch.compile(backend="eager", dynamic=False)
    def scale(x, by=2.0):
        return x * by

    return scale


@pytest.fixture
def gated():
    @torch.compile(backend="eager")
    def gated(x):
        if x.sum() > 0:
            return x + 1
        return x

    return gated


def test_one_compile_is_no_recompile(scale):
    with assert_compiles_once() as seen:
        for _ in range(3):
            scale(torch.ones(4))
    assert (seen.compiles, seen.recompiles, seen.graph_breaks) == (1, 0, 0)
    assert 0 < seen.seconds < 60
    assert seen.reasons() == ""


def test_a_recompile_fails_with_its_reason_and_line(scale):
    said = failure_of(assert_compiles_once(), lambda: [scale(torch.ones(n)) for n in (3, 4, 5)])
    assert said.startswith("2 recompiles, at most 0\n")
    assert f"scale() at {__file__}:" in said
    assert "size mismatch" in said


def test_a_graph_break_fails_with_its_reason_and_line(gated):
    said = failure_of(assert_no_graph_breaks(), lambda: gated(torch.ones(4)))
    assert said.startswith("1 graph break, at most 0\n")
    assert f"graph break at {__file__}:" in said
    assert "TV102" in said


def test_every_limit_holds_by_itself(gated):
    with compile_budget(graph_breaks=1, recompiles=0, seconds=600) as seen:
        gated(torch.ones(4))
    said = failure_of(compile_budget(seconds=0), lambda: gated(torch.ones(4)))
    assert said.startswith("compiling took ")
    said = failure_of(compile_budget(compiles=1), lambda: gated(torch.ones(4)))
    assert said.startswith(f"{seen.compiles} compiles, at most 1\n")


def test_nothing_compiled_holds_no_limit(scale):
    scale(torch.ones(4))
    said = failure_of(assert_compiles_once(reset=False), lambda: scale(torch.ones(4)))
    assert "compiled nothing" in said
    with compile_budget(compiles=0, reset=False):
        scale(torch.ones(4))


def test_an_error_in_the_block_is_the_one_that_is_raised(scale):
    with pytest.raises(ZeroDivisionError), assert_compiles_once():
        scale(torch.ones(4), 1 / 0)
    with Compiles() as seen:
        pass
    assert seen.compiles == 0


def test_torchs_own_handlers_are_left_as_they_were(scale):
    from torch._logging._internal import trace_log

    before = list(trace_log.handlers)
    with Compiles():
        scale(torch.ones(4))
    assert trace_log.handlers == before


def test_a_later_block_names_files_too(scale):
    """torch writes a file's name once in a process, and its number from then on."""
    for _ in range(2):
        with Compiles() as seen:
            scale(torch.ones(4))
        assert seen._tables["compiles"]["user_file"].to_list() == [__file__]


def test_the_plugin_holds_tests_to_their_budget(pytester):
    pytester.makepyfile(
        """
        import pytest
        import torch

        @torch.compile(backend="eager", dynamic=False)
        def scale(x):
            return x * 2

        @pytest.mark.compile_budget(recompiles=0)
        def test_within():
            scale(torch.ones(3))

        @pytest.mark.compile_budget(recompiles=0)
        def test_beyond():
            scale(torch.ones(3)), scale(torch.ones(4))

        def test_figures(torch_compiles):
            with torch_compiles:
                scale(torch.ones(3)), scale(torch.ones(4))
            assert torch_compiles.recompiles == 1
            assert "scale() at" in torch_compiles.reasons()
        """
    )
    result = pytester.runpytest_inprocess("--strict-markers")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*1 recompile, at most 0*"])
