"""Lightning with the whole LightningModule compiled before Trainer.fit, as its documentation shows."""
import lightning as L
import torch
from lightning_net import Encoder, loader
from steady import Steady, options


class Autoencoder(L.LightningModule):
    def __init__(self, width, layers):
        super().__init__()
        self.net = Encoder(width, layers)

    def training_step(self, batch, batch_idx):
        (x,) = batch
        return torch.nn.functional.mse_loss(self.net(x + 0.1 * torch.randn_like(x)), x)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Meter(L.Callback):
    def __init__(self, steady):
        self.steady = steady

    def on_train_batch_end(self, *args):
        self.steady.step()


def main():
    args = options(cpu=800, cuda=1500)
    L.seed_everything(0)
    width, layers, batch = (1024, 12, 1024) if args.device == "cuda" else (256, 4, 64)
    steady = Steady(args.steps, args.device)
    trainer = L.Trainer(
        max_steps=args.steps,
        max_epochs=-1,
        accelerator="gpu" if args.device == "cuda" else "cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[Meter(steady)],
    )
    trainer.fit(torch.compile(Autoencoder(width, layers)), loader(width, batch, args.steps))
    steady.show()


if __name__ == "__main__":
    main()
