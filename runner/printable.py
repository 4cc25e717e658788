"""Texts that every file, store and terminal takes."""


def printable(text: str) -> str:
    """The text with lone surrogates spelt out (`\\udcff`): what os.fsdecode makes of a file name
    that is no UTF-8 stands in the messages of exceptions, and nothing can write it."""
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")
