"""Training steps that both profilers record."""

import torch
from torch import nn


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + x)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(16, 24, num_layers=2, batch_first=True)
        self.head = nn.Linear(24, 4)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


def mlp():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)), (16, 32)


def _resnet():
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), ResidualBlock(8), ResidualBlock(8)), (2, 3, 17, 17)


def _transformer():
    return nn.TransformerEncoderLayer(d_model=32, nhead=4, dim_feedforward=64, batch_first=True, dropout=0.0), (
        2,
        6,
        32,
    )


def _lstm():
    return Lstm(), (2, 5, 16)


def _compiled(model):
    return torch.compile(model)


def _sharded(model):
    """A model whose parameters FSDP shards over one process."""
    from torch import distributed
    from torch.distributed.fsdp import FullyShardedDataParallel

    if not distributed.is_initialized():
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    return FullyShardedDataParallel(model, device_id=next(model.parameters()).device)


MODELS = {"MLP": mlp, "ResNet block": _resnet, "transformer block": _transformer, "LSTM": _lstm}
# Ways to run the MLP: a function of the model.
WRAPPERS = {"torch.compile": _compiled, "FSDP": _sharded}
LOADER = "DataLoader workers"  # the MLP, with batches from two processes
WORKLOADS = (*MODELS, *WRAPPERS, LOADER)


class Batches(torch.utils.data.Dataset):
    def __init__(self, shape, count=4):
        self.shape = shape
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index >= self.count:
            raise IndexError(index)
        return torch.full(self.shape[1:], float(index))


def training(name, device):
    """A function that does one training step."""
    torch.manual_seed(0)
    model, shape = MODELS.get(name, mlp)()
    model = model.to(device).train()
    if name in WRAPPERS:
        model = WRAPPERS[name](model)
    optimizer = torch.optim.Adam(model.parameters())
    batches = [torch.randn(*shape, device=device)]
    if name == LOADER:
        batches = torch.utils.data.DataLoader(Batches(shape), batch_size=2, num_workers=2)

    def step():
        for batch in batches:
            optimizer.zero_grad()
            loss = model(batch.to(device) if name == LOADER else batch).pow(2).mean()
            loss.backward()
            optimizer.step()

    return step
