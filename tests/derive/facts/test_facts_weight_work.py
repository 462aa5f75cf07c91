"""What is computed of weights alone, and attention in steps, read from graphs."""

from traceview.derive.facts.attention import Attention, Repeated, in_steps, repeated
from traceview.derive.facts.weight_work import made_of_weights, weights_of
from traceview.torchtext.fx import read_graph

DYNAMO = """
    def forward(self, L_x_: "f32[2, 8][8, 1]cpu",
        L_self_modules_a_parameters_g_: "f32[8, 1][1, 1]cpu",
        L_self_modules_a_buffers_table_: "f32[8, 8][8, 1]cpu"):
        l_x_ = L_x_
"""
LOWERED = """
    def forward(self, arg0_1: "f32[2, 8][8, 1]cpu", arg1_1: "f32[8, 1][1, 1]cpu",
        arg2_1: "f32[8, 8][8, 1]cpu"):
        pow_1: "f32[8, 8][8, 1]cpu" = torch.ops.aten.pow.Tensor_Scalar(arg2_1, 2)
        mul: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mul.Tensor(pow_1, arg1_1)
        mm: "f32[2, 8][8, 1]cpu" = torch.ops.aten.mm.default(arg0_1, mul)
        full: "f32[8][1]cpu" = torch.ops.aten.full.default([8], 1.0)
        add: "f32[2, 8][8, 1]cpu" = torch.ops.aten.add.Tensor(mm, full)
        return (add,)
"""


def test_weights_are_known_by_dynamos_names_in_aotautograds_order():
    graphs = {"dynamo_output": read_graph(DYNAMO), "post_grad": read_graph(LOWERED)}
    pairs = weights_of(graphs, "post_grad")
    assert [own.name for _, own in pairs] == ["arg1_1", "arg2_1"]
    fewer = LOWERED.replace('arg2_1: "f32[8, 8][8, 1]cpu"', "")
    assert weights_of({**graphs, "post_grad": read_graph(fewer)}, "post_grad") == []


def test_what_reads_an_input_of_the_call_is_not_made_of_weights_alone():
    made = made_of_weights(read_graph(LOWERED), {"arg1_1", "arg2_1"})
    assert made == {"pow_1": {"arg2_1"}, "mul": {"arg1_1", "arg2_1"}}


STEPS = """
    def forward(self, q: "f32[8, 64, 16][1024, 16, 1]cpu", k: "f32[8, 16, 64][1024, 64, 1]cpu",
        v: "f32[8, 64, 16][1024, 16, 1]cpu"):
        # File: /home/me/train.py:9 in forward, code: y, _ = self.attention(x, x, x)
        bmm: "f32[8, 64, 64][4096, 64, 1]cpu" = torch.ops.aten.bmm.default(q, k)
        amax: "f32[8, 64, 1][64, 1, 1]cpu" = torch.ops.aten.amax.default(bmm, [-1], True)
        sub: "f32[8, 64, 64][4096, 64, 1]cpu" = torch.ops.aten.sub.Tensor(bmm, amax)
        exp: "f32[8, 64, 64][4096, 64, 1]cpu" = torch.ops.aten.exp.default(sub)
        sum_1: "f32[8, 64, 1][64, 1, 1]cpu" = torch.ops.aten.sum.dim_IntList(exp, [-1], True)
        div: "f32[8, 64, 64][4096, 64, 1]cpu" = torch.ops.aten.div.Tensor(exp, sum_1)
        bmm_1: "f32[8, 64, 16][1024, 16, 1]cpu" = torch.ops.aten.bmm.default(div, v)
        {more}return (bmm_1,)
"""
MEAN = """mean: "f32[64, 64][64, 1]cpu" = torch.ops.aten.mean.dim(div, [0])
        """


def test_a_softmax_between_two_batched_products_is_attention():
    (found,) = in_steps(read_graph(STEPS.format(more="")))
    assert found == Attention((8, 64, 64), "/home/me/train.py:9")


def test_weights_that_are_used_keep_it_from_being_one_operator():
    assert list(in_steps(read_graph(STEPS.format(more=MEAN)))) == []


def test_products_without_a_softmax_are_no_attention():
    text = STEPS.format(more="").replace("aten.exp", "aten.tanh")
    assert list(in_steps(read_graph(text))) == []


HEADS = """
    def forward(self, q: "f32[4, 8, 1, 32][256, 32, 32, 1]cpu",
        k: "f32[4, 2, 9, 32][576, 288, 32, 1]cpu"):
        # File: /home/me/train.py:9 in spread, code: return wide.reshape(b, h * n, t, d)
        one: "f32[4, 2, 1, 9, 32][576, 288, 288, 32, 1]cpu" = torch.ops.aten.unsqueeze.default(k, 2)
        wide: "f32[4, 2, 4, 9, 32][576, 288, 0, 32, 1]cpu" = torch.ops.aten.expand.default(one, [])
        {copy}view: "f32[4, 8, 9, 32][2304, 288, 32, 1]cpu" = torch.ops.aten.view.default({of}, [])
        # File: /home/me/train.py:12 in read, code: return sdpa(q, k, k)
        y = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(q, view, view)
        return (y,)
"""
CLONE = """copy: "f32[4, 2, 4, 9, 32][2304, 1152, 288, 32, 1]" = torch.ops.aten.clone.default(wide)
        """


def test_heads_that_are_written_out_are_a_copy_of_an_expanded_tensor():
    graph = read_graph(HEADS.replace("{copy}", CLONE).replace("{of}", "copy"))
    assert list(repeated(graph)) == [Repeated(4 * 8 * 9 * 32, 4, "/home/me/train.py:9")]
    graph = read_graph(HEADS.replace("{copy}", "").replace("{of}", "wide"))
    assert list(repeated(graph)) == []
