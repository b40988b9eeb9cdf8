"""What trains over the backend computes what one process computes: DDP, FSDP2, DTensor, pipelines, checkpoints.

The expected values are those of the same model in plain torch on one process with the whole batch.
"""

import gc
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

import rondo_torch
from processes import Processes, add_tests

WIDTH, ROWS, STEPS = 64, 24, 3


def model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(WIDTH, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, WIDTH)).double()


def batches():
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(2, ROWS, WIDTH, generator=generator, dtype=torch.float64) for _ in range(STEPS)]


def train(network, pick):
    """Trains on the rows that `pick` takes."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    for inputs, targets in batches():
        nn.functional.mse_loss(network(pick(inputs)), pick(targets)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return network


def expected():
    return [parameter.detach() for parameter in train(model(), lambda rows: rows).parameters()]


def mine(rank, size):
    return lambda rows: rows.chunk(size)[rank]


def close(found, right):
    for ours, theirs in zip(found, right, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def ddp(rank, size):
    for options in ({}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.05}, {"static_graph": True}):
        network = train(DistributedDataParallel(model(), **options), mine(rank, size))
        close([parameter.detach() for parameter in network.parameters()], expected())


def ddp_is_gloos_bit_for_bit(rank, size):
    gloo = dist.new_group(backend="gloo")
    ours = train(DistributedDataParallel(model()), mine(rank, size))
    theirs = train(DistributedDataParallel(model(), process_group=gloo), mine(rank, size))
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        if not torch.equal(a, b):
            raise AssertionError("a sum of two numbers has one value, but the weights differ")


def hooks_compress_as_with_gloo(rank, size):
    """PowerSGD's callbacks start collectives of their own, and wait for them."""
    gloo = dist.new_group(backend="gloo")
    for hook in ("fp16", "powersgd"):
        weights = []
        for group in (dist.group.WORLD, gloo):
            network = DistributedDataParallel(model().float(), process_group=group)
            if hook == "fp16":
                network.register_comm_hook(group, default_hooks.fp16_compress_hook)
            else:
                state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=1, start_powerSGD_iter=2,
                                                    min_compression_rate=1)
                network.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
            optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
            for inputs, targets in batches() * 2:
                nn.functional.mse_loss(network(inputs.float().chunk(size)[rank]), targets.float().chunk(size)[rank]).backward()
                optimizer.step()
                optimizer.zero_grad()
            weights.append([parameter.detach() for parameter in network.parameters()])
        for a, b in zip(*weights, strict=True):
            torch.testing.assert_close(a, b)


def sharded(rank, size):
    network = model()
    mesh = DeviceMesh.from_group(dist.group.WORLD, "cpu")
    for layer in network:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    train(fully_shard(network, mesh=mesh), mine(rank, size))
    close([parameter.full_tensor().detach() for parameter in network.parameters()], expected())
    with tempfile.TemporaryDirectory() as folder:
        folders = [folder]
        dist.broadcast_object_list(folders, 0)
        dcp.save({"network": network.state_dict()}, checkpoint_id=folders[0])
        other = fully_shard(model(), mesh=mesh)
        state = {"network": other.state_dict()}
        dcp.load(state, checkpoint_id=folders[0])
        other.load_state_dict(state["network"])
        close([parameter.full_tensor().detach() for parameter in other.parameters()], expected())
        dist.barrier()


def tensors_over_a_mesh(rank, size):
    mesh = dist.init_device_mesh("cpu", (size,), backend_override={0: "rondo"})
    torch.manual_seed(1)
    a, b = torch.randn(12, 24, dtype=torch.float64), torch.randn(24, 36, dtype=torch.float64)
    for left, right in ((Shard(0), Replicate()), (Replicate(), Shard(1)), (Shard(1), Shard(0))):
        product = distribute_tensor(a, mesh, [left]) @ distribute_tensor(b, mesh, [right])
        torch.testing.assert_close(product.full_tensor(), a @ b)
        for placement in (Shard(0), Shard(1), Replicate()):
            moved = product.redistribute(mesh, [placement])
            torch.testing.assert_close(moved.full_tensor(), a @ b)
    assert isinstance(product, DTensor)


def pipeline(rank, size):
    torch.manual_seed(2)
    layers = [nn.Linear(WIDTH, WIDTH).double() for _ in range(size)]
    inputs, targets = batches()[0]
    whole = nn.Sequential(*layers)
    loss = nn.functional.mse_loss(whole(inputs), targets)
    loss.backward()
    right = layers[rank].weight.grad.clone()
    layers[rank].zero_grad()
    stage = PipelineStage(layers[rank], rank, size, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    losses = []
    if rank == 0:
        schedule.step(inputs, target=targets, losses=losses) if size == 1 else schedule.step(inputs)
    elif rank == size - 1:
        schedule.step(target=targets, losses=losses)
        torch.testing.assert_close(torch.stack(losses).mean(), loss.detach())
    else:
        schedule.step()
    torch.testing.assert_close(layers[rank].weight.grad, right)


def window_memory(rank, size):
    """Parameters, gradients and buckets in window memory: the same values; room that is full or given back."""
    with rondo_torch.use_window_memory(4 << 20, smallest=256) as memory:
        assert memory.bytes == 4 << 20 and memory.used == 0, memory.used
        network = DistributedDataParallel(model(), gradient_as_bucket_view=True)
        parameters = sum(p.numel() for p in network.parameters()) * 8
        assert memory.used >= 2 * parameters, (memory.used, parameters)  # and the buckets
        train(network, mine(rank, size))
        large = torch.full((1 << 20,), 1.0 + rank, dtype=torch.float64)  # more than there is room for
        assert memory.used < 4 << 20
        dist.all_reduce(large)
        assert torch.equal(large, torch.full_like(large, size + sum(range(size))))
        assert torch.isfinite(nn.functional.gelu(torch.randn(1, 64, 1024))).all()  # takes scratch memory by its address
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        assert backend.supports_tensor_alloc(torch.device("cpu"))
        before = memory.used
        piece = backend.allocate_tensor(1000, dtype=torch.float32, device=torch.device("cpu"))
        assert memory.used == before + 4032, memory.used - before
        dist.all_reduce(piece.fill_(rank))
        assert torch.equal(piece, torch.full((1000,), float(sum(range(size)))))
    close([parameter.detach() for parameter in network.parameters()], expected())
    used = memory.used
    ordinary = torch.ones(100_000)
    assert memory.used == used  # after the block nothing more is taken
    dist.all_reduce(ordinary)
    del network, piece, backend
    gc.collect()
    assert memory.used == 0, memory.used
    loader = torch.utils.data.DataLoader(torch.arange(4.0), num_workers=1, multiprocessing_context="fork")
    with rondo_torch.use_window_memory(1 << 20, smallest=1024):
        kept = torch.arange(1000.0)
        assert sum(float(x) for x in loader) == 6.0
        assert torch.equal(kept, torch.arange(1000.0))


class Training(Processes):
    """The methods are made below: one a function and number of ranks."""


add_tests(Training, ddp, (2, 3))
add_tests(Training, ddp_is_gloos_bit_for_bit, (2,))
add_tests(Training, hooks_compress_as_with_gloo, (2, 3))
add_tests(Training, sharded, (2, 4))
add_tests(Training, tensors_over_a_mesh, (2, 3))
add_tests(Training, pipeline, (2, 3))
add_tests(Training, window_memory, (2, 3))

class Example(unittest.TestCase):
    def test_the_documented_program_learns_under_torchrun(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone",
                   str(root / "docs" / "examples" / "ddp_classifier.py"), "6000"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        shares = re.findall(r"([0-9.]+) % of the test images right", run.stdout)
        self.assertEqual(len(shares), 2, run.stdout)
        self.assertGreater(float(shares[1]), 50)  # guessing gets 10


if __name__ == "__main__":
    unittest.main()
