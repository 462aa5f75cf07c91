"""Payloads read by themselves: a text or its bytes in, plain values out."""

import json

import msgspec
import pytest

from traceview.parse.payloads import CUT_MARK, clipped
from traceview.parse.payloads.metrics import Event, dynamo_row, event
from traceview.parse.payloads.module import Module, Traces, module, traces
from traceview.parse.payloads.readers import Told, told

TORCH = "/x/lib/python3.11/site-packages/torch"
# As Dynamo and the post-grad passes print them (torch/fx/graph.py), shortened.
GRAPH = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8]"):
        l_x_ = L_x_

         # File: /home/me/train.py:7 in step, code: y = x.sin()
        sin: "f32[8]" = l_x_.sin();  l_x_ = None
        y = sin + 1;  sin = None

        late: "f32[8]" = y * 2

         # File: {TORCH}/nn/functional.py:9 in relu, code: return torch.relu(x)
        relu = torch.relu(late)

        # File: /home/me/train.py:8 in step, code: y += 1  # File: /home/me/other.py:1 in f
        y += relu;  iadd: "f32[8]" = y;  y = relu = None
        return (iadd,)
"""
CODE = """\
# AOT ID: ['3_backward']
# kernel path: /cache/ab/cabc.py
# Topologically Sorted Source Nodes: [sin, add], Original ATen: [aten.sin, aten.add]
triton_poi_fused_add_sin_0 = async_compile.triton('triton_poi_fused_add_sin_0', '''
source
''', device_str='cuda')

def call(args):
    # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]
    # [Provenance debug handles] extern_kernels.addmm:4
    extern_kernels.addmm(arg0_1, buf0, out=buf1)
    triton_poi_fused_add_sin_0.run(buf1, 8, stream=stream0)
    extern_kernels.addmm(arg0_1, extern_kernels.mm(buf1, buf2), out=buf1)
"""


def test_a_module_tells_its_id_its_kernels_and_every_call():
    found = module(CODE)
    assert found.aot_id == "3_backward"
    triton, addmm, mm = found.kernels
    assert (triton.category, triton.kernel_path) == ("pointwise", "/cache/ab/cabc.py")
    assert (triton.fused_ops, triton.source_nodes) == (["aten.sin", "aten.add"], ["sin", "add"])
    assert triton.source_code == "\nsource\n"
    assert [addmm.launch_sites, mm.launch_sites, triton.launch_sites] == [2, 1, 1]
    assert [(call.order, call.kernel_name, call.handle) for call in found.calls] == [
        (0, "extern_kernels.addmm", 4),
        (1, "triton_poi_fused_add_sin_0", None),
        (2, "extern_kernels.addmm", None),
        (3, "extern_kernels.mm", None),
    ]
    assert found.calls[0].ops == ["aten.addmm"]
    assert found.calls[1].ops == ["aten.sin", "aten.add"]  # from its definition
    assert found.calls[2].ops == []


def test_an_id_without_quotes_is_one_too_and_code_may_have_none():
    assert module("# AOT ID: [0_inference]\n").aot_id == "0_inference"
    assert module("import torch\n") == Module(None, [], [])


def test_stacks_name_lines_of_calls_and_of_kernels():
    def stack(line):
        return (
            f'File "/home/me/train.py", line {line}, in step\n    y = x\n'
            f'File "{TORCH}/nn/functional.py", line 9, in relu\n    return x'
        )

    found = traces({"k:1": [stack(7), stack(8)], "k:2": [stack(8)], "alone": "no list"})
    assert found.by_kernel == {"k": ["/home/me/train.py:7", "/home/me/train.py:8"], "alone": []}
    assert found.by_handle == {
        "k:1": ["/home/me/train.py:7", "/home/me/train.py:8"],
        "k:2": ["/home/me/train.py:8"],
        "alone": [],
    }


def test_a_long_payload_is_cut_with_a_mark():
    assert clipped(b"abc", limit=3) == "abc"
    assert clipped("abü".encode(), limit=3) == "ab\N{REPLACEMENT CHARACTER}" + CUT_MARK
    with pytest.raises(UnicodeDecodeError):
        clipped(b"a\xff")
    assert clipped(b"a\xff", "replace") == "a\N{REPLACEMENT CHARACTER}"


def test_an_event_tells_its_name_its_phase_and_its_time():
    payload = b'{"name": "dynamo", "ph": "B", "ts": 17.5, \t"args": {"a": [1]}, "cat": "x"}'
    assert event(payload) == Event("dynamo", "B", 17.5)


def test_a_number_of_hundreds_of_digits_is_left_out():
    row = dynamo_row(b'{"args": {"guard_latency_us": %s, "co_name": "f"}}' % (b"9" * 400))
    assert row == {"co_name": "f"}


@pytest.mark.parametrize(
    ("kind", "payload", "read"),
    [
        ("chromium_event", b'{"name": "n", "ph": "E", "ts": 1}', Event),
        ("inductor_output_code", CODE.encode(), Module),
        (
            "inductor_provenance_tracking_kernel_stack_traces",
            json.dumps({"k:1": []}).encode(),
            Traces,
        ),
    ],
)
def test_what_is_told_ahead_survives_being_sent(kind, payload, read):
    found = told(kind, payload)
    assert isinstance(found, read)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Told) == found


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("inductor_post_grad_graph", GRAPH.encode()),
        ("chromium_event", b'{"name": "n", "ph": "E"}'),
        ("chromium_event", b""),
        ("inductor_output_code", b"\xff"),
        ("inductor_provenance_tracking_kernel_stack_traces", b"[]"),
        ("inductor_provenance_tracking_kernel_stack_traces", b'{"a": ' * 2_000),
    ],
)
def test_nothing_is_told_of_other_kinds_and_of_damage(kind, payload):
    assert told(kind, payload) is None
