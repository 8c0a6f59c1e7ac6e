"""The compiler: from a comparator graph to proved, readable source text. Knows no torch and no machine."""
