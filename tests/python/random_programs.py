"""Programs made from plans: trees of (action, plans for the action). Covers every way in which Python calls Python."""

import contextlib
import functools
import re
import types

from hypothesis import strategies as st


class Fault(Exception):
    pass


def call_and_catch(plan):
    try:
        run(plan)
    except Fault:
        pass


def generate(plans):
    try:
        for plan in plans:
            run(plan)
            yield plan
    finally:
        len(plans)


def delegate(plans):
    yield from generate(plans)


def half(plans):
    generator = delegate(plans)
    next(generator, None)
    try:
        generator.throw(Fault)
    except (Fault, StopIteration):
        pass


def leave(plans):
    generator = delegate(plans)
    next(generator, None)
    generator.close()


async def wait_for(plans):
    for plan in plans:
        await Pause(plan)


class Pause:
    def __init__(self, plan):
        self.plan = plan

    def __await__(self):
        yield self.plan
        run(self.plan)


async def yielding(plans):
    for plan in plans:
        run(plan)
        yield plan


async def loop_over(plans):
    async for plan in yielding(plans):
        call_and_catch(plan)


def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except (StopIteration, Fault):
        pass


class Thing:
    """Calls in the slots of a class."""

    def __new__(cls, plan):
        return super().__new__(cls)

    def __init__(self, plan):
        self.plan = plan
        run(plan)

    @property
    def value(self):
        return run(self.plan)

    def __call__(self, *others):
        call_and_catch(self.plan)
        return len(others)

    def __len__(self):
        call_and_catch(self.plan)
        return 3

    def __getattr__(self, name):
        run(self.plan)
        return name

    def __add__(self, other):
        run(self.plan)
        return other

    def __lt__(self, other):
        call_and_catch(self.plan)
        return False


class Gone:
    def __init__(self, plan):
        self.plan = plan

    def __del__(self):
        call_and_catch(self.plan)


class Guard:
    def __init__(self, plan):
        self.plan = plan

    def __enter__(self):
        call_and_catch(self.plan)

    def __exit__(self, *error):
        call_and_catch(self.plan)
        return True


@contextlib.contextmanager
def guarded(plan):
    call_and_catch(plan)
    try:
        yield
    finally:
        call_and_catch(plan)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **keywords):
        return function(*args, **keywords)

    return wrapper


@decorated
def wrapped(plan, *rest, last=None):
    return run(plan)


@functools.singledispatch
def dispatched(plan):
    return run(plan)


def mixed(callee, *args):
    """One call site that calls all kinds of callables."""
    return callee(*args)


def plain(callee, arg):
    return callee(arg)


def down(depth, plan):
    if depth == 0:
        return run(plan)
    return down(depth - 1, plan)


def step_call(plans):
    for plan in plans:
        run(plan)


def step_raise(plans):
    raise Fault


def step_sorted(plans):
    sorted(plans, key=lambda each: len(each[1]))
    max(plans, key=call_and_catch, default=None) if len(plans) < 2 else None
    sorted(map(Thing.__new__, [Thing] * len(plans), plans), key=lambda thing: 1)


def step_map(plans):
    list(map(call_and_catch, plans))
    list(filter(lambda plan: run(plan), plans))


def step_sub(plans):
    rest = list(plans)
    re.sub("a", lambda match: call_and_catch(rest.pop()) or match.group(), "a" * len(plans))


def step_partial(plans):
    for plan in plans:
        functools.partial(run, plan)()
        functools.partial(wrapped, plan, 1)(last=2)


def step_reduce(plans):
    functools.reduce(lambda so_far, plan: run(plan), plans, None)


def step_construct(plans):
    for plan in plans:
        thing = Thing(plan)
        thing(*plans)
        len(thing)
        thing.value


def step_slots(plans):
    things = [Thing.__new__(Thing, plan) for plan in plans]
    for thing, plan in zip(things, plans, strict=True):
        thing.__dict__["plan"] = plan
        thing.missing
        thing + 1
    sorted(things)


def step_delete(plans):
    for plan in plans:
        Gone(plan)
    gone = Gone(("call", plans))
    del gone


def step_guard(plans):
    for plan in plans:
        with Guard(plan), guarded(plan):
            run(plan)


def step_decorated(plans):
    for plan in plans:
        wrapped(plan, *plans, last=1)
        wrapped(*(plan, 2), last=3)
        dispatched(plan)


def step_comprehension(plans):
    [run(plan) for plan in plans]
    {len(plan): [run(each) for each in plan[1]] for plan in plans}
    any(run(plan) for plan in plans)


def step_mixed(plans):
    for plan in plans:
        for callee in (run, len, call_and_catch, str, Thing, functools.partial(run), plan[1].count):
            with contextlib.suppress(Fault):
                mixed(callee, plan)
                plain(callee, plan)
    mixed(list, map(functools.partial(mixed, call_and_catch), plans))
    plain(list, map(functools.partial(plain, call_and_catch), plans))


def step_bound(plans):
    for plan in plans:
        types.MethodType(run, plan)()
        method = [].append
        method(plan)


def step_generate(plans):
    for _ in delegate(plans):
        pass
    [*generate(plans)]


def step_async(plans):
    drive(wait_for(plans))
    drive(loop_over(plans))


def step_deep(plans):
    for plan in plans:
        down(5, plan)


def step_evaluated(plans):
    for plan in plans:
        eval("run(plan)", {"run": run, "plan": plan})
        exec("class Made:\n    run(plan)", {"run": run, "plan": plan, "__name__": "made"})


def step_throw(plans):
    half(plans)
    leave(plans)


def step_try(plans):
    for plan in plans:
        call_and_catch(plan)
        try:
            int("x" + str(len(plan)))
        except ValueError:
            pass


STEPS = {name.removeprefix("step_"): step for name, step in list(globals().items()) if name.startswith("step_")}


def run(plan):
    """Execute a plan."""
    kind, plans = plan
    STEPS[kind](plans)


KINDS = st.sampled_from(sorted(STEPS))
PLANS = st.recursive(
    st.tuples(KINDS, st.just(())), lambda inner: st.tuples(KINDS, st.lists(inner, max_size=3).map(tuple)), max_leaves=8
)
