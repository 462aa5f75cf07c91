"""The sentence on fusion, dispatch and specialised code."""

from __future__ import annotations

from traceview.diagnosis.explanation import Effect
from traceview.diagnosis.kinds_of_speedup import kinds_of_speedup, largest_loss


def made(**effects):
    return [Effect(name, ms, None, None, "device", "derived") for name, ms in effects.items()]


def said(**effects):
    return kinds_of_speedup(made(**effects))


def test_the_largest_kind_comes_first_and_names_its_largest_effect():
    assert said(fusion=-0.30, launches_saved=-0.15, overheads_added=0.05, cudagraphs=-0.5) == (
        "Of the 0.900 ms saved, 0.500 ms come from specialised code (cudagraphs), 0.300 ms from "
        "fusion (fewer and shorter kernels) and 0.100 ms from dispatch (less launching)."
    )


def test_what_is_lost_again_and_what_lies_elsewhere_is_said():
    assert said(fusion=-1.0, overheads_added=0.2, other_idle=0.1) == (
        "Of the 0.700 ms saved, 1.00 ms come from fusion (fewer and shorter kernels); "
        "0.200 ms are lost to dispatch (overheads); 0.100 ms are lost to other causes."
    )


def test_a_slower_step_says_what_it_lost():
    assert said(fusion=0.002, library_choice=0.003, launches_saved=0.011, casts_saved=-0.001) == (
        "Of the 15.0 µs lost, 11.0 µs come from dispatch (longer launching), 3.00 µs from "
        "specialised code (slower library kernels) and 1.00 µs from fusion (slower kernels)."
    )
    assert said(launches_saved=0.3, fusion=-0.1) == (
        "Of the 0.200 ms lost, 0.300 ms come from dispatch (longer launching); 0.100 ms are saved "
        "by fusion (fewer and shorter kernels)."
    )


def test_what_is_unexplained_is_no_cause():
    assert said(fusion=-1.5, other_idle=-0.1, unexplained=-0.4) == (
        "Of the 2.00 ms saved, 1.50 ms come from fusion (fewer and shorter kernels); "
        "0.100 ms come from other causes; 0.400 ms are unexplained."
    )
    assert said(fusion=-1.5, unexplained=0.4).endswith("; 0.400 ms are lost and unexplained.")


def test_kinds_that_hardly_count_are_not_named():
    assert said(fusion=-1.0, library_choice=-0.01, unexplained=-0.01) == (
        "Of the 1.02 ms saved, 1.00 ms come from fusion (fewer and shorter kernels)."
    )


def test_nothing_is_said_where_most_is_unexplained_or_nothing_was_saved():
    assert said(fusion=-0.2, unexplained=-0.8) == ""
    assert said(fusion=-0.2, unexplained=0.5) == ""
    assert said() == ""


def test_the_largest_loss_is_no_remainder():
    assert largest_loss(made(launches_saved=0.2, fusion=0.1, unexplained=0.9)) == (
        "Most is lost to dispatch (longer launching): 0.200 ms."
    )
    assert largest_loss(made(fusion=-0.1, other_idle=0.3)) == ""
