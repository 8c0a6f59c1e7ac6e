"""Exact: from a task to the texts of a kernel that sorts, or selects, numbers of any type."""
