"""Lists whose elements are created on first use."""

from marey._averages import average_of, set_shares
from marey._event_list import EventList
from marey._marey import Error


class View(EventList):
    """A list whose elements are created on first use. Changing it turns it into an ordinary EventList."""

    # ``_source`` implements __len__ and event(index).

    def _become_list(self):
        items = list(self)
        self._leave_source()
        self.__class__ = EventList
        list.extend(self, items)

    def _leave_source(self):
        self.__dict__.pop("_source", None)

    def _set_shares(self, averages):
        pass  # set when an event is created, or not at all

    def __len__(self):
        return len(self._source)

    def __bool__(self):
        return len(self._source) > 0

    def __getitem__(self, index):
        size = len(self._source)
        if isinstance(index, slice):
            event = self._source.event
            return [event(i) for i in range(*index.indices(size))]
        try:
            index = index.__index__()
        except AttributeError:
            raise TypeError(f"list indices must be integers or slices, not {type(index).__name__}") from None
        if index < 0:
            index += size
        if not 0 <= index < size:
            raise IndexError("list index out of range")
        return self._source.event(index)

    def __iter__(self):
        return map(self._source.event, range(len(self._source)))

    def __reversed__(self):
        return map(self._source.event, range(len(self._source) - 1, -1, -1))

    def __contains__(self, wanted):
        return any(event is wanted or event == wanted for event in self)

    def index(self, *args):
        return list(self).index(*args)

    def count(self, wanted):
        return sum(event is wanted or event == wanted for event in self)

    def copy(self):
        return list(self)

    def __add__(self, other):
        return list(self) + list(other) if isinstance(other, list) else NotImplemented

    def __radd__(self, other):
        return list(other) + list(self) if isinstance(other, list) else NotImplemented

    def __mul__(self, times):
        return list(self) * times

    __rmul__ = __mul__

    def __eq__(self, other):
        return list(self) == list(other) if isinstance(other, list) else NotImplemented

    def __ne__(self, other):
        return list(self) != list(other) if isinstance(other, list) else NotImplemented

    __hash__ = None

    def __reduce_ex__(self, protocol):
        options = {**self._options(), "_tree_built": True}
        return (_unpickled_list, (list(self), options))


def _unpickled_list(events, options):
    built = options.pop("_tree_built")
    made = EventList(events, **options)
    made._tree_built = built
    return made


def _changing(name):
    method = getattr(list, name)

    def change(self, *args, **kwargs):
        self._become_list()
        return method(self, *args, **kwargs)

    change.__name__ = name
    return change


for _name in "append extend insert remove pop clear sort reverse __setitem__ __delitem__ __iadd__ __imul__".split():
    setattr(View, _name, _changing(_name))
del _name


class AverageList(View):
    """A list of the averages that C++ computed."""

    def __init__(self, averages, options, *, by_input_shape, first_event, types):
        super().__init__(**options)
        self._source = _Averages(averages, options["use_device"], by_input_shape, first_event, types)
        self._tree_built = False

    def _averages(self):
        return self._source.averages if not self._source.is_changed() else super()._averages()

    def _device_name(self):
        return self._use_device or ""

    def key_averages(self, *args, **kwargs):
        raise Error("cannot group averages again: call key_averages() on the events")

    def _trace(self):
        raise Error("cannot export averages: they have no timestamps; export the events instead")


class _Averages:
    """Creates a FunctionEventAvg for each row on first use, and keeps it."""

    def __init__(self, averages, use_device, by_input_shape, first_event, types):
        self.averages = averages
        self._use_device = use_device
        self._by_input_shape = by_input_shape
        self._first_event = first_event
        self._types = types
        self._made = {}

    def __len__(self):
        return len(self.averages)

    def event(self, index):
        made = self._made.get(index)
        if made is None:
            row = self.averages.row(index)
            average = average_of(row, self._use_device, self._first_event, self._by_input_shape, self._types)
            set_shares(average, self.averages)
            made = self._made[index] = (average, dict(average.__dict__))
        return made[0]

    def is_changed(self):
        """Return whether an attribute of an average was changed since it was created."""
        return any(
            any(average.__dict__.get(name) != value for name, value in given.items())
            for average, given in self._made.values()
        )
