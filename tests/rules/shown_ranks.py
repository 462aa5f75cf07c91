"""Rules about ranks: which scenario shows which."""

from rule_scenarios import good, on

SCENARIOS = {
    "dd-ddp-splits": (
        on(
            "bad",
            ("dd_ddp_splits", "model = torch.compile(model)"),
            ("dd_ddp_splits_alone", "torch.compile(self.network)"),
        ),
        good("good/dd_ddp_splits", "good/dd_rank_skew"),
    ),
    "dd-rank-skew": (
        on(
            "bad",
            ("dd_rank_skew", "scores = model(ids)"),
            ("dd_rank_skew_eval", "network(batch)"),
        ),
        good("good/dd_rank_skew", "bad/dd_ddp_splits", "good/dd_ddp_splits"),
    ),
}
