"""What differs between the cache keys of two ranks, or of two starts."""

import pytest
from job_rows import compiled, component, job, looked

from traceview.derive.job import job_tables

AUTOTUNE = "inductor_config[max_autotune]"
INPUT = "example_inputs[0]"


def differences(**rows_by_table):
    return job_tables(job(**rows_by_table))["cache_key_differences"].to_dicts()


def two(rank, hits=True, **components):
    """One look-up of a rank with those components; the key is what they are."""
    line = 10
    event = "hit" if hits else "miss"
    rows = [component(rank, name, value, line) for name, value in components.items()]
    return looked(rank, event, str(sorted(components.items())), line=line), rows


def asked(*ranks, **tables):
    """Look-ups and components of ``two``; a miss compiles for 30 s and a hit for 2."""
    events = [event for event, _ in ranks]
    compiles = [compiled(e["rank"], 0, 2 if e["event"] == "hit" else 30) for e in events]
    rows = [row for _, found in ranks for row in found]
    return differences(
        compiles=tables.pop("compiles", compiles), cache_events=events, cache_components=rows,
        **tables,
    )  # fmt: skip


SAME = {"gm": "graph", INPUT: "size=[8]"}


def test_a_setting_that_differs_is_named_with_both_values():
    others = [two(rank, **SAME, **{AUTOTUNE: "False"}) for rank in range(4)]
    usual, odd = asked(*others, two(17, hits=False, **SAME, **{AUTOTUNE: "True"}))
    assert (usual["component"], usual["kind"], usual["between"]) == (AUTOTUNE, "settings", "ranks")
    assert (usual["ranks"], usual["outcome"], usual["value"]) == ("0-3", "hit", "False")
    assert (odd["ranks"], odd["outcome"], odd["value"]) == ("17", "miss", "True")
    assert odd["seconds"] == 28
    assert odd["functions"] == ["/u/net.py:7"]


def test_the_same_key_with_a_miss_is_another_folder():
    usual, odd = asked(*(two(rank, **SAME) for rank in range(4)), two(17, hits=False, **SAME))
    assert (odd["component"], odd["kind"], odd["ranks"]) == (None, "folder", "17")
    assert (usual["ranks"], odd["seconds"]) == ("0-3", 28)


def test_a_rank_that_came_first_and_whose_code_the_others_found_is_left_out():
    first, later = two(0, hits=False, **SAME), [two(rank, **SAME) for rank in (1, 2)]
    compiles = [compiled(0, 0, 30), compiled(1, 31, 2), compiled(2, 31, 2)]
    assert asked(first, *later, compiles=compiles) == []


def test_another_graph_is_the_caches_affair_only_where_it_missed():
    here, there = {"gm": "graph a", INPUT: "size=[8]"}, {"gm": "other b", INPUT: "size=[8]"}
    assert asked(two(0, **here), two(1, **there)) == []
    assert asked(two(0, hits=False, **here), two(1, hits=False, **there)) == []
    _, odd = asked(two(0, **here), two(1, **here), two(2, hits=False, **there))
    assert (odd["component"], odd["kind"], odd["ranks"]) == ("gm", "graph", "2")


def test_where_only_sizes_differ_the_input_says_so():
    here = {"gm": "view [768, 64]", INPUT: "shape=[16, 48]"}
    there = {"gm": "view [512, 64]", INPUT: "shape=[16, 32]"}
    _, odd = asked(two(0, **here), two(1, **here), two(2, hits=False, **there))
    assert (odd["component"], odd["kind"], odd["value"]) == (INPUT, "inputs", "shape=[16, 32]")


def test_the_index_of_a_device_is_no_difference():
    def on(rank, hits=True, **more):
        return two(rank, hits, gm="graph", **{INPUT: f"device(type='cuda', index={rank})"}, **more)

    assert asked(on(0), on(1), on(2)) == []
    # A miss by a key that differs in nothing else: its cache did not hold the graph.
    found = asked(on(0), on(1), on(2, hits=False))
    assert {(row["kind"], row["component"]) for row in found} == {("folder", None)}
    found = asked(on(0, **{AUTOTUNE: "False"}), on(1, hits=False, **{AUTOTUNE: "True"}))
    assert {row["component"] for row in found} == {AUTOTUNE}


def test_keys_without_components_differ_for_a_reason_that_is_not_known():
    found = differences(
        compiles=[compiled(0, 0, 2), compiled(1, 0, 30)],
        cache_events=[looked(0, "hit", "a"), looked(1, "miss", "b")],
    )
    assert {(row["kind"], row["component"]) for row in found} == {("unknown", None)}


def test_a_look_up_whose_record_was_cut_off_is_not_compared():
    found = differences(
        compiles=[compiled(0, 0, 2), compiled(1, 0, 30)],
        cache_events=[looked(0, "hit", "a"), looked(1, "miss", None)],
    )
    assert found == []


def test_only_what_changed_is_kept_of_a_processs_later_look_ups():
    """The second key of a rank has the settings of its first, though no row repeats them."""
    first = {"compiles": [], "cache_events": [], "cache_components": []}
    for rank, value in ((0, "False"), (1, "True")):
        hit = "hit" if rank == 0 else "miss"
        first["compiles"] += [compiled(rank, 0, 2), compiled(rank, 40, 9, "1/0", co_firstlineno=50)]
        first["cache_events"] += [
            looked(rank, "miss", f"one{rank}"), looked(rank, hit, f"two{rank}", "1/0", line=20),
        ]  # fmt: skip
        first["cache_components"] += [
            component(rank, "gm", "graph"), component(rank, AUTOTUNE, value),
            component(rank, "gm", "another", line=20),
        ]  # fmt: skip
    usual, odd = differences(**first)
    assert (usual["component"], usual["value"], odd["value"]) == (AUTOTUNE, "False", "True")
    assert odd["functions"] == ["/u/net.py:50", "/u/net.py:7"]
    assert (odd["compiles"], odd["outcome"]) == (2, "miss")


@pytest.mark.parametrize("count", [2, 9])
def test_a_new_torch_changes_many_settings_and_the_version_comes_first(count):
    settings = {f"inductor_config[setting{n}]": "0" for n in range(count)}
    old = {**SAME, **settings, "torch_version": "\x00\x01�old"}
    new = {**SAME, **dict.fromkeys(settings, "1"), "torch_version": "\x00\x01�new"}
    found = asked(two(0, **old), two(1, hits=False, **new))
    assert found[0]["component"] == "torch_version"
    assert found[0]["value"] is None  # a hash of torch's sources: no text
    assert len(found) // 2 == min(count + 1, 5)


def starts(second_key, second_value, before="miss"):
    jobs = [
        {"pass": "logs.2", "job": 1, "attempt": 1},
        {"pass": "logs", "job": 1, "attempt": 2},
    ]
    inductor = {"dynamo_us": 30e6, "aot_us": 29e6, "inductor_us": 25e6, "codegen_us": 20e6}
    rows = {"compiles": [], "cache_events": [], "cache_components": []}
    for name, event, key, value in (
        ("logs.2", before, "k", "False"),
        ("logs", "miss", second_key, second_value),
    ):
        rows["compiles"].append({**compiled(0, 0, 30, **inductor), "pass": name})
        rows["cache_events"].append({**looked(0, event, key), "pass": name})
        rows["cache_components"].append({**component(0, AUTOTUNE, value), "pass": name})
    return differences(jobs=jobs, **rows)


def test_a_second_start_that_misses_what_the_first_made():
    usual, odd = starts("other", "True")
    assert (odd["between"], odd["component"], odd["side_pass"]) == ("attempts", AUTOTUNE, "logs")
    assert (usual["side_pass"], usual["value"], odd["value"]) == ("logs.2", "False", "True")
    assert odd["seconds"] == 25  # Inductor's part, which a hit would have saved


def test_a_second_start_by_the_same_key_lost_its_cache():
    _, odd = starts("k", "False")
    assert (odd["between"], odd["kind"], odd["component"]) == ("attempts", "folder", None)


def test_what_the_first_start_did_not_make_the_second_can_not_find():
    assert starts("other", "True", before="bypass") == []
