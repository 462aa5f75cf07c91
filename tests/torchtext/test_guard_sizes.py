"""Guards of torch 2.13 on sizes of parameters, and on numbers that were calculated with."""

import pytest

from traceview.torchtext.guards import parse_guard

HINT = (
    "Guard failed on a parameter, consider using "
    "torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters."
)


def test_advice_behind_the_values_is_no_value():
    text = f"0/0: tensor 'p' size mismatch at index 0. expected 96, actual 64. {HINT}"
    found = parse_guard(text)
    assert (found.kind, found.source_name, found.dim) == ("size", "p", 0)
    assert (found.old, found.new) == ("96", "64")
    assert "force_parameter_static_shapes" in found.guard


@pytest.mark.parametrize(
    ("text", "source", "old"),
    [
        ("self.temperature == 4.7", "self.temperature", "4.7"),
        ("(((0.1*self.temperature) / 5.0)) == 0.09409", "self.temperature", None),
        ("G['STEP'] % 4 == 0", "G['STEP']", None),
        ("d['a-b'] == 1", "d['a-b']", "1"),
        ("a + b == 3", "a + b", None),
    ],
)
def test_what_was_calculated_from_one_value_is_about_that_value(text, source, old):
    found = parse_guard(f"{text}  # y = x * s  # /u/train.py:9 in forward")
    assert (found.kind, found.source_name, found.old) == ("value", source, old)
    assert (found.user_file, found.user_line) == ("/u/train.py", 9)


def test_the_place_in_torch_that_set_a_number_is_read_without_its_bracket():
    place = "_dynamo/output_graph.py:3375 in remove_tensorify_specialized_graphargs"
    found = parse_guard(f"0/1: self.p == 0.5  # ({place})")
    assert (found.user_file, found.user_line) == ("_dynamo/output_graph.py", 3375)
    assert (found.source_name, found.old) == ("self.p", "0.5")


@pytest.mark.parametrize(
    ("hint", "source"),
    [
        ('(HINT: guard on "scale")', "scale"),
        ('(HINT: guard on "net".step, torch.compile considers integer attributes …)', "net.step"),
        ("", "fn.__closure__[0].cell_contents"),
    ],
)
def test_a_closed_over_variable_has_the_name_that_torch_hints_at(hint, source):
    text = f"fn.__closure__[0].cell_contents == 3  # y = x * s  # /u/train.py:9 in fn {hint}"
    assert parse_guard(text).source_name == source


@pytest.mark.parametrize(
    ("text", "source", "dim"),
    [
        ("2*L['x'].size()[1] < 4", "x", 1),
        ("L['a.b'].size()[0] >= L['y'].stride()[2]", "a.b", 0),
        ("L['x'].storage_offset() == 0", None, None),
    ],
)
def test_the_name_of_what_has_a_size_begins_where_its_letters_do(text, source, dim):
    found = parse_guard(f"0/1: {text}")
    assert (found.kind, found.source_name, found.dim) == ("shape_guard", source, dim)
