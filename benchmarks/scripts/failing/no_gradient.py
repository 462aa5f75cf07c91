"""An operator without a formula for its gradient, in a model that is trained."""

import torch


@torch.library.custom_op("softlib::plus", mutates_args=())
def plus(x: torch.Tensor) -> torch.Tensor:
    return torch.log1p(torch.exp(x))


@plus.register_fake
def _(x):
    return torch.empty_like(x)


class Rate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)

    def forward(self, x):
        return plus(self.linear(x)).mean()


torch.manual_seed(0)
model = torch.compile(Rate())
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(10, 6)).backward()
    optimizer.step()
