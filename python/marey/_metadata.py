"""What is said about a recording: texts and JSON values that the library takes."""

from marey._marey import Error, Trace


def metadata_text(value):
    """A value as JSON."""
    import json

    return json.dumps(_plain(value) if isinstance(value, str) else value)


def _plain(text):
    """As UTF-8 can say it: what it cannot is escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def checked_metadata(key, value):
    """The two as the library takes them; raises where it would not."""
    for what, text in (("key", key), ("value", value)):
        if not isinstance(text, str):
            raise TypeError(f"the {what} of metadata is a str, not {text!r}")
    key, value = _plain(key), _plain(value)
    try:
        Trace()._with_metadata(key, value)
    except Error:
        raise ValueError(f"the metadata of {key!r} is not JSON: {value[:100]!r}") from None
    return key, value
