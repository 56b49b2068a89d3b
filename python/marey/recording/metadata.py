"""Converts metadata to the text and JSON values that the library accepts."""

from __future__ import annotations

from marey._marey import Error, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def metadata_text(value: Any) -> str:
    """Return a value as JSON."""
    import json

    return json.dumps(_plain(value) if isinstance(value, str) else value)


def _plain(text: str) -> str:
    """Return the text with characters that UTF-8 cannot encode escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def checked_metadata(key: str, value: str) -> tuple[str, str]:
    """Check a key and a JSON value, and return both as the library accepts them."""
    for what, text in (("key", key), ("value", value)):
        if not isinstance(text, str):
            raise TypeError(f"the {what} of metadata must be a str, not {text!r}")
    key, value = _plain(key), _plain(value)
    try:
        Trace()._with_metadata(key, value)
    except Error:
        raise ValueError(f"invalid metadata: the value of {key!r} is not JSON: {value[:100]!r}") from None
    return key, value
