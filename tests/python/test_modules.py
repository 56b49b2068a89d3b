"""Calls of registered classes are recorded as those of modules and optimizers."""

import gc
import json
import re
import sys
import threading
import weakref
from pathlib import Path

import pytest
from conftest import needs_plain_allocator
from tree_walk import depth_first

import marey

numpy = pytest.importorskip("numpy")

MODES = pytest.mark.parametrize("c_calls", [False, True], ids=["python", "with_c"])
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "guide" / "python_modules.md"


class Layer:
    def __init__(self, **parameters):
        self.params = {name: numpy.zeros(shape, "float32") for name, shape in parameters.items()}
        self.grads = {}
        self.parts = {}

    def __call__(self, value):
        return self.forward(value)

    def forward(self, value):
        return value


class Linear(Layer):
    def __init__(self):
        super().__init__(weight=(2, 3), bias=(2,))


class Net(Layer):
    def __init__(self):
        super().__init__()
        self.parts = {"first": Linear(), "second": Linear()}

    def forward(self, value):
        with marey.record_function("op"):
            value = self.parts["first"](value)
        return self.parts["second"](value)


class Momentum:
    def __init__(self, layers):
        self.groups = [{"params": [array for layer in layers for array in layer.params.values()], "lr": 0.1}]
        self.state = {}

    def step(self):
        pass


@pytest.fixture
def layers():
    marey.register_module_type(Layer, parameters="params", gradients="grads", children="parts")
    yield
    marey.unregister_module_type(Layer)


def names(prof, prefix="nn.Module: "):
    return [node.name for node in depth_first(prof.tree()) if node.name.startswith(prefix)]


def nodes_named(prof, name):
    return [node for node in depth_first(prof.tree()) if node.name == name]


@MODES
def test_objects_are_numbered_by_class_name_in_order_of_their_first_calls(layers, c_calls):
    """upstream: test_profiler_experimental_tree_with_stack_and_modules (P11, P15, P19)"""
    for _ in range(3):
        net, other = Net(), Linear()
        with marey.profile(with_stack=True, c_calls=c_calls) as prof:
            other(1)
            net(1)
            other(1)
        assert names(prof) == [
            "nn.Module: Linear_0",
            "nn.Module: Net_0",
            "nn.Module: Linear_1",
            "nn.Module: Linear_2",
            "nn.Module: Linear_0",
        ]
    inner = nodes_named(prof, "nn.Module: Linear_1")[0]
    assert [child.name.rpartition(": ")[2] for child in inner.children] == ["Layer.forward"]


@needs_plain_allocator
@MODES
def test_a_new_object_at_an_old_address_gets_a_new_number(layers, c_calls):
    """(P19)"""
    seen = []
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        for _ in range(20):
            layer = Linear()
            seen.append(id(layer))
            layer(1)
            del layer
    assert len(set(seen)) < len(seen)  # addresses were reused
    assert names(prof) == [f"nn.Module: Linear_{i}" for i in range(20)]


@MODES
def test_the_number_of_object_names_is_bounded(c_calls):
    """Sites stay for the life of the process."""

    class Passing:
        params = {"w": numpy.zeros(3)}

        def __call__(self):
            pass

    marey.register_module_type(Passing, parameters="params")
    try:
        lasting = [Passing() for _ in range(50)]
        with marey.profile(with_stack=True, c_calls=c_calls) as prof:
            for each in lasting:
                each()
            for _ in range(6000):
                Passing()()
            for each in lasting:
                each()
    finally:
        marey.unregister_module_type(Passing)
    found = names(prof)
    assert len(found) == 6100 and found[:50] == found[-50:]
    assert not set(found[:50]) & set(found[50:-50])  # a number is one object's as long as it lives
    assert found[:1000] == [f"nn.Module: Passing_{i}" for i in range(1000)]
    assert len(set(found)) < 2500


def test_objects_without_weak_references_are_held_until_tracing_ends():
    class Slotted:
        __slots__ = ("params",)
        alive = 0

        def __init__(self):
            self.params = {"w": numpy.zeros(3)}
            Slotted.alive += 1

        def __del__(self):
            Slotted.alive -= 1

        def __call__(self):
            pass

    marey.register_module_type(Slotted, parameters="params")
    try:
        with marey.profile(with_stack=True) as prof:
            for _ in range(5):
                Slotted()()
            assert Slotted.alive == 5
        assert Slotted.alive == 0
    finally:
        marey.unregister_module_type(Slotted)
    assert names(prof) == [f"nn.Module: Slotted_{i}" for i in range(5)]
    (parameter,) = nodes_named(prof, "nn.Module: Slotted_4")[0].extra_fields.module.parameters
    assert parameter[0] == "w" and parameter[1].sizes == [3]


def test_recording_keeps_no_object_alive(layers):
    """upstream: test_refcounts"""
    layer = Linear()
    before = sys.getrefcount(layer)
    gone = weakref.ref(layer)
    with marey.profile(with_stack=True) as prof:
        layer(1)
        layer(1)
        assert sys.getrefcount(layer) == before
        del layer
        gc.collect()
        assert gone() is None
    assert names(prof) == ["nn.Module: Linear_0"] * 2


@MODES
def test_two_classes_with_the_same_name_share_the_numbers(layers, c_calls):
    first = type("Same", (Layer,), {})()
    second = type("Same", (Layer,), {})()
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        first(1)
        second(1)
    assert names(prof) == ["nn.Module: Same_0", "nn.Module: Same_1"]


@MODES
def test_a_subclass_that_overrides_call_is_a_module_if_it_calls_the_inherited_one(layers, c_calls):
    """(P15)"""

    class Silent(Layer):
        def __call__(self, value):
            return value

    class Wrapping(Layer):
        def __call__(self, value):
            return super().__call__(value)

    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        Silent()(1)
        Wrapping()(1)
    assert names(prof) == ["nn.Module: Wrapping_0"]
    assert nodes_named(prof, "nn.Module: Wrapping_0")[0].parent.name.endswith("Wrapping.__call__")


@MODES
def test_self_is_found_in_a_cell_and_among_star_arguments(c_calls):
    class Closing:
        def __call__(self):
            return (lambda: self)()

    class Starred:
        def __call__(*args, flag=None, **kwargs):
            return args[0]

    for cls in (Closing, Starred):
        marey.register_module_type(cls)
    try:
        with marey.profile(with_stack=True, c_calls=c_calls) as prof:
            Closing()()
            Starred()(1, flag=2, more=3)
    finally:
        for cls in (Closing, Starred):
            assert marey.unregister_module_type(cls)
    assert names(prof) == ["nn.Module: Closing_0", "nn.Module: Starred_0"]


def test_other_objects_that_run_the_same_code_are_plain_calls(layers):
    class Liar:
        @property
        def __class__(self):
            return Layer

    function = Layer.__call__
    liar = Liar()
    liar.forward = lambda value: value
    assert isinstance(liar, Layer)
    with marey.profile(with_stack=True) as prof:
        function(liar, 1)
    assert names(prof) == []
    assert any(node.name.endswith("Layer.__call__") for node in depth_first(prof.tree()))


@MODES
def test_names_are_kept_in_recursion_and_on_threads(layers, c_calls):
    class Deep(Layer):
        def forward(self, value):
            return self(value - 1) if value else 0

    deep = Deep()
    with marey.profile(with_stack=True, c_calls=c_calls) as prof:
        deep(50)
        threads = [threading.Thread(target=lambda: [deep(1) for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert names(prof) == ["nn.Module: Deep_0"] * (51 + 4 * 40)


def test_a_module_running_when_the_session_starts_has_its_name(layers):
    class Starting(Layer):
        def forward(self, value):
            self.prof = marey.profile(with_stack=True)
            self.prof.start()
            Linear()(1)
            self.prof.stop()

    starting = Starting()
    starting(1)
    assert names(starting.prof) == ["nn.Module: Starting_0", "nn.Module: Linear_0"]


def test_registration_takes_effect_in_a_running_session_until_unregistering():
    class Late:
        def __call__(self):
            pass

    late = Late()
    with marey.profile(with_stack=True) as prof:
        late()
        marey.register_module_type(Late)
        late()
        late()
        assert marey.unregister_module_type(Late)
        late()
    assert not marey.unregister_module_type(Late)
    assert names(prof) == ["nn.Module: Late_0"] * 2
    calls = [node for node in depth_first(prof.tree()) if node.tag.name == "PyCall"]
    assert sum(node.name.endswith("Late.__call__") for node in calls) == 2


def test_sessions_that_overlap_have_parameters_as_of_their_own_first_calls(layers):
    """(P16)"""
    layer = Linear()
    first = marey.profile(with_stack=True)
    second = marey.profile(with_stack=True)
    first.start()
    layer(1)
    layer.grads["weight"] = numpy.ones((2, 3))
    second.start()
    layer(1)
    second.stop()
    first.stop()
    of_first, of_second = (
        {name: grad for name, _, grad in nodes_named(prof, "nn.Module: Linear_0")[0].extra_fields.module.parameters}
        for prof in (first, second)
    )
    assert of_first == {"weight": None, "bias": None}
    assert of_second["weight"].sizes == [2, 3] and of_second["bias"] is None


def test_parameters_and_gradients_are_in_the_tree_of_every_call(layers):
    """upstream: test_nnmodule_params, test_module_and_optimizer_ids"""
    layer = Linear()
    layer.grads["bias"] = numpy.ones(2, "float64")
    layer.params["text"] = "no array"
    layer.params["nothing"] = None
    with marey.profile(with_stack=True) as prof:
        layer(1)
        layer(1)
    for node in nodes_named(prof, "nn.Module: Linear_0"):
        fields = node.extra_fields
        assert fields.optimizer is None
        info = fields.module
        assert (info.self_ptr, info.cls_ptr, info.cls_name, info.id) == (id(layer), id(Linear), "Linear", 0)
        (weight, array, weight_grad), (bias, _, grad) = info.parameters
        assert (weight, bias, weight_grad) == ("weight", "bias", None)
        assert (array.sizes, array.strides, array.dtype) == ([2, 3], [3, 1], "float32")
        assert array.storage_data_ptr == layer.params["weight"].ctypes.data
        assert (grad.dtype, grad.sizes, grad.storage_data_ptr) == ("float64", [2], layer.grads["bias"].ctypes.data)
        assert fields.callsite.function_name == "__call__" and fields.callsite.file_name == __file__
        assert fields.callsite.line_number == Layer.__call__.__code__.co_firstlineno
        assert fields.caller.function_name == "test_parameters_and_gradients_are_in_the_tree_of_every_call"


def test_optimizers_have_their_parameters_gradients_and_state():
    """upstream: test_optimizer, test_optimizer_parameters_sgd, test_optimizer_parameters_adam (P11, P17)"""
    layer = Linear()
    optimizer = Momentum([layer])
    weight, bias = layer.params.values()
    optimizer.state = [{"velocity": numpy.zeros((2, 3)), "step": 3}, {}]
    marey.register_module_type(
        Momentum,
        kind="optimizer",
        parameters="groups",
        gradients=lambda own: [None, numpy.ones(2)],
        state="state",
    )
    try:
        with marey.profile(with_stack=True) as prof:
            optimizer.step()
    finally:
        marey.unregister_module_type(Momentum)
    (node,) = nodes_named(prof, "Optimizer: Momentum_0")
    assert node.extra_fields.module is None
    info = node.extra_fields.optimizer
    assert (info.self_ptr, info.cls_name) == (id(optimizer), "Momentum")
    (first, first_grad, first_state), (second, second_grad, second_state) = info.parameters
    assert first.storage_data_ptr == weight.ctypes.data and second.storage_data_ptr == bias.ctypes.data
    assert first_grad is None and second_grad.sizes == [2]
    assert [(name, state.sizes) for name, state in first_state] == [("velocity", [2, 3])] and second_state == []


def test_an_optimizer_with_thousands_of_parameters_is_complete(tmp_path):
    class Large:
        def __init__(self):
            self.params = {f"p{i}": numpy.zeros((i % 5 + 1, 4)) for i in range(3000)}
            self.state = {name: {"m": array, "v": array} for name, array in self.params.items()}

        def step(self):
            pass

    marey.register_module_type(Large, kind="optimizer", parameters="params", gradients="params", state="state")
    try:
        session = marey.Session()
        session.start(with_stack=True, output=str(tmp_path / "large.marey"))
        Large().step()
        session.stop()
    finally:
        marey.unregister_module_type(Large)
    trace = marey.load(tmp_path / "large.marey")
    (node,) = [node for node in depth_first(trace.tree()) if node.name == "Optimizer: Large_0"]
    parameters = node.extra_fields.optimizer.parameters
    assert len(parameters) == 3000
    assert all(array.sizes == grad.sizes == [i % 5 + 1, 4] for i, (array, grad, _) in enumerate(parameters))
    assert all([name for name, _ in states] == ["m", "v"] for _, _, states in parameters)


def test_a_capture_has_the_same_tree_and_so_has_a_saved_trace(layers, tmp_path):
    net = Net()
    session = marey.Session()
    session.start(with_stack=True, with_modules=True, output=str(tmp_path / "net.marey"))
    net(1)
    kept = session.stop()
    kept.save(str(tmp_path / "saved.marey"))

    def facts(trace):
        return [
            (node.name, node.extra_fields.module)
            for node in depth_first(trace.tree())
            if node.name.startswith("nn.Module")
        ]

    assert len(facts(kept)) == 3 and facts(kept)[1][1].parameters[0][0] == "weight"
    assert facts(marey.load(tmp_path / "net.marey")) == facts(kept)
    assert facts(marey.load(tmp_path / "saved.marey")) == facts(kept)


class _Raising:
    """Every attribute access raises an exception."""

    def __getattr__(self, name):
        raise SystemError(name)

    def __hash__(self):
        raise SystemError("hash")

    def __eq__(self, other):
        raise SystemError("eq")


class _Wild(Layer):
    asked = 0

    @property
    def params(self):
        type(self).asked += 1
        raise SystemExit

    @params.setter
    def params(self, value):
        pass

    def __getattr__(self, name):
        type(self).asked += 1
        raise SystemExit(name)

    def forward(self, value):
        return value


@MODES
def test_exceptions_in_readers_never_reach_the_program(layers, c_calls):
    """(P20)"""

    def fail(own):
        raise SystemExit

    class Failing:
        def __call__(self):
            return 5

    marey.register_module_type(Failing, name=fail, parameters=fail, gradients=fail, state=fail, children=fail)
    layer = Linear()
    layer.params["odd"] = _Raising()
    layer.params[_Raising] = layer.grads["weight"] = _Raising()
    wild = _Wild()
    asked = _Wild.asked
    try:
        with marey.profile(with_stack=True, with_modules=True, c_calls=c_calls) as prof:
            assert layer(1) == 1 and wild(2) == 2 and Failing()() == 5
            try:
                raise KeyError("kept")
            except KeyError:
                layer(3)
                Failing()()
                assert isinstance(sys.exc_info()[1], KeyError)
    finally:
        marey.unregister_module_type(Failing)
    assert _Wild.asked == asked  # no code of its class ran
    assert names(prof)[:3] == ["nn.Module: Linear_0", "nn.Module: _Wild_0", "nn.Module: Failing_0"]
    parameters = nodes_named(prof, "nn.Module: Linear_0")[0].extra_fields.module.parameters
    assert [(name, grad) for name, _, grad in parameters] == [("weight", None), ("bias", None)]


def test_reading_objects_does_not_appear_in_the_trace():
    def parameters_asked(own):
        return {"w": numpy.zeros(2)}

    def name_asked(own):
        return "Named"

    class Asked:
        def __call__(self):
            pass

    marey.register_module_type(Asked, name=name_asked, parameters=parameters_asked)
    try:
        with marey.profile(with_stack=True) as prof:
            Asked()()
    finally:
        marey.unregister_module_type(Asked)
    assert names(prof) == ["nn.Module: Named_0"]
    assert not any(node.name.endswith(("parameters_asked", "name_asked")) for node in depth_first(prof.tree()))
    assert len(nodes_named(prof, "nn.Module: Named_0")[0].extra_fields.module.parameters) == 1


def test_only_the_exact_types_named_count_as_arrays():
    class Strict:
        def __init__(self):
            self.params = [numpy.zeros(2), numpy.zeros(3).view(numpy.recarray), b"", [1, 2]]

        def __call__(self):
            pass

    marey.register_module_type(Strict, parameters="params", arrays=numpy.ndarray)
    try:
        with marey.profile(with_stack=True) as prof:
            Strict()()
    finally:
        marey.unregister_module_type(Strict)
    (node,) = nodes_named(prof, "nn.Module: Strict_0")
    assert [array.sizes for _, array, _ in node.extra_fields.module.parameters] == [[2]]


def test_ranges_have_the_modules_that_they_ran_in(layers, tmp_path):
    """upstream: test_module_hierarchy (P37)"""
    net = Net()
    with marey.profile(with_stack=True, with_modules=True) as prof:
        net(1)
        with marey.record_function("outside"):
            pass
    events = {event.name: event for event in prof.events()}
    assert events["op"].module_hierarchy == "TOP(Net)::forward"
    assert events["outside"].module_hierarchy == ""
    assert events["nn.Module: Linear_0"].module_hierarchy == "TOP(Net)::forward.first(Linear)::forward"
    assert events["nn.Module: Linear_1"].module_hierarchy == "TOP(Net)::forward.second(Linear)::forward"
    assert events["nn.Module: Linear_1"].python_module_id == 1 and events["op"].python_module_id == -1
    prof.export_chrome_trace(str(tmp_path / "net.json"))
    args = {
        event["name"]: event.get("args", {})
        for event in json.loads((tmp_path / "net.json").read_text())["traceEvents"]
        if event["ph"] == "X"
    }
    assert args["op"]["Module Hierarchy"] == "TOP(Net)::forward"
    assert "Module Hierarchy" not in args["outside"]
    assert args["nn.Module: Linear_1"]["Python module id"] == 1
    assert args["nn.Module: Net_0"]["Python module id"] == 0 and "Python module id" not in args["op"]


def test_without_with_modules_children_are_named_by_class_and_number(layers, tmp_path):
    net = Net()
    with marey.profile(with_stack=True) as prof:
        net(1)
    events = {event.name: event for event in prof.events()}
    assert events["nn.Module: Linear_1"].module_hierarchy == "TOP(Net)::forward.Linear_1(Linear)::forward"
    prof.export_chrome_trace(str(tmp_path / "net.json"))
    assert "Module Hierarchy" not in (tmp_path / "net.json").read_text()


def test_the_example_in_the_docs_prints_the_documented_output(run_python):
    program, shown = re.findall(r"^```(?:python|text)\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)[:2]
    assert run_python(program) == shown
