"""Names as MLflow takes them: a reversible spelling for keys, a bounded one for values.

MLflow keys hold word characters and `/ . - : space`, at most 250 of them, and must be their own
normalised path. Every other character is written `_uHEX_` (its code point), and so is the
underscore that begins such a group in the original, so that `original(safe(key)) == key`.
"""

import hashlib
import re

KEY_LENGTH = 250
VALUE_LENGTH = 6000
TAG_LENGTH = 8000

_REFUSED = re.compile(r"[^\w/.\-: ]|_(?=u[0-9a-f]+_)")
_WRITTEN = re.compile(r"_u([0-9a-f]+)_")


def safe(key: str) -> str:
    """The key as MLflow takes it; unchanged where MLflow takes it as it is.

    A key over the length limit ends in a hash of the whole.
    """
    parts = [_segment(part) for part in _REFUSED.sub(_coded, key).split("/")]
    # a slash at an end, or two in a row, leaves an empty part
    text = (_code("/") if "" in parts else "/").join(parts)
    if len(text) > KEY_LENGTH:
        text = f"{text[: KEY_LENGTH - 17]}_{_digest(text)}"
    return text


def original(key: str) -> str:
    """The key that `safe` was given, unless it was over the length limit."""
    return _WRITTEN.sub(lambda found: chr(int(found.group(1), 16)), key)


def _segment(part: str) -> str:
    return part.replace(".", _code(".")) if part in (".", "..") else part


def _coded(found: re.Match[str]) -> str:
    return _code(found.group())


def _code(character: str) -> str:
    return f"_u{ord(character):x}_"


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning with a hash of the whole and its length."""
    if len(text) <= limit:
        return text
    end = f"... sha256:{_digest(text)} of {len(text)} characters"
    return text[: limit - len(end)] + end


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
