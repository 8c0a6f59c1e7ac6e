"""Explorer: a network as a page to explore, or as a picture.

The order of the files: facts (from a request to what a page shows), page (from facts to HTML), drawing
(`nsc.draw`), pictures (PNG and PDF). The folder web has the parts of the page.
"""
