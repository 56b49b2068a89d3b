"""The rank and the process groups of this process in a distributed program."""

import os

import torch.distributed as dist

from marey import _marey


def _is_distributed():
    return dist.is_available() and dist.is_initialized()


def rank():
    """Return the rank of this process in the default group or set by ``torchrun``; None if there is none."""
    if _is_distributed():
        return dist.get_rank()
    own, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return int(own) if own.isdigit() and world.isdigit() and int(world) > 1 else None


def take_node_id():
    """Use the rank as the node id of this process."""
    own = rank()
    if own is not None:
        _marey.set_node_id(own)


def path_for_rank(path):
    """Return the path of this rank's capture: "app.marey" becomes "app.rank3.marey" for rank 3."""
    own = rank()
    if own is None or not path:
        return path
    stem, suffix = os.path.splitext(path)
    return f"{stem}.rank{own}{suffix}"


def distributed_info():
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


def group_configs():
    """Return the process groups of the program as JSON; None if there is only one process."""
    if not _is_distributed():
        return None
    import json

    return json.dumps(dist.distributed_c10d._world.pg_config_info, default=str)
