"""Emit: a proved network in another language, as functions or a circuit; `languages.LANGUAGES` lists them."""

from nsc.compiler.emit.languages import LANGUAGES, Emitted, compile_emitted, emitted

__all__ = ["LANGUAGES", "Emitted", "compile_emitted", "emitted"]
