"""PyTorch's collectives on CPU tensors over rondo: import rondo_torch, then init_process_group("rondo").

Importing registers the backend "rondo" for CPU tensors. Ranks find each other through the store that
init_process_group makes: torchrun, environment variables, a file or a store of your own, as with any backend.
"""

import atexit
from datetime import timedelta

import torch
import torch.distributed as dist

from . import _build

__all__ = ["create_backend"]


def _without_local_part(version):
    return version.split("+")[0]


if _without_local_part(torch.__version__) != _without_local_part(_build.torch_version):
    raise ImportError(
        f"this rondo_torch was built for torch {_build.torch_version}, but torch {torch.__version__} is installed; "
        "install the wheel of that version, or build again"
    )

from . import _C  # noqa: E402  (only now is it known to fit)


def create_backend(options, backend_options=None, name="rondo"):
    """What torch calls to make a group's backend; options is a torch.distributed._DistributedBackendOptions."""
    if backend_options is not None:
        raise TypeError(f"rondo takes no pg_options, but was given a {type(backend_options).__name__}; leave them out")
    timeout = options.timeout if isinstance(options.timeout, timedelta) else timedelta(seconds=options.timeout)
    return _C.create_backend(
        options.store,
        options.group_rank,
        options.group_size,
        timeout,
        options.group_id or "",
        list(options.global_ranks_in_group),
        name,
    )


dist.Backend.register_backend("rondo", create_backend, extended_api=True, devices=["cpu"])

# Groups that nobody destroyed say goodbye while they can; their peers would take the silence for a death.
atexit.register(_C.wait_for_farewells, timedelta(seconds=5))
