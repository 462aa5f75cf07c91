"""An operator whose fake has another shape than its result: the next product can't be traced."""

import torch


@torch.library.custom_op("foldlib::halves", mutates_args=())
def halves(x: torch.Tensor) -> torch.Tensor:
    return x[:, ::2] + x[:, 1::2]


@halves.register_fake
def _(x):
    return x.new_empty(x.shape)


class Folded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.out(halves(x)).sigmoid()


torch.manual_seed(0)
model = torch.compile(Folded().eval())
with torch.no_grad():
    for _ in range(5):
        model(torch.randn(6, 16))
