"""Work of a region that shares no line with the other stance's, laid beside what computes it."""

from traceview.derive.origins.groups import with_leftovers


def row(stance, *ops, top=None, region="net", graph=None, backward=False):
    return {
        "stance": stance, "ops": [f"aten.{op}" for op in ops], "top": top, "holder": None,
        "region": region, "graph_key": graph, "is_backward": backward, "how": "line",
    }  # fmt: skip


def joined(*rows):
    """Which rows were given one key, by number, when every row has a key of its own."""
    keyed = with_leftovers(rows, [[("line", str(number))] for number in range(len(rows))])
    extra = [{key for key in mine if key[0] == "leftover"} for mine in keyed]
    return {(i, j) for i in range(len(rows)) for j in range(i) if extra[i] & extra[j]}


def test_the_same_operators_of_one_region_belong_together():
    eager, compiled = row("eager", "abs"), row("compiled", "abs", "mean", graph="f1")
    assert joined(eager, compiled) == {(1, 0)}
    assert (eager["how"], compiled["how"]) == ("operator", "operator")


def test_another_region_or_direction_is_no_partner():
    compiled = row("compiled", "abs", graph="f1")
    assert joined(row("eager", "abs", region="other"), compiled) == set()
    assert joined(row("eager", "abs", backward=True), compiled) == set()


def test_what_has_a_partner_already_takes_no_second_one():
    pair = [row("eager", "mm"), row("compiled", "mm", graph="f1")]
    again = row("eager", "mm")
    keyed = with_leftovers([*pair, again], [[("a",)], [("a",)], [("b",)]])
    assert keyed[2] == [("b",)]


def test_inside_an_operator_of_the_users_its_name_is_enough():
    pair = [row("eager", "limit"), row("compiled", "limit", graph="f1")]
    inside = row("eager", "reciprocal", top="limit")
    keyed = with_leftovers([*pair, inside], [[("a",)], [("a",)], [("b",)]])
    assert set(keyed[2]) & set(keyed[1])


def test_less_than_half_of_the_operators_is_not_enough():
    eager = [row("eager", op) for op in ("sin", "cos", "exp")]
    compiled = [row("compiled", op, graph="f1") for op in ("sin", "tan", "log")]
    keyed = with_leftovers([*eager, *compiled], [[("a",)]] * 3 + [[("b",)]] * 3)
    assert keyed == [[("a",)]] * 3 + [[("b",)]] * 3
