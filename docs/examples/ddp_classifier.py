"""Trains a classifier of MNIST's size (60,000 images of 28 x 28, ten classes) with DistributedDataParallel over rondo.

    PYTHONPATH=build/torch/site build/torch/venv/bin/torchrun --nproc-per-node 2 docs/examples/ddp_classifier.py

The data are made here: each class is a random picture, each image its class's picture under much noise. With Gloo it is
the same program; one line, marked below, differs.
"""

import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import rondo_torch  # noqa: F401  (registers "rondo")


def images(count, seed):
    pictures = torch.rand(10, 28 * 28, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=generator)
    return TensorDataset(pictures[labels] + 1.5 * torch.randn(count, 28 * 28, generator=generator), labels)


def accuracy(model, data):
    with torch.no_grad():
        right = (model(data.tensors[0]).argmax(1) == data.tensors[1]).sum()
    return right.item() / len(data)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60_000
    dist.init_process_group("rondo")  # with Gloo: dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = nn.Sequential(nn.Linear(28 * 28, 128), nn.ReLU(), nn.Linear(128, 10))
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(parallel.parameters(), lr=1e-3)
    train, test = images(count, 1), images(count // 6, 2)
    sampler = DistributedSampler(train, size, rank, seed=0)
    loader = DataLoader(train, batch_size=64, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(parallel(pixels), labels)
            loss.backward()  # averages the gradients over the ranks meanwhile
            optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        if rank == 0:
            print(f"epoch {epoch}: last loss {mean:.3f}, {100 * accuracy(model, test):.1f} % of the test images right")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
