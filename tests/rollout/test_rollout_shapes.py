"""Files of shapes, what varies in them, and buckets."""

import itertools
import json
import random
from collections import Counter

import pytest

from traceview.errors import UsageError
from traceview.rollout import shapes as module
from traceview.rollout.shapes import buckets, ladder, read_shapes, varying


def added(sizes, weights, chosen):
    """Elements that padding adds, counted call by call."""
    return sum(
        number * (next(bucket for bucket in chosen if bucket >= size) ** power - size**power)
        for size, weight in zip(sizes, weights, strict=True)
        for power, number in weight.items()
    )


class TestBuckets:
    def test_no_other_choice_pads_less(self):
        rng = random.Random(0)
        for _ in range(300):
            sizes = sorted(rng.sample(range(60), rng.randint(1, 8)))
            powers = rng.choice([(1,), (2,), (1, 2)])
            weights = [{power: rng.choice([0, 1, 2, 50]) for power in powers} for _ in sizes]
            most = rng.randint(1, 5)
            chosen = buckets(sizes, weights, most)
            every = (
                sorted((*inner, sizes[-1]))
                for number in range(min(most, len(sizes)))
                for inner in itertools.combinations(sizes[:-1], number)
            )
            assert len(chosen) <= most
            least = min(added(sizes, weights, other) for other in every)
            assert added(sizes, weights, chosen) == least

    def test_a_common_size_gets_its_own(self):
        assert buckets([10, 90, 100], [{1: 1}, {1: 1000}, {1: 1}], 2) == [90, 100]
        assert buckets([10, 90, 100], [{1: 1000}, {1: 1}, {1: 1}], 2) == [10, 100]


def call(length, batch=1):
    return (("ids", (batch, length)), ("mask", (batch, length, length)))


class TestVarying:
    def test_sizes_that_are_always_equal_are_one(self):
        found = varying(Counter({call(5): 3, call(9): 1}))
        (dimension,) = found.dimensions()
        assert dimension.where == ("ids[1]", "mask[1]", "mask[2]")
        assert dimension.sizes == ((5, 3), (9, 1))
        assert found.left_out == 0

    def test_a_square_counts_as_one(self):
        (one, two) = ladder(varying(Counter({call(5): 3, call(9): 1})))
        assert (one.graphs, one.buckets) == (1, {"ids[1]": (9,)})
        assert one.padding == pytest.approx(1 - (3 * 30 + 90) / (4 * 90))
        assert (two.graphs, two.padding) == (2, 0.0)

    def test_two_dimensions_share_the_graphs(self):
        calls = Counter({call(s, b): 1 for s in (8, 16, 24, 32) for b in (2, 4)})
        rungs = ladder(varying(calls))
        assert [rung.graphs for rung in rungs] == [1, 2, 3, 4, 6, 8]
        assert rungs[-1].padding == 0.0
        assert rungs[-1].buckets == {"ids[0]": (2, 4), "ids[1]": (8, 16, 24, 32)}
        assert [rung.padding for rung in rungs] == sorted((r.padding for r in rungs), reverse=True)

    def test_other_tensors_are_left_out(self):
        found = varying(Counter({call(5): 3, call(6): 2, (("ids", (1, 5)),): 4}))
        assert found.left_out == 4
        assert sum(found.calls.values()) == 5

    def test_one_shape_varies_in_nothing(self):
        found = varying(Counter({call(5): 3}))
        assert found.dimensions() == ()
        assert ladder(found) == ()

    def test_dynamic_graphs_keep_zero_and_one_apart(self):
        found = varying(Counter({call(n): 1 for n in (0, 1, 2, 7, 90)}))
        assert found.dynamic_graphs() == 3


class TestFile:
    @staticmethod
    def write(tmp_path, *lines):
        path = tmp_path / "shapes.jsonl"
        path.write_bytes(b"\n".join(x if isinstance(x, bytes) else x.encode() for x in lines))
        return path

    def test_every_form(self, tmp_path):
        lines = ['{"ids": [1, 5]}', "[[1, 5], [2]]", "[1, 5]", "", "[1, 5]\r", "[[]]"]
        lines.append('{"shapes": {"ids": [1, 5]}, "count": 40}')
        found = read_shapes(self.write(tmp_path, *lines))
        assert found == {
            (("ids", (1, 5)),): 41,
            (("argument 0", (1, 5)), ("argument 1", (2,))): 1,
            (("argument 0", (1, 5)),): 2,
            (("argument 0", ()),): 1,
        }

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("{", "it is not JSON"),
            ("[" * 5000, "it is not JSON"),
            (b"\xff\xfe", "it is not JSON"),
            ("[NaN]", "the sizes nan"),
            ("17", "neither an array nor an object"),
            ("[]", "0 tensors"),
            ('{"ids": [1, -5]}', "ids has the sizes [1, -5]"),
            ('{"ids": [true]}', "ids has the sizes [True]"),
            ('{"ids": [1.5]}', "ids has the sizes [1.5]"),
            ('{"ids": "x"}', "ids has the sizes x"),
            (f"[[{10**12}, {10**12}]]", "has the sizes"),
            (f"[{'9' * 5000}]", "line 2"),
            (json.dumps([[1]] * 65), "65 tensors"),
            (json.dumps([[1] * 17]), "has the sizes"),
            ('{"shapes": [1], "count": 0}', "count is 0"),
            ('{"shapes": [1], "count": 1e9}', "count is 1000000000.0"),
            ("[" + " " * (1 << 16) + "1]", "longer than 65,536 bytes"),
        ],
    )
    def test_what_is_none_names_its_line(self, tmp_path, line, why):
        path = self.write(tmp_path, "[1, 5]", line)
        with pytest.raises(UsageError) as error:
            read_shapes(path)
        assert ", line 2: " in error.value.fact
        assert why in error.value.fact
        assert len(error.value.fact) < 400

    def test_bounds(self, tmp_path, monkeypatch):
        monkeypatch.setattr(module, "MOST_DISTINCT", 3)
        with pytest.raises(UsageError, match=r"line 4: more than 3 different shapes"):
            read_shapes(self.write(tmp_path, *(f"[{n}]" for n in range(5))))
        monkeypatch.setattr(module, "MOST_LINES", 2)
        with pytest.raises(UsageError, match=r"line 3: more than 2 lines"):
            read_shapes(self.write(tmp_path, "[1]", "[1]", "[1]"))

    def test_empty(self, tmp_path):
        with pytest.raises(UsageError, match="has no shapes"):
            read_shapes(self.write(tmp_path, "", " "))
