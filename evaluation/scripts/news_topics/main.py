import os

import torch

from newslab.callbacks import Accuracy, Progress
from newslab.corpus import Wire
from newslab.model import TopicNet
from newslab.trainer import Fit


def main():
    torch.manual_seed(8)
    epochs = int(os.environ.get("EPOCHS", "80"))
    wire = Wire(articles=640, held_out=128, words=6000, length=24, topics=12)
    net = TopicNet(words=6000, width=192, topics=12)
    fit = Fit(net, batch=32, callbacks=[Progress(every=200), Accuracy(wire)])
    fit.run(wire, epochs)


if __name__ == "__main__":
    main()
