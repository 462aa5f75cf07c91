"""Node classification with torch-geometric: a graph attention network on one graph."""
import torch
import torch.nn.functional as F
from steady import Steady, options
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv


class Net(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.attend = GATConv(features, hidden, heads=4)
        self.conv = GCNConv(4 * hidden, hidden)
        self.out = GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        x = F.dropout(x, 0.5, self.training)
        x = F.elu(self.attend(x, edge_index))
        x = F.dropout(x, 0.5, self.training)
        x = F.relu(self.conv(x, edge_index))
        return self.out(x, edge_index)


def main():
    args = options(cpu=250, cuda=800)
    torch.manual_seed(0)
    nodes, edges = (50_000, 400_000) if args.device == "cuda" else (2_000, 12_000)
    data = Data(
        x=torch.randn(nodes, 128),
        edge_index=torch.randint(0, nodes, (2, edges)),
        y=torch.randint(0, 7, (nodes,)),
        train_mask=torch.rand(nodes) < 0.3,
    ).to(args.device)
    model = Net(128, 32, 7).to(args.device)
    compiled = torch.compile(model, dynamic=True)  # as torch-geometric's documentation advises
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    steady = Steady(args.steps, args.device)
    for _ in range(args.steps):
        model.train()
        optimizer.zero_grad()
        out = compiled(data.x, data.edge_index)
        F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
        steady.step()
    steady.show()


if __name__ == "__main__":
    main()
