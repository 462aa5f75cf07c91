"""Which weights no optimizer trains, though each backward adds to their gradients."""

import pytest

from traceview.collectors.child.weights import FEWEST_ADDITIONS, write_untrained

torch = pytest.importorskip("torch")


class Notes:
    def __init__(self):
        self.found = {}

    def write(self, kind, *, name, additions):
        assert kind == "untrained_weight"
        self.found[name] = additions

    def note(self, what, error):
        raise AssertionError(what) from error


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.untrained_own = torch.nn.Linear(3, 3)
        self.fixed_features = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.fixed_features(self.untrained_own(x)).square().mean()


def steps(times, *, reset=False, frozen=False, by_hand=False):
    """What is written after so many steps, of this model's names."""
    model = Loss()
    model.fixed_features.requires_grad_(not frozen)
    optimizer = torch.optim.SGD(model.untrained_own.parameters(), lr=0.1)
    for _ in range(times):
        (model if reset else optimizer).zero_grad()
        model(torch.ones(2, 3)).backward()
        optimizer.step()
        with torch.no_grad():
            for weight in model.fixed_features.parameters() if by_hand else ():
                weight -= 0.1 * weight.grad
                weight.grad.zero_()
    notes = Notes()
    write_untrained(torch, notes)
    return {name: n for name, n in notes.found.items() if name.startswith(("fixed_", "untrained_"))}


def test_gradients_that_are_added_up_and_never_used_are_found():
    found = steps(FEWEST_ADDITIONS + 1)
    assert found == dict.fromkeys(
        ("fixed_features.weight", "fixed_features.bias"), FEWEST_ADDITIONS
    )


@pytest.mark.parametrize("how", [{"reset": True}, {"frozen": True}, {"by_hand": True}])
def test_gradients_that_are_reset_used_or_not_made_are_none(how):
    assert steps(FEWEST_ADDITIONS + 1, **how) == {}


def test_a_few_additions_may_be_gathered_for_one_step():
    assert steps(4) == {}
