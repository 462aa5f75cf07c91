"""A post-mortem of a recorded job names every cause that was planted in it, and nothing else of
its kind."""

import re

import pytest
from recorded_jobs import INDEX, JOBS, diagnosis, planted

RESTARTED, TWO = planted("restarted"), planted("two_jobs")


@pytest.fixture(scope="module")
def restarted():
    return diagnosis("restarted").job


@pytest.fixture(scope="module")
def two_jobs():
    return diagnosis("two_jobs").job


def test_every_archive_is_in_the_index_with_how_it_was_made():
    assert {path.name.removesuffix(".tar.xz") for path in JOBS.glob("*.tar.xz")} == set(INDEX)
    for name, entry in INDEX.items():
        assert entry["command"] == f"python fixtures/jobs/record.py {name}"
        assert entry["bytes"] == (JOBS / f"{name}.tar.xz").stat().st_size
        assert entry["torch"]
        assert entry["device"] == "cpu"


def test_both_attempts_are_told_apart_and_the_last_is_shown(restarted):
    assert [row.attempt for row in restarted.attempts] == [1, 2]
    assert len({row.job for row in restarted.attempts}) == 1
    assert [row.shown for row in restarted.attempts] == [False, True]
    assert [row.ranks.count for row in restarted.attempts] == [4, 4]
    assert restarted.attempt.attempt == RESTARTED["straggler"]["attempt"]


def test_the_sentence_names_the_straggler_and_the_component_of_its_key(restarted):
    said = RESTARTED["straggler"]
    assert f"rank {said['rank']} alone" in restarted.sentence
    assert f"inductor_config[{said['setting']}]" in restarted.sentence


def test_the_straggler_is_one_rank_with_its_reason(restarted):
    assert [row.rank for row in restarted.stragglers] == ["rank 2"]
    assert RESTARTED["straggler"]["setting"] in restarted.stragglers[0].why
    assert restarted.compile.most_rank == "rank 2"
    assert restarted.compile.most_seconds > 2 * restarted.compile.median_seconds


def test_the_key_differs_in_that_setting_and_both_values_are_told(restarted):
    name = f"inductor_config[{RESTARTED['straggler']['setting']}]"
    found = [row for row in restarted.caches.differences if row.component == name]
    between = [row for row in found if row.between == "ranks"]
    assert between
    values = {side.ranks.text: (side.value, side.outcome) for side in between[0].sides}
    assert values["rank 2"] == ("0", "miss")
    assert values["ranks 0–1 and 3"] == ("None", "hit")


def test_only_that_setting_differs_between_ranks(restarted):
    assert [row.name for row in restarted.configs] == [RESTARTED["straggler"]["setting"]]


def test_misses_are_the_stragglers_alone(restarted):
    misses = {row.rank: row.misses for row in restarted.ranks}
    assert misses["rank 2"] > 0
    assert [misses[f"rank {rank}"] for rank in (0, 1, 3)] == [0, 0, 0]


def test_the_other_shape_is_a_recompile_of_that_rank_alone(restarted):
    size = [str(length) for length in RESTARTED["other_shape"]["size"]]
    chains = {chain.ranks.text: chain for chain in restarted.recompiles}
    mine = [(link.old, link.new) for link in chains["rank 3"].links if link.source_name == "x"]
    assert mine == [tuple(size)]
    others = [chain for text, chain in chains.items() if text != "rank 3"]
    assert not any(link.source_name == "x" for chain in others for link in chain.links)


def test_the_other_shape_makes_ranks_diverge(restarted):
    told = [row for row in restarted.divergences if row.name.startswith("forward")]
    assert any("rank 3" in (group.ranks.text for group in row.groups) for row in told)


def test_every_rank_whose_log_reaches_that_far_recompiles_for_noise(restarted):
    found = [
        chain for chain in restarted.recompiles
        if any((link.source_name or "").endswith("noise") for link in chain.links)
    ]  # fmt: skip
    assert sum(chain.ranks.count for chain in found) >= 3  # the log of rank 1 is cut off


def test_the_late_recompile_is_told_with_its_step_and_cause(restarted):
    truth = RESTARTED["late"]
    assert [row.first_step for row in restarted.late.rows] == [truth["step"]]
    assert restarted.late.rows[0].name.removesuffix("()") == truth["function"]
    assert truth["source"] in restarted.late.rows[0].cause
    assert restarted.late.rows[0].ranks.count == len(truth["ranks"])


def test_the_failure_of_the_first_attempt_has_its_user_frame(restarted):
    truth = RESTARTED["failure"]
    found = [row for row in restarted.failures if row.outcome == "failed"]
    assert [(row.function or row.name).removesuffix("()") for row in found] == [truth["function"]]
    assert found[0].file.endswith(truth["file"])
    assert found[0].line == truth["line"]
    assert found[0].fail_type == truth["fail_type"]
    assert found[0].ranks.text == f"rank {truth['rank']}"
    assert [row.failures for row in restarted.attempts] == [1, 0]


def test_the_cut_off_compile_is_unfinished_and_no_failure(restarted):
    found = [row for row in restarted.failures if row.outcome == "unfinished"]
    assert [row.ranks.text for row in found] == ["rank 1"]


def test_both_cut_files_are_told_of_by_name():
    found = diagnosis("restarted")
    damaged = {row.file for row in found.reading.rows}
    assert any("rank_1" in name for name in damaged)
    assert any("worker1" in name for name in damaged)
    assert len(damaged) == 2
    read = {row.name: row for row in found.job.files}
    assert {name for name, row in read.items() if row.damaged or row.error} == damaged
    assert len(read) == 11


def test_two_jobs_in_one_folder_are_two(two_jobs):
    assert len({row.job for row in two_jobs.attempts}) == TWO["jobs"]
    assert [row.ranks.count for row in two_jobs.attempts] == [2, 2]
    assert sum(row.shown for row in two_jobs.attempts) == 1


def test_a_file_without_rank_suffix_has_its_rank_from_later_records(two_jobs):
    assert [row.rank for row in sorted(two_jobs.ranks, key=lambda row: row.rank)] == [
        "rank 0", "rank 1",
    ]  # fmt: skip
    names = [row.name for row in two_jobs.files if row.kind == "structured"]
    assert sum("_rank_" not in name for name in names) == 2
    known = {row.name: row.ranks.text for row in two_jobs.files if row.kind == "structured"}
    assert sorted(known.values()) == ["rank 0", "rank 0", "rank 1", "rank 1"]


def test_the_break_is_on_one_rank_and_its_line(two_jobs):
    truth = TWO["break_on_one_rank"]
    assert {row.ranks.text for row in two_jobs.breaks} == {f"rank {truth['rank']}"}
    assert {row.line for row in two_jobs.breaks} == {truth["line"]}
    assert not any(row.everywhere for row in two_jobs.breaks)


def test_collectives_in_another_order_are_told_of(two_jobs):
    found = [row for row in two_jobs.divergences if row.kind == "collectives"]
    assert [row.name.removesuffix("()") for row in found] == [
        TWO["order_of_collectives"]["function"]
    ]
    assert [group.ranks.text for group in found[0].groups] == ["rank 0", "rank 1"]


def test_prefixed_lines_of_the_text_log_are_read(two_jobs):
    texts = [row for row in two_jobs.files if row.kind in ("textlog", "stderr")]
    assert len(texts) == 1
    assert not texts[0].error


def test_no_recorded_job_makes_a_rule_speak_of_time_it_did_not_measure():
    said = [finding.title for name in INDEX for finding in diagnosis(name).findings]
    assert not [title for title in said if re.search(r"of a compiled step", title)]


@pytest.mark.parametrize(("name", "shown"), [("restarted", "attempt 2"), ("two_jobs", "job 1")])
def test_findings_and_sections_are_about_one_start_which_a_note_names(name, shown):
    found = diagnosis(name)
    (note,) = [text for text in found.notes if text.startswith("Findings and sections are about")]
    assert shown in note
    assert "1 other start in these logs recorded 1 recompile." in note
    lines = {(site.file, site.line) for site in found.graph_breaks}
    broken = [each for each in found.findings if each.code in ("TV101", "TV103")]
    assert all((each.location.file, each.location.line) in lines for each in broken)
