import argparse

import torch

from forecaster import Forecaster, Runner


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, default=45000)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    args = parser.parse_args()
    torch.manual_seed(0)
    runner = Runner(Forecaster(), compile_model=args.compile)
    series = torch.randn(384, 96).cumsum(-1)
    for _ in range(args.windows):
        forecast = runner.predict(series)
    print(forecast.mean().item())


if __name__ == "__main__":
    main()
