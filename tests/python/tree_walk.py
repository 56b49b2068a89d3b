"""Walks over the nodes of an event tree."""


def depth_first(roots):
    """Yield every node, parents before their children."""
    waiting = list(roots)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)
