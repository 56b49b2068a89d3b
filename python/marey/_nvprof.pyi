"""Reads nvprof files as lists of events."""

import os

from marey._event_list import EventList
from marey._events import FunctionEvent

def parse_nvprof_trace(path: str | os.PathLike[str]) -> list[FunctionEvent]: ...
def load_nvprof(path: str | os.PathLike[str]) -> EventList: ...
