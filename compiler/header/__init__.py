"""Header: from a schedule to the C header of an exact sort or selection."""
