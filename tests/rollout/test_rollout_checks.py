"""The checklist and the figures of processes that served, from events made by hand."""

from collections import Counter
from functools import partial

import jsonschema
import pytest
from served_events import (
    HITS,
    SETTINGS,
    USUAL,
    WARM,
    assessed,
    end,
    outputs,
    region,
    safe,
    served,
)  # fmt: skip

from traceview.contracts import text_of
from traceview.reports.rollout import html, markdown, terminal
from traceview.rollout import schema, to_json
from traceview.rollout.reading import latency

LIMIT = (
    "torch._dynamo hit config.recompile_limit (8) function: 'forward' (/srv/serve.py:25) last "
    "reason: 0/7: tensor 'ids' size mismatch at index 1."
)


@pytest.fixture
def made(tmp_path):
    """``made(...)``: the record; events of each process may be replaced."""
    return partial(assessed, tmp_path)


def check(record, name):
    return next(each for each in record.checks if each.name == name)


FILE = Counter({(("ids", (1, 32)), ("mask", (1, 32))): 9, (("ids", (1, 64)), ("mask", (1, 64))): 1})


class TestSafe:
    def test_every_check_passes(self, made, tmp_path):
        record = made(shapes=(tmp_path / "s.jsonl", FILE), own_cache=True)
        assert {each.name: each.passed for each in record.checks} == dict.fromkeys(
            ("outputs", "recompiles", "caches", "memory", "fallback", "shapes"), True
        )
        assert record.ready
        assert record.verdict == "Ready: all 6 checks passed"

    def test_figures(self, made):
        cold, _, eager = made().served
        assert (cold.calls, cold.warmup_calls, cold.shapes) == (102, 2, 2)
        assert (cold.first_ms, cold.warmup_seconds) == (900.0, pytest.approx(1.7))
        assert (cold.recompiles, cold.per_thousand) == (1, pytest.approx(1000 / 102))
        after = cold.after_warmup
        assert (after.p50_ms, after.p95_ms, after.p99_ms, after.max_ms) == (5.0, 10.0, 10.0, 10.0)
        assert eager.after_warmup.p50_ms == 10.0

    def test_every_form(self, made, tmp_path):
        record = made(shapes=(tmp_path / "s.jsonl", FILE))
        document = to_json(record)
        jsonschema.validate(document, schema())
        assert text_of(document)
        page = html(record)
        assert page.count("✓</span>") == 6
        assert "<svg" in page
        assert "✓ Outputs agree" in markdown(record)
        said = terminal(record, 80, color=False)
        assert said.startswith("Ready: all 6 checks passed")
        assert max(map(len, said.splitlines())) <= 80


class TestNotRecorded:
    def test_nothing_served_is_no_tick(self, made):
        record = made([], [], [], compared=())
        assert [each.passed for each in record.checks] == [None] * 6
        assert not record.ready
        assert record.verdict.startswith("Nothing failed: 0 of 6 checks passed; not recorded: ")
        assert "not recorded" in html(record)

    def test_few_calls_after_the_warm_up(self, made):
        few = [(32, 900.0, 1, WARM), *[(32, 1.0, 0, USUAL)] * 19]
        assert check(made([region(), *served(few), end()]), "recompiles").passed is None

    def test_one_call_alone_is_no_latency(self, made):
        record = made([region(), *served([(32, 900.0, 1, USUAL)]), end()])
        assert record.served[0].after_warmup.calls == 0
        assert "Tower, compiled, cold: –, –, –" in terminal(record, 80, color=False)
        assert html(record)

    def test_a_process_that_was_killed(self, made):
        killed = [region(), *served(safe())]
        record = made(killed, killed, killed)
        passed = {each.name: each.passed for each in record.checks}
        assert passed == {"outputs": True} | dict.fromkeys(
            ("recompiles", "caches", "memory", "fallback", "shapes")
        )
        assert "The cold process did not record its end (exit)." in record.notes

    def test_outputs_of_one_of_two_callables(self, made):
        batch = served(safe())
        other = [{**each, "region_id": 1} for each in batch if "region_id" in each]
        events = [region(), region(region_id=1, name="Head"), *batch, *other, end()]
        found = check(made(events), "outputs")
        assert found.passed is None
        assert "Head" in found.detail

    def test_damaged_rows_are_passed_over(self, made):
        batch = {"event": "served", "t": 1.0, "region_id": 0, "rows": [[0], "x", None, [1] * 9]}
        bad = {"event": "served_shape", "t": 1.0, "region_id": 0, "shape": 5, "tensors": [1]}
        lost = {"event": "served_way", "t": 1.0, "way": [1], "stack": {}}
        record = made([region(), batch, bad, lost, {**end(), "counters": "x"}])
        assert [row.process for row in record.served] == ["warm", "eager"]
        assert check(record, "recompiles").passed is None


class TestFailed:
    def test_outputs(self, made):
        found = check(made(compared=(outputs("differ"),)), "outputs")
        assert (found.passed, found.detail) == (
            False, "output of Tower differs from eager's, by up to 0.01",
        )  # fmt: skip

    @pytest.mark.parametrize("outcome", ["random", "rounding"])
    def test_explained_differences_pass_and_are_named(self, made, outcome):
        found = check(made(compared=(outputs(outcome),)), "outputs")
        assert found.passed
        assert "but for" in found.detail

    def test_a_late_compile(self, made):
        late = [*safe(), (48, 700.0, 1, USUAL)]
        record = made([region(), *served(late), end()])
        found = check(record, "recompiles")
        assert found.passed is False
        assert found.detail.startswith("1 of 101 calls after the warm-up waited for a compile")
        (cold, *_) = record.served
        assert (cold.after_warmup.max_ms, cold.without_compiles.max_ms) == (700.0, 10.0)

    def test_the_first_call_alone_is_warm_up_without_lines_of_its_own(self, made):
        calls = [(length, ms, compiles, USUAL) for length, ms, compiles, _ in safe()]
        record = made([region(), *served(calls), end()])
        assert record.served[0].warmup_calls == 1
        assert check(record, "recompiles").passed is False
        assert check(made([region(), *served(calls), end()], warmup=2), "recompiles").passed

    @pytest.mark.parametrize(
        "more", [{"graphs": 0}, {"limit_hits": ["hit config.recompile_limit"]}]
    )
    def test_outputs_of_eager_code_are_no_proof(self, made, more):
        served_so = [region(), *served(safe()), end(**more)]
        assert check(made(served_so), "outputs").passed is None
        wrong = check(made(served_so, compared=(outputs("differ"),)), "outputs")
        assert wrong.passed is False

    def test_the_recompile_limit(self, made):
        record = made([region(), *served(safe()), end(limit_hits=[LIMIT])])
        assert check(record, "recompiles").passed is False
        assert check(record, "fallback").passed is False
        said = "forward() at serve.py:25 hit torch._dynamo.config.recompile_limit (8)"
        assert check(record, "fallback").detail.startswith(said)

    @pytest.mark.parametrize(
        ("counters", "passed"),
        [
            (HITS, True),
            (HITS | {"fxgraph_cache_miss": 1}, False),
            (HITS | {"fxgraph_cache_bypass": 1}, False),
            (dict.fromkeys(HITS, 0), False),
            ({}, None),
        ],
    )
    def test_caches(self, made, counters, passed):
        record = made(warm=[region(), *served(safe()), end(counters=counters)])
        assert check(record, "caches").passed is passed

    def test_where_the_cache_is(self, made):
        assert "TORCHINDUCTOR_CACHE_DIR" in check(made(), "caches").detail
        assert "TORCHINDUCTOR_CACHE_DIR" not in check(made(own_cache=True), "caches").detail

    @pytest.mark.parametrize(
        ("device", "compiled", "eager", "limit", "passed"),
        [
            ("cpu", 1300, 400, None, True),
            ("cpu", 1500, 400, None, False),
            ("cpu", 10_900, 10_000, None, True),
            ("cuda:0", 1500, 400, None, False),
            ("cuda:0", 440, 400, None, True),
            ("cuda:0", 460, 400, None, True),
            ("cpu", 1500, 400, 1600, True),
            ("cpu", 1700, 1700, 1600, False),
            ("cpu", 1500, None, None, None),
        ],
    )
    def test_memory(self, made, device, compiled, eager, limit, passed):
        def mib(number):
            return None if number is None else number << 20

        compiles = [region(), *served(safe()), end(device=device, peak_bytes=mib(compiled))]
        other = [region(), *served(safe()), end(device=device, peak_bytes=mib(eager))]
        record = made(compiles, compiles, other, memory_limit=mib(limit))
        assert check(record, "memory").passed is passed

    @pytest.mark.parametrize(
        ("more", "fullgraph", "passed"),
        [
            ({}, False, True),
            ({}, True, False),
            ({"settings": SETTINGS | {"suppress_errors": False}}, False, False),
            ({"settings": SETTINGS | {"error_on_recompile": True}}, False, False),
            ({"settings": SETTINGS | {"fail_on_recompile_limit_hit": True}}, False, False),
            ({"stance": "fail_on_recompile"}, False, False),
            ({"stance": "eager_on_recompile", "settings": {"suppress_errors": False}}, True, True),
            ({"settings": {}}, False, None),
            ({"stance": None}, False, None),
            ({"limit_hits": None}, False, None),
        ],
    )
    def test_fallback(self, made, more, fullgraph, passed):
        record = made([region(fullgraph=fullgraph), *served(safe()), end(**more)])
        assert check(record, "fallback").passed is passed


class TestCoverage:
    @staticmethod
    def of(made, lengths, asked, names=("ids", "mask"), **more):
        """Coverage of ``asked`` lengths after calls of ``lengths``: pairs of length, compiles."""
        calls = [(length, 1.0, compiles, USUAL) for length, compiles in lengths]
        file = Counter({tuple((name, (1, n)) for name in names): 1 for n in asked})
        record = made([region(), *served(calls), end(**more)], shapes=("s.jsonl", file))
        coverage = record.traffic[-1].coverage
        return coverage.seen, coverage.dynamic, check(record, "shapes").passed

    STATIC = ((32, 1), (64, 1), (32, 0))
    DYNAMIC = ((32, 1), (64, 1), (48, 0), (96, 0))

    def test_static_sizes_cover_themselves(self, made):
        assert self.of(made, self.STATIC, (32, 64)) == (1.0, 0.0, True)
        assert self.of(made, self.STATIC, (32, 48)) == (0.5, 0.0, False)

    def test_a_dynamic_size_covers_its_range(self, made):
        assert self.of(made, self.DYNAMIC, (32, 50)) == (0.5, 0.5, True)
        assert self.of(made, self.DYNAMIC, (97,)) == (0.0, 0.0, False)

    def test_what_ran_in_eager_is_no_proof(self, made):
        hit = {"limit_hits": ["hit config.recompile_limit"]}
        assert self.of(made, self.DYNAMIC, (48, 50), **hit) == (0.0, 0.0, False)
        settled = {"stance": "eager_on_recompile"}
        assert self.of(made, self.DYNAMIC, (48, 32), **settled) == (0.5, 0.0, False)

    def test_sizes_that_were_equal_have_to_be(self, made):
        calls = [(length, 1.0, compiles, USUAL) for length, compiles in self.DYNAMIC]
        file = Counter(
            {(("ids", (1, 50)), ("mask", (1, 51))): 1, (("ids", (2, 50)), ("mask", (2, 50))): 1}
        )
        record = made([region(), *served(calls), end()], shapes=("s.jsonl", file))
        assert record.traffic[-1].coverage.dynamic == 0.0
        assert len(record.traffic[-1].coverage.missing) == 2

    def test_without_names_the_order_counts(self, made):
        assert self.of(made, self.STATIC, (32,), names=("argument 0", "argument 1"))[0] == 1.0
        assert self.of(made, self.STATIC, (32,), names=("mask", "ids"))[0] == 1.0
        assert self.of(made, self.STATIC, (32,), names=("ids", "other"))[0] == 0.0


def test_device_time_is_the_calls(made):
    cold = made([region(), *served(safe(), device=True), end()]).served[0]
    assert (cold.clock, cold.first_ms) == ("device", 901.0)


def test_percentiles_are_times_of_calls():
    found = latency(float(n) for n in range(1, 201))
    assert (found.p50_ms, found.p95_ms, found.p99_ms, found.max_ms) == (100, 190, 198, 200)
    assert latency([]).p50_ms is None


def test_a_page_escapes_what_others_wrote(made):
    record = made([region(name="<b>x</b>"), *served(safe()), end(limit_hits=["<i>no</i>"])])
    page = html(record)
    assert "<b>x" not in page
    assert "<i>no" not in page
