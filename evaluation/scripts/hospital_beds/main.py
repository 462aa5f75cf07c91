import json
import os
import pathlib

import torch

from beds.model import Wards
from beds.fit import Fit

HERE = pathlib.Path(__file__).parent


def main():
    config = json.loads((HERE / "beds.json").read_text())
    epochs = int(os.environ.get("EPOCHS", config["epochs"]))
    torch.manual_seed(config["seed"])
    fit = Fit(Wards(config["wards"], config["channels"]), config)
    for epoch in range(epochs):
        train = fit.train_epoch()
        held_out = fit.validate()
        if epoch % 20 == 0:
            print(f"epoch {epoch}: train {train:.4f} held out {held_out:.4f}", flush=True)


if __name__ == "__main__":
    main()
