"""Ids of tensors and of their memory."""

import sys
import threading
import weakref

import pytest
import torch
from listings import first_input, ids, nodes, operators, recorded, recorded_by_both, tensors

from marey.torch import profile


def test_pointers_match_the_tensors():
    """upstream: test_pointers_and_ids"""
    x = torch.ones(4, 5)
    y = x[1:]
    prof = recorded(lambda: (x.add_(1), y.mul_(2)))
    own, view = first_input(prof, "aten::add_"), first_input(prof, "aten::mul_")
    assert (own.impl_ptr, view.impl_ptr) == (x._cdata, y._cdata)
    # The address of the storage, not of the first element.
    assert own.storage_data_ptr == view.storage_data_ptr == x.untyped_storage().data_ptr() != y.data_ptr()
    assert (own.id, own.allocation_id) == (view.id, view.allocation_id)


def test_a_resized_tensor_keeps_its_id_in_new_memory():
    """upstream: test_pointers_and_ids, test_allocation_ids"""
    x = torch.ones(4)
    other = torch.ones(4)

    def work():
        x.add_(1)
        x.resize_(1000)
        x.mul_(1)
        other.add_(1)

    prof = recorded(work)
    before, after = first_input(prof, "aten::add_"), first_input(prof, "aten::mul_")
    assert before.id == after.id and before.allocation_id != after.allocation_id
    assert before.impl_ptr == after.impl_ptr and before.storage_data_ptr != after.storage_data_ptr
    assert first_input(prof, "aten::add_", 1).id != before.id


def test_tensors_that_exchange_memory_share_an_id():
    """upstream: test_tensorimpl_invalidation_set, test_pointers_and_ids"""
    x, y, z = (torch.ones(4) for _ in range(3))

    def work():
        x.add_(1)
        y.add_(1)
        z.add_(1)
        x.set_(y.untyped_storage())
        x.mul_(1)

    prof = recorded(work)
    first, second, third = (first_input(prof, "aten::add_", i) for i in range(3))
    moved = first_input(prof, "aten::mul_")
    assert first.id == second.id == moved.id != third.id
    assert moved.allocation_id == second.allocation_id != first.allocation_id


@pytest.mark.parametrize("keeps", [False, True])
def test_a_tensor_with_changing_storage_keeps_its_id(keeps):
    """upstream: test_tensorimpl_invalidation_keep_alive, _full"""
    kept = []

    def work():
        x = torch.ones(1)
        x.add_(1)
        for _ in range(3):
            storage = torch.empty(4).untyped_storage()
            if keeps:
                kept.append(storage)
            x.set_(storage)
            x.add_(1)

    prof = recorded(work)
    seen = [first_input(prof, "aten::add_", i) for i in range(4)]
    assert len({tensor.id for tensor in seen}) == 1
    assert len({tensor.allocation_id for tensor in seen}) == 4


def test_ids_equal_those_of_pytorchs_profiler():
    """upstream: test_tensorimpl_invalidation_scalar_args, test_allocation_ids_with_other_ops"""

    def work():
        x = torch.ones(4, 5)
        x.add_(1)
        y = x.view(-1).mul(2)
        x.resize_(100)
        x.zero_()
        z = torch.cat([y, y, torch.ones(3)])
        del y
        w = torch.full((3, 3), 2.0).requires_grad_()
        (w @ w).sum().backward()
        w.grad.add_(1)
        z.set_(torch.ones(50).untyped_storage())
        z.mul_(2)

    actual, upstream = recorded_by_both(work)
    assert ids(actual) == ids(upstream)


def test_modules_optimizers_and_operators_agree_on_the_ids():
    """upstream: test_module_and_optimizer_ids, test_nnmodule_params, test_optimizer_parameters_adam"""
    model = torch.nn.Linear(3, 4)
    optimizer = torch.optim.Adam(model.parameters())

    def work():
        for _ in range(2):
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()

    work()  # creates gradients and optimizer state
    prof = recorded(work)
    linear = operators(prof, "aten::linear")[0].extra_fields.inputs
    module = next(n.extra_fields.module for n in nodes(prof) if n.tag.name == "PyCall" and n.extra_fields.module)
    found = next(n.extra_fields.optimizer for n in nodes(prof) if n.tag.name == "PyCall" and n.extra_fields.optimizer)
    weight, bias = linear[1:]
    for i, (own, tensor) in enumerate([(model.weight, weight), (model.bias, bias)]):
        _, parameter, gradient = module.parameters[i]
        assert parameter.impl_ptr == tensor.impl_ptr == own._cdata
        assert parameter.storage_data_ptr == own.untyped_storage().data_ptr()
        assert (parameter.id, parameter.allocation_id) == (tensor.id, tensor.allocation_id)
        assert gradient.impl_ptr == own.grad._cdata and gradient.id not in (None, tensor.id)
        seen, its_gradient, state = found.parameters[i]
        assert (seen.id, its_gradient.id) == (parameter.id, gradient.id)
        assert {name: part.impl_ptr for name, part in state} == {
            name: part._cdata for name, part in optimizer.state[own].items()
        }
        assert all(part.id is not None for _, part in state)


def test_module_and_optimizer_ids_equal_those_of_pytorchs_profiler():
    """upstream: test_module_and_optimizer_ids, test_optimizer_parameters_sgd, test_extra_fields"""

    def objects(prof):
        rows = []
        for node in nodes(prof):
            fields = node.extra_fields
            if node.tag.name == "PyCall" and fields.module:
                rows += [(name, p.id, g and g.id) for name, p, g in fields.module.parameters]
            elif node.tag.name == "PyCall" and fields.optimizer:
                rows += [
                    ("", p.id, g and g.id, *((name, s.id) for name, s in state))
                    for p, g, state in fields.optimizer.parameters
                ]
        # An object's parameters are those of its first call; PyTorch has ids only for that call.
        return list(dict.fromkeys(row for row in rows if row[1] is not None))

    def work():
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()

    actual, upstream = recorded_by_both(work)
    assert objects(actual) == objects(upstream) and ids(actual) == ids(upstream)


def test_tensors_at_a_reused_address_have_different_ids():
    """upstream: test_impl_reuse, test_allocation_id_uniqueness (C20)"""

    def work():
        for _ in range(10_000):
            torch.ones(4).add_(1)

    prof = recorded(work, with_stack=False)
    seen = [next(tensors(node.extra_fields.inputs)) for node in operators(prof, "aten::add_")]
    assert len({tensor.impl_ptr for tensor in seen}) < 10_000  # addresses were reused
    assert len(seen) == 10_000 == len({tensor.id for tensor in seen}) == len({tensor.allocation_id for tensor in seen})


def test_live_tensors_keep_their_ids_when_freed_ones_are_forgotten():
    """Freed tensors are forgotten from time to time; views, whose memory stays allocated, must keep its id."""
    base = torch.ones(1)
    other = torch.ones(1)

    def work():
        for i in range(20_000):
            (base if i % 2 else other).view(1).relu_()
        base.add_(1)
        other.add_(1)

    prof = recorded(work, with_stack=False)
    first, second = first_input(prof, "aten::add_"), first_input(prof, "aten::add_", 1)
    assert first.id is not None and second.id is not None and first.id != second.id
    views = [next(tensors(node.extra_fields.inputs)) for node in operators(prof, "aten::relu_")]
    assert [tensor.id for tensor in views[:4]] == [second.id, first.id] * 2
    assert {tensor.id for tensor in views} == {first.id, second.id} and len(views) == 20_000


def test_any_number_of_live_tensors_keep_their_ids():
    alive = [torch.ones(1) for _ in range(10_000)]

    def work():
        for _ in range(2):
            for tensor in alive:
                tensor.add_(1)
                torch.ones(1).relu_()

    prof = recorded(work, with_stack=False)
    seen = [next(tensors(node.extra_fields.inputs)) for node in operators(prof, "aten::add_")]
    assert [tensor.impl_ptr for tensor in seen] == [tensor._cdata for tensor in alive] * 2
    ids = [tensor.id for tensor in seen]
    assert ids[:10_000] == ids[10_000:] and len(set(ids)) == 10_000


def test_threads_agree_on_the_ids_of_shared_tensors():
    shared = [torch.ones(1) for _ in range(50)]

    def work():
        for _ in range(20):
            for tensor in shared:
                tensor.mul(tensor.view(1))

    threads = [threading.Thread(target=work) for _ in range(4)]

    def run():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    seen = {}
    for node in operators(recorded(run, with_stack=False), "aten::view"):
        (tensor,) = tensors(node.extra_fields.inputs)
        seen.setdefault(tensor.impl_ptr, set()).add(tensor.id)
    assert set(seen) == {tensor._cdata for tensor in shared}
    assert all(len(found) == 1 for found in seen.values()) and len(set.union(*seen.values())) == 50


def test_tensors_are_not_kept_alive():
    """upstream: test_refcounts (C20)"""
    with profile(record_shapes=True, profile_memory=True) as prof:
        tensor = torch.ones(1000)
        alive, references = weakref.ref(tensor), sys.getrefcount(tensor)
        tensor.mul_(tensor)
        assert sys.getrefcount(tensor) == references
        del tensor
        assert alive() is None
    assert [n.extra_fields.alloc_size for n in nodes(prof) if n.tag.name == "Allocation"] == [4000, -4000]


def test_allocations_have_their_ids_pointers_and_totals():
    """upstream: test_allocations, test_allocation_ids"""
    addresses = []

    def work():
        x = torch.ones(250)
        addresses.append(x.data_ptr())
        del x
        torch.empty(500)

    prof = recorded(work)
    taken, freed, unused, unused_freed = (n.extra_fields for n in nodes(prof) if n.tag.name == "Allocation")
    assert taken.ptr == freed.ptr == addresses[0]
    assert (taken.alloc_size, freed.alloc_size) == (1000, -1000)
    assert taken.id == freed.id == 0 and taken.allocation_id == freed.allocation_id == 1
    assert taken.total_allocated - freed.total_allocated == 1000 and taken.total_reserved == 0
    assert taken.device == torch.device("cpu")
    # No operator used that tensor as an input.
    assert (unused.id, unused.allocation_id) == (unused_freed.id, unused_freed.allocation_id) == (None, 2)


def test_tensors_have_properties_and_those_without_memory_have_no_ids():
    """upstream: test_tensor_properties, test_sparse_tensors, test_scalar_ins, test_tensor_lists"""
    x = torch.ones(10, 10).as_strided([4, 4], [12, 3])
    empty = torch.empty(0)
    sparse = torch.eye(3).to_sparse()

    def work():
        torch.add(x, 2.5, alpha=3)
        torch.stack([x, x])
        empty.add_(1)
        sparse.mul(2)

    prof = recorded(work)
    tensor, scalar, alpha = operators(prof, "aten::add")[0].extra_fields.inputs
    assert (tensor.sizes, tensor.strides, tensor.dim, tensor.dtype) == ([4, 4], [12, 3], 2, torch.float32)
    assert alpha == 3 and (scalar == 2.5 or scalar.dim == 0)
    (pair, _) = operators(prof, "aten::stack")[0].extra_fields.inputs
    assert [item.id for item in pair] == [tensor.id] * 2
    nothing = first_input(prof, "aten::add_")
    assert (nothing.storage_data_ptr, nothing.id, nothing.allocation_id) == (None, None, None)
    assert nothing.impl_ptr == empty._cdata
    without = first_input(prof, "aten::mul")
    assert without.sizes == [3, 3] and without.strides == [] and without.id is None


@pytest.mark.parametrize("options", [{"record_shapes": True}, {"profile_memory": True}, {}])
def test_without_shapes_and_memory_there_are_no_ids(options):
    with profile(**options) as prof:
        torch.ones(4).add_(1)
    for node in nodes(prof):
        if node.tag.name == "TorchOp":
            assert all((t.impl_ptr, t.id, t.allocation_id) == (None,) * 3 for t in tensors(node.extra_fields.inputs))
        elif node.tag.name == "Allocation":
            assert (node.extra_fields.id, node.extra_fields.allocation_id) == (None, None)


def test_ids_survive_saving_and_loading(tmp_path):
    import marey

    prof = recorded(lambda: torch.ones(4).add_(1))
    prof.trace.save(str(tmp_path / "saved.marey"))

    def of(roots):
        return [
            [(t.impl_ptr, t.id, t.allocation_id) for t in tensors(node.extra_fields.inputs)]
            for root in roots
            for node in [root, *root.children]
            if node.tag.name == "TorchOp"
        ]

    assert of(marey.load(str(tmp_path / "saved.marey")).tree()) == of(prof.trace.tree())
