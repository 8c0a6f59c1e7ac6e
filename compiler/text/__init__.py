"""Text: what the emitters of all subjects share: lines of tables, straight-line code, records."""
