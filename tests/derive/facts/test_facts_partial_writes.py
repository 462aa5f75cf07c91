"""Which writes of a post-grad graph go through many more elements than they change."""

import pytest

from traceview.derive.facts.partial_writes import Write, tensors_made, wasteful_writes
from traceview.derive.facts.slice_gradients import Slices, added_slices, slice_gradients
from traceview.tables import Tables, from_rows
from traceview.torchtext.fx import read_graph
from traceview.torchtext.output_code import read_program

HEAD = 'def forward(self, book: "f32[1000, 64][64, 1]cpu", x: "f32[1000][1]cpu"):\n'
PLACE = "    # File: /u/a.py:{} in f, code: book[:, 3] = x\n"


def node(name, sizes, call):
    return f'    {name}: "f32[{sizes}][1]cpu" = torch.ops.aten.{call}\n'


def column(name, onto, at, line):
    """``onto[:, at] = x`` of ``line``."""
    copy = node(f"copy_{name}", "1000", f"copy.default(x, {line})")
    scatter = f"select_scatter.default({onto}, copy_{name}, 1, {at})"
    return PLACE.format(line) + copy + "\n" + node(name, "1000, 64", scatter)


def writes(*lines, returned=""):
    text = HEAD + "".join(lines) + f"    return ({returned},)\n"
    return list(wasteful_writes(read_graph(text)))


BACK = node("back", "1000, 64", "copy_.default(book, a)")


def test_a_column_of_an_input():
    assert writes(column("a", "book", 3, 7), BACK) == [
        Write(1, 64_000, 256_000, 1000, True, "/u/a.py:7")
    ]


def test_a_column_of_an_input_that_is_written_in_place_after_it():
    also = node("b", "1000, 64", "index_put_.default(a, [x], x)")
    back = BACK.replace("book, a", "book, b")
    assert writes(column("a", "book", 3, 7), also, back) == [
        Write(1, 64_000, 256_000, 1000, True, "/u/a.py:7")
    ]


def test_what_is_written_is_an_input_and_only_the_view_has_a_line():
    view = PLACE.format(7) + node("v", "1000", "select.int(book, 1, 3)") + "\n"
    put = node("a", "1000, 64", "select_scatter.default(book, x, 1, 3)")
    (write,) = writes(view, put, PLACE.format(8), BACK)
    assert (write.line, write.changed, write.to_input) == ("/u/a.py:7", 1000, True)


def test_rows_of_a_column_that_is_gone_through_whole():
    index = node("i", "20", "neg.default(x)") + node("j", "20", "abs.default(x)")
    view = node("v", "1000", "select.int(book, 1, 3)")
    put = node("p", "1000", "index_put.default(v, [i], j)")
    back = node("a", "1000, 64", "select_scatter.default(book, p, 1, 3)")
    (write,) = writes(PLACE.format(7), index, view, put, back, BACK)
    assert (write.changed, write.elements, write.through) == (20, 64_000, 1000)


@pytest.mark.parametrize(("place", "merged"), [("", True), (PLACE.format(5), False)])
def test_a_view_of_a_storage_that_inputs_share(place, merged):
    """AOTAutograd's own views have no line; the result is copied to another of these views."""
    view = node("v", "1000, 32", "as_strided.default(book, [1000, 32], [64, 1], 0)")
    put = node("a", "1000, 32", "index_put.default(v, [None, i], x)")
    index = node("i", "1000", "neg.default(x)")
    again = node("w", "1000, 32", "as_strided.default(book, [1000, 32], [64, 1], 0)")
    back = node("back", "1000, 32", "copy_.default(w, a)")
    (write,) = writes(place, view, "\n", PLACE.format(7), index, put, again, back)
    assert write == Write(1, 32_000, 128_000, 1000, True, "/u/a.py:7", merged)


def test_a_column_through_views():
    upright = node("t", "64, 1000", "permute.default(book, [1, 0])")
    again = node("u", "1000, 64", "permute.default(a, [1, 0])")
    back = BACK.replace("book, a", "book, u")
    (write,) = writes(upright, column("a", "t", 3, 7), again, back)
    assert (write.to_input, write.changed) == (True, 1000)


@pytest.mark.parametrize(("count", "found"), [(1, 0), (3, 0), (16, 1)])
def test_columns_of_a_new_tensor_one_after_another(count, found):
    new = node("out0", "1000, 64", "full.default([1000, 64], 0)")
    chain = [column(f"out{n + 1}", f"out{n}", n, 7) for n in range(count)]
    known = writes(new, *chain, returned=f"out{count}")
    assert len(known) == found
    for write in known:
        assert (write.writes, write.changed, write.to_input) == (16, 16_000, False)


def test_a_copy_with_one_column_replaced_is_needed():
    assert writes(column("a", "book", 3, 7), returned="a") == []


def test_a_large_part_and_a_size_that_is_a_symbol():
    part = node("p", "1000, 60", "mul.Tensor(book, 2)")
    scatter = node("a", "1000, 64", "slice_scatter.default(book, p, 1, 0, 60)")
    assert writes(PLACE.format(7), part, scatter, BACK) == []
    symbolic = column("a", "book", 3, 7).replace("1000, 64", "s0, 64")
    assert writes(symbolic, BACK) == []


MODULE = """
def call(args):
    arg0_1, = args
    args.clear()
    assert_size_stride(arg0_1, (8, 4), (4, 1))
    buf0 = empty_strided_cpu((8, 4), (4, 1), torch.float32)
    buf1 = empty_strided_cpu((8, 4), (4, 1), torch.float32)
    buf2 = empty_strided_cpu((8, ), (1, ), torch.float32)
    buf3 = empty_strided_cpu((8, 4), (4, 1), torch.float32)
    cpp_fused_select_scatter_0(arg0_1, buf0, buf1, buf2)
    buf4 = buf0; del buf0  # reuse
    cpp_fused_mul_1(buf4, buf3)
    return (buf1, buf2)
"""


def test_tensors_as_large_as_the_whole_that_a_kernel_writes_are_counted():
    (function,) = read_program(MODULE)
    assert tensors_made(function, "cpp_fused_select_scatter_0", 32) == [128, 128]
    assert tensors_made(function, "cpp_fused_mul_1", 32) == [128]
    assert tensors_made(function, "cpp_fused_mul_1", 64) == []


def sliced(count=12, *, op="select_scatter", zero="0", rest="", size="1000, 64", places=False):
    """A graph that adds gradients of columns of a tensor, which is sliced at line 7."""
    head = 'def forward(self, x: "f32[1000][1]cpu", w: "f32[1000, 60][60, 1]cpu"):\n'
    text = head + node("zeros", size, f"full.default([{size}], {zero}, dtype = torch.float32)")
    for n in range(count):
        place = PLACE.format(7) if places else "\n"
        part = f"{'w' if rest else 'x'}, 1, {n}{rest}"
        text += place + node(f"s{n}", size, f"{op}.default(zeros, {part})")
        if n:
            above = f"a{n - 1}" if n > 1 else "s0"
            text += PLACE.format(7) + node(f"a{n}", size, f"add.Tensor({above}, s{n})")
    return text + f"    return (a{count - 1},)\n"


def slices(*given, **how):
    return list(added_slices(read_graph(sliced(*given, **how))))


def test_gradients_of_columns_that_are_added():
    found = Slices(12, 64_000, 12_000, 1, True, ("/u/a.py:7",))
    assert slices() == slices(places=True) == [found]
    assert found.wasted == pytest.approx(1 - 1 / 64)


def test_other_sums_of_scatters():
    assert slices(zero="1") == []
    assert slices(3) == []
    assert slices(size="s0, 64") == []
    assert slices(op="slice_scatter", rest=", 60") == []  # each is most of it


def test_ranges_of_columns():
    text = 'def forward(self, x: "f32[1000, 4][4, 1]cpu"):\n'
    text += node("zeros", "1000, 64", "full.default([1000, 64], 0.0)")
    for n in range(8):
        text += node(f"s{n}", "1000, 64", f"slice_scatter.default(zeros, x, 1, {n}, {n + 4})")
    # Summed in pairs, one of them with something else.
    text += node("y", "1000, 64", "mul.Tensor(zeros, 2)") + node("a0", "1000, 64", "add(s0, y)")
    for n in range(1, 8):
        text += node(f"a{n}", "1000, 64", f"add.Tensor(s{n}, a{n - 1})")
    (found,) = added_slices(read_graph(text + "    return (a7,)\n"))
    assert found == Slices(8, 64_000, 32_000, 1, False, ())


#: A loop that chooses between four columns, and where it leaves the sum of their gradients.
CHOOSES = """
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0)
{
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(1000L); x0+=static_cast<int64_t>(1L))
        {
            for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(64L); x1+=static_cast<int64_t>(1L))
            {
                auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
TESTS
                out_ptr0[static_cast<int64_t>(WHERE)] = tmp0;
            }
        }
"""  # noqa: E501 - as torch writes it


@pytest.mark.parametrize(("where", "count"), [("x1 + 64L*x0", 1), ("x1", 0)])
def test_a_kernel_that_stores_the_sum_is_priced_and_one_that_reduces_it_is_not(where, count):
    source = CHOOSES.replace("WHERE", where)
    numbers = (f"auto tmp{n + 1} = static_cast<int32_t>({n});" for n in range(4))
    tests = (f"auto tmp{n + 9} = tmp8 == tmp{n + 1};" for n in range(4))
    source = source.replace("TESTS", "\n".join((*numbers, *tests)))
    at = {"pass": "cold", "compile_id": "0/0", "aot_id": "0_backward", "graph_key": "g"}
    origin = {**at, "compile_key": "k", "kernel_name": "cpp_0", "category": "cpp"}
    ran = {**at, "name": "cpp_0", "group_id": 0, "stance": "compiled", "ms": 8.0, "count": 1.0}
    steps = {"pass": "cold", "stance": "compiled", "step_ms": 20.0, "timed_step_ms": 10.0}
    graph = {**at, "compile_key": "k", "kind": "post_grad", "text": sliced(4)}
    given = {
        "generated_kernels": {**origin, "source_code": source, "user_lines": ["/u/a.py:7"]},
        "matched_kernels": {**ran, "category": "generated_pointwise", "clock": "host"},
        **{"graphs": graph, "step_counts": steps},
    }
    tables = Tables({name: from_rows(name, [row]) for name, row in given.items()})
    found = slice_gradients(tables)
    assert found["wasted_ms"].to_list() == pytest.approx([4.0 * (1 - 1 / 64)] * count)
    assert found["user_lines"].to_list() == [["/u/a.py:7"]] * count
