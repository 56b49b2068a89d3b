"""The rank and the process groups of this process in a distributed program."""

from __future__ import annotations

import torch.distributed as dist

from marey import _marey


def _is_distributed() -> bool:
    return bool(dist.is_available() and dist.is_initialized())


def rank() -> int:
    """Return the rank of this process in the default group or set by ``torchrun``; -1 if there is none."""
    return int(dist.get_rank()) if _is_distributed() else _marey.environment_rank()


def take_node_id() -> None:
    """Use the rank as the node id of this process."""
    own = rank()
    if own >= 0:
        _marey.set_node_id(own)


def distributed_info() -> str | None:
    """Return the processes of a distributed program for the trace, as JSON; None if there is only one."""
    if not _is_distributed():
        return None
    import json

    backend = dist.get_backend()
    info = {"backend": backend, "rank": dist.get_rank(), "world_size": dist.get_world_size()}
    info["pg_count"] = dist.get_pg_count()
    info["pg_config"] = dist.distributed_c10d._get_all_pg_configs()
    if backend == "nccl":
        import torch

        info["nccl_version"] = ".".join(map(str, torch.cuda.nccl.version()))
    return json.dumps(info, default=str)


def group_configs() -> str | None:
    """Return the process groups of the program as JSON; None if there is only one process."""
    if not _is_distributed():
        return None
    import json

    return json.dumps(dist.distributed_c10d._world.pg_config_info, default=str)
