import torch


class OptionBook:
    def __init__(self, contracts):
        self.strikes = torch.linspace(70, 130, contracts)
        self.years = torch.linspace(0.1, 2.0, contracts)
        self.kicks = torch.rand(contracts) * 0.4
        self.amounts = torch.randn(contracts)
