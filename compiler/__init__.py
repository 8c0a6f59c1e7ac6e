"""The compiler: from a comparator graph to proved, readable source text. Knows no torch and no machine.

A network is compiled as given. Reversed comparators cost nothing: a relaxed comparator is symmetric in its
wires, so only the sign of a difference changes. Layers are the user's, because the default steepness is 2 ×
depth. Only a selection changes the network: to the comparators that its ranks depend on.
"""
