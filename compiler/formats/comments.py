"""Comments of texts, which say nothing of a network."""

from __future__ import annotations

import re

from nsc.errors import NetworkError

_LEADING = re.compile(r"\s*(?:#[ \t]*define\b(?:[^\\\n]|\\.)*|#[^\n]*|//[^\n]*|/\*.*?\*/)", re.DOTALL)
# Conditions of a preprocessor are no comments: what they enclose may be left out.
# An unclosed /* runs to the end, so that the text is gone through once; it is refused after that.
_COMMENT = re.compile(
    r'"[^"\n]*"|(?<!:)//[^\n]*|#[ \t]*define\b(?:[^\\\n]|\\.)*'
    r"|#(?![ \t]*(?:ifdef|ifndef|endif)\b|(?:if|else|elif)\b)[^\n]*|/\*.*?(?:\*/|\Z)",
    re.DOTALL,
)


def without_leading_comments(text: str) -> str:
    """Return a text without the comments before its network; lines keep their numbers."""
    place = 0
    while comment := _LEADING.match(text, place):
        place = comment.end()
    return "\n" * text.count("\n", 0, place) + text[place:]


def without_comments(text: str) -> str:
    """Return a text without C's comments and without those from ``#`` on; lines keep their numbers.

    Raises:
        NetworkError: a comment without an end.
    """
    if not any(mark in text for mark in ("#", "//", "/*")):
        return text
    return _COMMENT.sub(_without_comment, text)


def _without_comment(match: re.Match[str]) -> str:
    comment = match[0]
    if comment.startswith('"'):  # a string, in which nothing is a comment
        return comment
    if comment.startswith("/*") and (len(comment) < 4 or not comment.endswith("*/")):
        line = match.string.count("\n", 0, match.start()) + 1
        raise NetworkError(f"line {line}: the comment /* has no end */")
    return re.sub(r"[^\n]", " ", comment)
