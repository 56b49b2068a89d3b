"""The simulated device (tests/simulated), for the tests in this folder. Importing registers it once per process."""

import ctypes

from conftest import BUILD

LIBRARY = BUILD / "tests" / "libmarey_simulated.so"
FUNCTIONS = ctypes.CDLL(str(LIBRARY))
FUNCTIONS.marey_register_device()


def launch(name, us=50):
    """Launch a kernel of so many microseconds."""
    FUNCTIONS.marey_simulated_launch(0, 3, name.encode(), ctypes.c_uint64(us * 1000))


def copy(name, size, us=5):
    """Launch a copy of so many bytes."""
    FUNCTIONS.marey_simulated_copy(0, 3, name.encode(), ctypes.c_uint64(size), ctypes.c_uint64(us * 1000))


def wait():
    """Make one queue wait for another."""
    FUNCTIONS.marey_simulated_wait(0, 2, 3)


def use(device):
    """Record the calling thread's events in the queue of this device."""
    assert FUNCTIONS.marey_simulated_use(device, 3) == 0


def configure(**settings):
    for key, value in settings.items():
        assert FUNCTIONS.marey_simulated_configure(key.encode(), ctypes.c_double(value)) == 0


def reset():
    """Restore the initial settings."""
    FUNCTIONS.marey_simulated_reset()
    use(0)
