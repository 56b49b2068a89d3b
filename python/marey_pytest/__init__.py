"""A pytest plugin: ``pytest --marey`` shows the slowest tests and where their time went.

Nothing of Marey is imported before an option, a marker or the fixture needs it.
"""

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from marey_pytest.calls import RecordedCalls

MARKER = """marey(time="<50ms", calls={"module.function": "<=3"}): fail the test if its call takes longer, or if a \
function is called more often"""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("marey", "recording with Marey")
    group.addoption("--marey", action="store_true", help="Record the tests and show where the slowest spent their time")
    group.addoption("--marey-out", metavar="DIR", help="Keep the recording in this folder, as pytest.marey")
    group.addoption("--marey-each", action="store_true", help="Write a capture for each test to --marey-out instead")
    group.addoption("--marey-no-calls", action="store_true", help="Record tests, fixtures and marked ranges only")
    group.addoption(
        "--marey-package",
        metavar="NAME",
        action="append",
        help="Record all calls of this package, though it is installed (default: the project's own); repeatable",
    )
    group.addoption("--marey-tests", metavar="N", type=int, default=10, help="Number of tests to show (default: 10)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    options = config.option
    if not (options.marey or options.marey_out or options.marey_each or options.marey_no_calls):
        return
    if options.marey_each and not options.marey_out:
        raise pytest.UsageError("--marey-each needs --marey-out DIR, the folder for the captures")
    if options.collectonly:
        return
    from marey_pytest.recording import Recording

    config.pluginmanager.register(Recording(config), "marey_recording")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any("marey" in item.keywords and item.get_closest_marker("marey") is not None for item in items):
        from marey_pytest.limits import Limits

        config.pluginmanager.register(Limits(), "marey_limits")


@pytest.fixture
def marey_trace() -> "Iterator[RecordedCalls]":
    """The calls that the test makes, for assertions: ``assert marey_trace.calls("json.loads") == 1``."""
    from marey_pytest.calls import RecordedCalls

    with RecordedCalls() as recorded:
        yield recorded
