"""``marey.LogHandler``: log records as instants."""

from __future__ import annotations

import logging

from marey._marey import is_recording, message_instant


class LogHandler(logging.Handler):
    """Record log messages as instants: ``logging.getLogger().addHandler(marey.LogHandler())``.

    An instant is named by level and logger, as in "WARNING shop.cart", and has the formatted message and its place in
    the source as values. Messages are formatted only while a session records.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if not is_recording():
            return
        try:
            place = f"{record.pathname}:{record.lineno}"
            message_instant(f"{record.levelname} {record.name}", self.format(record), place)
        except Exception:
            self.handleError(record)
