"""Random trees of calls with random filters, compared with a plain model of the filters."""

import gc
import math

import call_trees
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import marey

MODES = pytest.mark.parametrize("c_calls", [False, True], ids=["python", "with_c"])

TREE_SOURCE = """
def call(node):
    for function, *rest in node[1]:
        CALLS[function]((function, *rest))
    if node[2]:
        math.hypot(4, 6)
"""
CALLS = {}
MODULES = {
    "shop.cart": "/srv/shop/cart.py",
    "shop.till": "/srv/shop/till.py",
    "stock": "/srv/stock.py",
    "lib.one": "/opt/site-packages/lib/one.py",
    "lib.two": "/opt/site-packages/lib/two.py",
}
for module_name, module_file in MODULES.items():
    CALLS[module_name] = call_trees.make_module(module_name, module_file, TREE_SOURCE, CALLS=CALLS, math=math)["call"]

TREES = st.recursive(
    st.tuples(st.sampled_from(sorted(MODULES)), st.just(()), st.booleans()),
    lambda inner: st.tuples(st.sampled_from(sorted(MODULES)), st.lists(inner, max_size=3).map(tuple), st.booleans()),
    max_leaves=25,
)
PATTERN_MODULES = ["shop", "shop.cart", "stock", "lib", "lib.two", "math"]
FILTERS = st.fixed_dictionaries(
    {
        "include": st.one_of(st.just([]), st.lists(st.sampled_from(PATTERN_MODULES), max_size=3)),
        "exclude": st.lists(st.sampled_from(PATTERN_MODULES), max_size=2),
        "fold_libraries": st.booleans(),
        "max_depth": st.integers(0, 4),
    }
)


def model(tree, c_calls, include, exclude, fold_libraries, max_depth):
    """[(name, parent's place in the list or None)] of the calls that a filter lets through."""
    found = []

    def covers(patterns, module):
        return any(module == pattern or module.startswith(pattern + ".") for pattern in patterns)

    def is_taken(module):
        return (not include or covers(include, module)) and not covers(exclude, module)

    def visit(node, parent, depth, is_in_library):
        module, children, makes_c_call = node
        is_library = module.startswith("lib.")
        if is_taken(module):
            if max_depth and depth >= max_depth:
                return
            if not (fold_libraries and is_library and is_in_library):
                found.append((module, parent))
                parent, depth = len(found) - 1, depth + 1
            is_in_library = is_library
        for child in children:
            visit(child, parent, depth, is_in_library)
        if makes_c_call and c_calls and is_taken("math") and not (fold_libraries and is_library):
            found.append(("math.hypot", parent))

    visit(tree, None, 0, False)
    return found


def seen(prof):
    """The same from a trace."""
    by_file = {file: module for module, file in MODULES.items()}
    rows = call_trees.rows(prof)
    found, places = [], {}
    for index, row in enumerate(rows):
        name = by_file.get(row["name"].partition("(")[0], row["name"])
        if name not in MODULES and name != "math.hypot":
            continue
        parent = row["parent"]
        while parent is not None and parent not in places:
            parent = rows[parent]["parent"]
        places[index] = len(found)
        found.append((name, places.get(parent)))
    return found


@pytest.fixture
def no_collection():
    gc.disable()
    yield
    gc.enable()


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(tree=TREES, filters=FILTERS)
@MODES
def test_random_trees_are_filtered_like_the_model(no_collection, c_calls, tree, filters):
    with marey.profile(with_stack=True, c_calls=c_calls, **filters) as prof:
        CALLS[tree[0]](tree)
    assert seen(prof) == model(tree, c_calls, **filters)
