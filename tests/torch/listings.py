"""Results of Marey and PyTorch's profiler about tensors and their memory, in a form that can be compared."""

import gc

import torch

import marey.torch

OPTIONS = {"record_shapes": True, "profile_memory": True, "with_stack": True}


def recorded(work, profile=marey.torch.profile, **options):
    """Run `work` under a profiler and return the profiler."""
    gc.collect()
    gc.disable()  # memory that the collector frees does not belong to the work
    try:
        with profile(**{**OPTIONS, **options}) as prof:
            work()
    finally:
        gc.enable()
    return prof


def recorded_by_both(work):
    """(Marey's, PyTorch's) profiler of the same work, run once before because first calls allocate more."""
    work()
    upstream = recorded(work, torch.profiler.profile, activities=[torch.profiler.ProfilerActivity.CPU])
    return recorded(work), upstream


def nodes(prof):
    """Every node of the profiler's tree, parents before their children."""
    waiting = list(reversed(prof.profiler.kineto_results.experimental_event_tree()))
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def tensors(values):
    """The tensors among the inputs of a node, including those in lists."""
    for value in values:
        if isinstance(value, list):
            yield from tensors(value)
        elif hasattr(value, "allocation_id"):
            yield value


def operators(prof, name):
    return [node for node in nodes(prof) if node.tag.name == "TorchOp" and node.name == name]


def first_input(prof, name, number=0):
    """The first tensor input of the operator's call with that index."""
    return next(tensors(operators(prof, name)[number].extra_fields.inputs))


def ids(prof):
    """[(operator or "[memory]", bytes or None, [(id, allocation id) of each tensor])]"""
    rows = []
    for node in nodes(prof):
        fields = node.extra_fields
        if node.tag.name == "TorchOp":
            rows.append((node.name, None, [(tensor.id, tensor.allocation_id) for tensor in tensors(fields.inputs)]))
        elif node.tag.name == "Allocation":
            rows.append((node.name, fields.alloc_size, [(fields.id, fields.allocation_id)]))
    return rows


def _key(key):
    return (key.id, key.storage.allocation_id) if hasattr(key, "storage") else None


def _name(category):
    return category and category.name


def categories(profile):
    """{(id, allocation id, version): name of the category or None}"""
    return {(*_key(key), version): _name(found) for (key, version), found in profile._category_snapshot().items()}


def timeline(profile):
    """[(action, (id, allocation id) or None, version, bytes)]"""
    return [(action.name, _key(key), version, size) for _, action, (key, version), size in profile.timeline]


def flow(profile):
    """[({key: (written, version)}, {key: version}, [key of each intermediate])] of each step"""
    steps = profile.flow_nodes if hasattr(profile, "flow_nodes") else profile._data_flow_graph.flow_nodes
    return [
        (
            {_key(key): taken for key, taken in step.inputs.items()},
            {_key(key): version for key, version in step.outputs.items()},
            [_key(key) for key in step.intermediates],
        )
        for step in steps
    ]


def bytes_by_category(profile):
    """{category: bytes of all versions together}, for all memory in the timeline."""
    get = getattr(profile, "category", None) or profile._categories.get
    found = {}
    for _, action, (key, version), size in profile.timeline:
        if action.name in ("PREEXISTING", "CREATE"):
            name = _name(get(key, version))
            found[name] = found.get(name, 0) + size
    return found
