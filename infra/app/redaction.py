"""Texts of anybody's made fit to be stored: short, without secrets, and valid.

A handler may raise anything: five megabytes of text, lone surrogates, a password inside a URL.
"""

from __future__ import annotations

import re

from ...domain.limits import ERROR_CHARS_MAX

#: Only this much of a text is looked at, so that a huge one costs nothing.
TEXT_CHARS_READ = 8_000

# Every repetition is bounded and nothing stands before the word that gives a secret away: a handler
# chooses the text, and a search that tries again and again would hold up the whole process.
_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    # A password that was not quoted for its URL may hold "@" and "/" itself.
    (re.compile(r"(://[^\s/:@?#]{0,100}):\S{1,2000}@"), r"\1:***@"),
    # A token that stands where the user's name belongs.
    (re.compile(r"(https?://)[^\s/:@?#]{1,500}@", re.IGNORECASE), r"\1***@"),
    (re.compile(r"(://)[^\s/:@?#]{20,500}@"), r"\1***@"),
    # Addresses that are secrets themselves: whoever knows one may post there.
    (re.compile(r"(hooks\.slack\.com/\w{1,20}/)[^\s?#]{1,500}", re.IGNORECASE), r"\1***"),
    (re.compile(r"(discord(?:app)?\.com/api/webhooks/)[^\s?#]{1,500}", re.IGNORECASE), r"\1***"),
    (re.compile(r"(api\.telegram\.org/bot)[^\s/?#]{1,500}", re.IGNORECASE), r"\1***"),
    (re.compile(r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----)[^-]{1,8000}"), r"\1***"),
    (
        re.compile(r"\b(bearer|basic|auth plain)\s{1,5}[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE),
        r"\1 ***",
    ),
    (
        re.compile(
            r"((?:password|passwd|passphrase|pwd|secret|token|credential|signature"
            r"|(?:api|access|private|signing)[_-]?key|authorization|cookie|session[_-]?id)"
            r"[\w-]{0,40}(?:(?:\\{0,2}[\"'])?\s{0,5}(?:[=:>]|%3[ad])|[\"']\s{0,5},)\s{0,5})"
            r"(\\{1,2}\"[^\"\\]*|\"(?:[^\"\\]|\\.)*(?:\"|$)|'(?:[^'\\]|\\.)*(?:'|$)|[^\s,;&)}\]<]+)",
            re.IGNORECASE,
        ),
        r"\1***",
    ),
    (
        re.compile(r"(--(?:password|passwd|token|secret|api-key)\s{1,5})\S+", re.IGNORECASE),
        r"\1***",
    ),
    (re.compile(r"(\bpass\s{0,5}[=:]\s{0,5})[^\s,;&)}\]]+", re.IGNORECASE), r"\1***"),
    (re.compile(r"([?&](?:sig|key|auth|code|pass)=)[^\s&#]{1,2000}", re.IGNORECASE), r"\1***"),
    (re.compile(r"\b(?:sk|pk|rk|gh[pousr]|xox[abeprs]|glpat)[-_][A-Za-z0-9_-]{10,}"), "***"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"), "***"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}(?:\.[A-Za-z0-9_-]*)?"), "***"),
)


def redact(text: str) -> str:
    """``text`` with what looks like a credential replaced by ``***``."""
    text = text[:TEXT_CHARS_READ]
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def bounded(text: str, most: int) -> str:
    """``text`` made storable, and cut to ``most`` characters with a mark where it was cut."""
    text = text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else text[: most - 2] + " …"


def reason_text(reason: object) -> str:
    """What a handler gave as its reason, as it is stored."""
    text = reason if isinstance(reason, str) else repr(reason)
    return bounded(redact(text), ERROR_CHARS_MAX)
