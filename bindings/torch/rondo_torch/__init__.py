"""PyTorch's collectives on CPU tensors over rondo: import rondo_torch, then init_process_group("rondo").

Importing registers the backend "rondo" for CPU tensors. Ranks find each other through the store that
init_process_group makes: torchrun, environment variables, a file or a store of your own, as with any backend.
"""

import atexit
import os
from datetime import timedelta

import torch
import torch.distributed as dist

from . import _build

__all__ = ["WindowMemory", "create_backend", "register", "use_window_memory"]


def _without_local_part(version):
    return version.split("+")[0]


if _without_local_part(torch.__version__) != _without_local_part(_build.torch_version):
    raise ImportError(
        f"this rondo_torch was built for torch {_build.torch_version}, but torch {torch.__version__} is installed; "
        "install the wheel of that version, or build again"
    )

from . import _C  # noqa: E402  (only now is it known to fit)

if os.path.dirname(_C.__file__) != os.path.dirname(__file__):  # pybind11 knows modules by name, and keeps the first
    raise ImportError(
        f"another rondo_torch is loaded in this process already, from {os.path.dirname(_C.__file__)}, beside the one in "
        f"{os.path.dirname(__file__)}; leave one of the two on sys.path"
    )


def create_backend(options, backend_options=None, title="rondo"):
    """What torch calls to make a group's backend; options is a torch.distributed._DistributedBackendOptions.

    The profiler shows the operations as title:all_reduce and so on.
    """
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
        title,
    )


def register():
    """Registers "rondo" for CPU tensors. Importing does so; torch calls it where the installed package is not imported."""
    dist.Backend.register_backend("rondo", create_backend, extended_api=True, devices=["cpu"])


class WindowMemory:
    """What use_window_memory() reserved. stop() (or the end of a `with` block) makes torch allocate as before; tensors
    that lie in the memory stay there, and keep it alive."""

    def __init__(self, arena):
        self._arena = arena

    @property
    def bytes(self):
        return self._arena.bytes

    @property
    def used(self):
        """Bytes of it that tensors hold now, each rounded up to 64."""
        return self._arena.used

    def stop(self):
        if _C.arena_in_use() is self._arena:
            _C.use_for_large_tensors(None, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def use_window_memory(bytes, group=None, smallest=1 << 16):
    """Lets parameters, gradients and DDP's buckets live in memory that the ranks of a host read from each other directly.

    Collective over `group` (None: the default one), the same `bytes` on every rank: reserves one arena. From then on, on
    this rank alone, every CPU tensor of at least `smallest` bytes is allocated in it while it has room, and as before
    once it is full. Only collectives of `group` itself read it directly; to all others it is ordinary memory. Returns a
    WindowMemory. Ranks that ask for different sizes lose the group (the error says so). A process that is forked afterwards shares the tensors in it with its parent, writes included.
    """
    if bytes < 1 or smallest < 0:
        raise ValueError(f"rondo: use_window_memory: {bytes} bytes, smallest={smallest}; reserve at least 1, and take 0 or more")
    group = dist.group.WORLD if group is None else group
    if not isinstance(group, dist.ProcessGroup):
        raise ValueError(
            f"rondo: use_window_memory: the group is {group!r}; call init_process_group('rondo') first, and give a group that "
            "this rank belongs to"
        )
    backend = group._get_backend(torch.device("cpu"))
    arena = _C.reserve(getattr(backend, "wrapped_pg", backend), bytes)
    _C.use_for_large_tensors(arena, smallest)
    return WindowMemory(arena)


register()

# Groups that nobody destroyed say goodbye while they can; their peers would take the silence for a death.
atexit.register(_C.wait_for_farewells, timedelta(seconds=5))
