"""Formats: how a network is read from a file and written to one; `files.FORMATS` is their table.

Reading takes a text's format from its content, the first in the table that it looks like, unless the user
states it. Comments before a network are passed over in every format, and further comments in lists.
`listing.settle` decides, once for all formats, what a text leaves open. If a text can be read in two ways,
that is an error, which names the option that decides.

- *Counting from 0 or 1.* nsc and ascii count wires from 0 and Knuth's text from 1, by definition;
  stating another base for these is an error. The others are read from 0. A text in which wire 0 is never used
  is an error if wire n is used, or if n is stated nowhere: state an index base of 0 or 1.
- *Number of wires.* n stated twice must agree. If it is stated nowhere, it is the highest wire plus one,
  provided that all wires up to that one are used; else an error lists the unused ones. Wires above the
  highest used one cannot be seen: state n.
- *A layer or a network per line.* A list in brackets is a layer if others stand beside it: one that touches a
  wire twice is a whole network and an error. Newlines alone divide no layers.
- *Several networks.* Functions and lists with names are networks of their own. A name or n chooses one; a
  body or a list with anything else in it is an error.
- *Flat or layered.* Lists go by their nesting. Flat lists are relayered: each comparator as early as it can
  be. An empty list is an error unless n is stated.
- *Reversed comparators* (lo > hi) leave the minimum on the higher wire, in every format.
- *A wire twice in a layer*, and lo = hi, are errors.
- *Progressions* in nsc-network/1, and families in the place of layers, stand for as many comparators as they
  say: 20 kB may be a network of half a million, and take its memory.
"""

from nsc.compiler.diagram import notebook_svg
from nsc.compiler.formats.files import (
    FORMATS,
    format_of_path,
    losses,
    parse_network,
    read_network,
    read_networks,
    readable,
    save,
    writable,
    write_network,
)
from nsc.compiler.formats.graphs import graph_of, network_of_graph
from nsc.compiler.formats.json_lists import LONGEST_LISTED, LONGEST_PLAIN, named, network_of_lists

__all__ = [
    "FORMATS",
    "LONGEST_LISTED",
    "LONGEST_PLAIN",
    "format_of_path",
    "graph_of",
    "losses",
    "named",
    "network_of_graph",
    "network_of_lists",
    "notebook_svg",
    "parse_network",
    "read_network",
    "read_networks",
    "readable",
    "save",
    "writable",
    "write_network",
]
