"""Every public name has the parameters that it has in the installed PyTorch."""

import inspect

import pytest
import torch
import torch.autograd.profiler
import torch.profiler

import marey.torch

MODULES = {"torch.profiler": marey.torch, "torch.autograd.profiler": marey.torch.profiler}

# "name(parameter): difference" -> why Marey differs. A star stands for any text.
ACCEPTED = {
    "*.key_averages(include_python_functions): default None*": "None: as in the installed PyTorch.",
    "torch.autograd.profiler.profile(use_kineto): default None*": "None: device activity if it can be recorded.",
    "torch.autograd.profiler.profile(use_cuda): default None*": "None, as in torch.profiler.profile: not given.",
    "torch.autograd.profiler.FunctionEvent(*): not at position *": "The constructor is the same with all versions of "
    "PyTorch; versions differ in the order of the last parameters, which nobody gives by position.",
}


def public_names():
    for module, ours in MODULES.items():
        theirs = torch.profiler if module == "torch.profiler" else torch.autograd.profiler
        for name in theirs.__all__:
            yield f"{module}.{name}", getattr(theirs, name), getattr(ours, name, None)


def functions():
    """Yield (name, PyTorch's function, Marey's) for functions, constructors and methods; Marey's may be None."""
    for name, theirs, ours in public_names():
        if not inspect.isclass(theirs):
            if callable(theirs):
                yield name, theirs, ours
            continue
        if issubclass(theirs, (tuple, int)) or hasattr(theirs, "__members__"):
            continue  # an enumeration
        for member in dir(theirs):
            value = inspect.getattr_static(theirs, member)
            if (not member.startswith("_") or member == "__init__") and callable(getattr(theirs, member)):
                if member == "__init__":
                    yield name, theirs, ours
                elif not isinstance(value, type):
                    yield f"{name}.{member}", getattr(theirs, member), getattr(ours, member, None)


def parameters(function):
    """Return {name: parameter}, None if it is not known; for a class, of its constructor and those that it calls."""
    found = {}
    inherited = [function]
    if inspect.isclass(function):
        inherited = [vars(base)["__init__"] for base in inspect.getmro(function) if "__init__" in vars(base)]
    for each in inherited:
        try:
            own = inspect.signature(each).parameters
        except (TypeError, ValueError):  # built into a library
            return None
        found = {**{name: value for name, value in own.items() if name != "self"}, **found}
        passed_on = [name for name, value in found.items() if value.kind is value.VAR_KEYWORD]
        if not passed_on:
            break
        if each is not inherited[-1]:
            found.pop(passed_on[0])
    return found


def differences(theirs, ours):
    """Yield (parameter, why a call that PyTorch accepts means something else or fails)."""
    if ours is None:
        yield "", "missing"
        return
    theirs, ours = parameters(theirs), parameters(ours)
    if theirs is None or ours is None:
        return
    if [each.kind for each in ours.values()] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]:
        return  # written in C: its names are not known here
    takes_all = any(each.kind is each.VAR_KEYWORD for each in ours.values())
    places = [name for name, each in ours.items() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    place = 0
    for name, wanted in theirs.items():
        if wanted.kind in (wanted.VAR_POSITIONAL, wanted.VAR_KEYWORD):
            continue
        actual = ours.get(name)
        if actual is None:
            if not takes_all:
                yield name, "missing"
        elif repr(actual.default) != repr(wanted.default):  # enumerations are equal by name
            yield name, f"default {actual.default!r}, not {wanted.default!r}"
        if wanted.kind is wanted.POSITIONAL_OR_KEYWORD:
            if place >= len(places) or places[place] != name:
                yield name, f"not at position {place}"
            place += 1


def is_accepted(difference):
    import fnmatch

    return any(fnmatch.fnmatchcase(difference, pattern.replace("[", "[[]")) for pattern in ACCEPTED)


def test_every_function_takes_the_arguments_that_it_takes_in_pytorch():
    found = {
        f"{name}({parameter}): {why}"
        for name, theirs, ours in functions()
        for parameter, why in differences(theirs, ours)
    }
    assert sorted(difference for difference in found if not is_accepted(difference)) == []


def test_the_comparison_notices_a_renamed_a_moved_and_a_changed_parameter():
    def theirs(a, b=1, *, c=None): ...
    def same(a, b=1, *, c=None, more=()): ...
    def changed(b, a=1, *, d=None): ...

    assert list(differences(theirs, same)) == []
    assert [name for name, _ in differences(theirs, changed)] == ["a", "a", "b", "b", "c"]


@pytest.mark.parametrize("kind", [marey.torch.record_function, torch.profiler.record_function])
def test_ranges_take_the_same_arguments(kind):
    for arguments, named in ((["a"], {}), (["a", "b"], {}), (["a", None], {}), ([], {"name": "a", "args": "b"})):
        with kind(*arguments, **named):
            pass
    for arguments, named in (([], {}), (["a", "b", "c"], {}), (["a"], {"other": 1})):
        with pytest.raises(TypeError):
            kind(*arguments, **named)


@pytest.mark.parametrize("module", MODULES)
def test_frameworks_find_every_option_of_the_constructor(module):
    """Lightning passes on only the options that it finds among these parameters."""
    theirs = torch.profiler.profile if module == "torch.profiler" else torch.autograd.profiler.profile
    ours = MODULES[module].profile
    assert {*inspect.signature(theirs.__init__).parameters} - {*inspect.signature(ours.__init__).parameters} == set()
