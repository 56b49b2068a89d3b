"""The tree of a recording."""

from tree_walk import depth_first

import marey
from marey import EventList, FunctionEvent
from marey.profiler import DeviceType
from marey.results.tree import nodes  # private: nodes with types of another package
from marey.results.types import _EventType  # private: values of an enumeration that has no other name


def recorded(program, **options):
    session = marey.Session()
    session.start(**options)
    program()
    return session.stop()


def outline(roots, depth=0):
    for node in roots:
        yield "  " * depth + node.name
        yield from outline(node.children, depth + 1)


def test_annotations_nest_and_one_that_never_ends_ends_with_its_parent():
    """upstream: test_profiler_experimental_tree_with_record_function"""

    def program():
        with marey.record_function("top"):
            with marey.record_function("inside"):
                pass
            marey.record_function("never ends").__enter__()

    roots = nodes(recorded(program))
    assert list(outline(roots))[:2] == ["top", "  inside"]
    names = [node.name for node in depth_first(roots)]
    assert sorted(names) == ["inside", "never ends", "top"]
    left_open = next(node for node in depth_first(roots) if node.name == "never ends")
    assert left_open.end_time_ns <= roots[0].end_time_ns or left_open.parent is None


def test_nodes_have_the_fields_of_their_kind():
    def program():
        with marey.record_function_fast("op", [1, "x"]):
            with marey.record_function("op"):
                pass

    (root,) = nodes(recorded(program, record_shapes=True, concrete_inputs=True))
    assert root.tag is _EventType.TorchOp and root.typed == (root.tag, root.extra_fields)
    assert (root.extra_fields.name, root.extra_fields.inputs, root.extra_fields.scope) == ("op", [1, "x"], 0)
    assert root.extra_fields.sequence_number == -1
    assert root.parent is None and root.overload_name == ""
    (child,) = root.children  # a repetition is a separate node here
    assert child.parent == root and child != root and hash(child.parent) == hash(root)
    assert child.id != root.id and child.correlation_id > 0
    assert root.start_time_ns <= child.start_time_ns <= child.end_time_ns <= root.end_time_ns
    assert root.duration_time_ns == root.end_time_ns - root.start_time_ns
    assert root.start_tid == 1 and "op" in repr(root)


def test_self_time_excludes_children():
    """upstream: test_utils_compute_self_time"""
    events = EventList([FunctionEvent(i, n, 1, s, e) for i, (n, s, e) in enumerate([("a", 0, 9), ("b", 1, 3)])])
    (root,) = nodes(events._trace())
    inside = sum(child.duration_time_ns for child in root.children)
    assert root.duration_time_ns - inside == 7000


def test_allocations_and_kernels_appear_under_their_cause():
    """upstream: test_profiler_experimental_tree_with_memory"""
    op = FunctionEvent(1, "op", 1, 0, 10, cpu_memory_usage=64, use_device="cuda")
    op.append_kernel("k", 0, 3)
    (root,) = nodes(EventList([op], use_device="cuda")._trace())
    tags = {node.name: node for node in root.children}
    assert set(tags) == {"[memory]", "k"}
    memory = tags["[memory]"]
    assert memory.tag is _EventType.Allocation and memory.extra_fields.alloc_size == 64
    assert memory.extra_fields.device.type == DeviceType.CPU and memory.duration_time_ns == 0
    assert tags["k"].tag is _EventType.Kineto and tags["k"].parent == root


def test_an_empty_trace_has_no_nodes():
    assert nodes(recorded(lambda: None)) == []
