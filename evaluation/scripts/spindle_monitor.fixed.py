"""Watch vibration features of a milling spindle: whitening cascade and novelty score."""
import os
import torch

torch.set_num_threads(1)
torch.manual_seed(3)

STEPS = int(os.environ.get("STEPS", "4000"))
WINDOWS = 16384
FEATURES = 64
STAGES = 6


def standardise(x):
    mu = x.mean(dim=0)
    sd = ((x - mu).square().sum(dim=0) / (x.shape[0] - 1)).sqrt()
    return (x - mu) / (sd + 1e-4)


def cascade(x, gains, shifts):
    for gain, shift in zip(gains, shifts):
        z = standardise(x)
        x = z * gain + shift * z.abs()
    return x


@torch.compile
def novelty(x, gains, shifts, reference):
    h = cascade(x, gains, shifts)
    per_window = (h - reference).abs().mean(dim=1)
    return per_window.mean(), per_window.amax()


def acquire(bank, step):
    return bank[step % len(bank)]


def main():
    bank = []
    for k in range(4):
        base = torch.randn(WINDOWS, FEATURES)
        drift = torch.linspace(0, 0.3 * (k + 1), WINDOWS).unsqueeze(1)
        bank.append(base * (1 + 0.1 * k) + drift)
    gains = [1 + 0.1 * torch.randn(FEATURES) for _ in range(STAGES)]
    shifts = [0.2 * torch.randn(FEATURES) for _ in range(STAGES)]
    reference = torch.zeros(FEATURES)

    alarms = 0
    level = torch.zeros(())
    with torch.inference_mode():
        for step in range(STEPS):
            out, peak = novelty(acquire(bank, step), gains, shifts, reference)
            level = 0.9 * level + 0.1 * out
            if step % 200 == 0:
                alarms += int(peak.item() > 4.0)
                print(f"step {step}: level {level.item():.4f} alarms {alarms}")


if __name__ == "__main__":
    main()
