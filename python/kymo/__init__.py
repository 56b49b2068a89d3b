"""Kymo: a profiler for C++ and Python programs."""

from kymo._kymo import Error, Session, Trace, load, record_function

__all__ = ["Error", "Session", "Trace", "load", "record_function"]
