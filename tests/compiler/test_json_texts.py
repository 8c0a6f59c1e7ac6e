"""Lists decoded in pieces equal those that json reads, and text that json refuses is refused."""

import itertools
import random

import pytest

from nsc.compiler.formats import json_texts, parse_network
from nsc.compiler.formats.json_texts import JsonList, json_list, json_object
from nsc.errors import NetworkError
from nsc.strict_json import read_json

TEXTS = [
    "[]",
    " [ ] ",
    "[[0,1],[2,3],[4,5],[6,7],[8,9]]",
    "[[[0,1],[2,3]],[],[[4,5]],\n[[6,7], [8,9]]]",
    '{"n": 4, "layers": [[[0,1],[2,3]],[[4,5],[6,7]]], "note": "]}[{\\"", "more": {"layers": [1, 2]}}',
    '{"layers": [], "n": 1}',
    '{"layers": 3}',
    "{}",
]
SIGNS = '[]{},:"0 \\-.eE\nna'


def decoded(text):
    """Return the value of a text that is decoded in pieces."""
    if text.lstrip()[:1] == "[":
        return list(itertools.chain.from_iterable(json_list(text)))
    return {
        key: list(itertools.chain.from_iterable(value)) if isinstance(value, JsonList) else value
        for key, value in json_object(text, "layers").items()
    }


def mutated(text):
    start = random.randrange(len(text) + 1)
    end = min(len(text), start + random.choice([0, 1, 1, 5]))
    return text[:start] + random.choice(["", *SIGNS]) + text[end:]


@pytest.mark.parametrize("piece", [1, 7, 1 << 16])
def test_the_values_are_those_of_json(piece, monkeypatch):
    monkeypatch.setattr(json_texts, "_PIECE", piece)
    accepted = 0
    for text in [*TEXTS, *(mutated(random.choice(TEXTS)) for _ in range(3000))]:
        try:
            value = read_json(text)
        except ValueError:
            value = None
        if isinstance(value, dict | list):
            assert decoded(text) == value, text
            accepted += 1
        else:
            with pytest.raises(NetworkError):
                decoded(text)
    assert accepted > 300


def test_errors_name_the_place_in_the_whole_text(monkeypatch):
    monkeypatch.setattr(json_texts, "_PIECE", 8)
    text = "[[0,1],\n[2,3],\n[4,5],\n[6;7],\n[8,9]]"
    with pytest.raises(NetworkError, match=r"line 4 column 3 \(char 24\)"):
        decoded(text)
    with pytest.raises(NetworkError, match=r"item 3: a comparator is \[lo, hi\], found \[6\]"):
        parse_network(text.replace(";7", ""), format="json")


def test_a_key_twice_is_an_error():
    for text, key in (
        ('{"format":"nsc-network/1","n":2,"layers":[],"layers":[[[0,1]]]}', "layers"),
        ('{"format":"nsc-network/1","n":2,"by":{"who":1,"who":2},"layers":[[[0,1]]]}', "who"),
        ('[[0,1],{"lo":0,"lo":1}]', "lo"),
    ):
        with pytest.raises(NetworkError, match=f'the key "{key}" is stated twice'):
            parse_network(text)
