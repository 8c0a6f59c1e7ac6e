"""Messages that name arguments in the other language, or with a wrong plural or article."""

from __future__ import annotations

import pytest
from messages import check_words

from nsc.errors import NetworkError
from nsc.wording import an, argument, count, in_options


def test_an_argument_is_an_option_only_on_the_command_line():
    assert argument("index_base", 1) == "index_base=1"
    with in_options(lambda name: f"--{name.replace('_', '-')}"):
        assert argument("index_base") == "--index-base"
        assert argument("index_base", 0) == "--index-base 0"
        assert argument("unproved", True) == "--unproved"
        assert argument("targets", ("cpu", "cuda")) == "--targets cpu,cuda"
    assert argument("index_base") == "index_base"


def test_an_error_ends_the_language_of_options():
    with pytest.raises(NetworkError), in_options(str.upper):
        raise NetworkError("no network")
    assert argument("n") == "n"


@pytest.mark.parametrize("number", [0, 1, 2, 1000])
def test_counts_and_articles_fit(number):
    for noun in ("wire", "output", "rank", "comparator"):
        check_words(f"{count(number, noun)} and {an(noun)}")


@pytest.mark.parametrize(
    "text", ["1 wires", "of 1 values", "a output wire", "an rank", "leave it out,, or not", "1,\n, 2"]
)
def test_wrong_words_are_found(text):
    with pytest.raises(AssertionError):
        check_words(text)


@pytest.mark.parametrize("text", ["0, 1, 2", "1 is", "0 … 1 wires", "a sort", "11 wires", "n = 1, values"])
def test_right_words_pass(text):
    check_words(text)
