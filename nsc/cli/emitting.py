"""nsc emit: networks in other languages."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from nsc.cli.outputs import check_json, output_at
from nsc.cli.reporting import reporting
from nsc.cli.shared import (
    Limits,
    ResultOptions,
    counts_of,
    dtype_option,
    limit_options,
    off_by_option,
    remove_redundant_option,
    result_options,
    say_proof,
    selection_options,
    unproved_option,
    wires_option,
)
from nsc.cli.sources import Source, network_options
from nsc.compiler.emit import LANGUAGES, compile_emitted
from nsc.compiler.package import replaces_file, write_file
from nsc.contract.exact import C_TYPES


@click.command("emit")
@click.argument("language", metavar="LANGUAGE", type=click.Choice(list(LANGUAGES)))
@network_options
@selection_options
@wires_option
@off_by_option
@remove_redundant_option
@dtype_option(C_TYPES, "Types of values, for C: {}.", default=("float32",))
@result_options
@limit_options
@unproved_option
def emit_command(
    language: str, source: Source, result: ResultOptions, limits: Limits, **options: Any
) -> None:
    """Prove a network and write it in another language: functions, or a circuit, that sort or select exactly.

    LANGUAGE is {}. The text depends on nothing, and is written to OUT/NAME with the language's suffix. OUT is
    a folder, or the file itself if it has a suffix; - is standard output.

    With --top-k, --median or --ranks only these values are results. --wires names the wires on which a
    network file leaves these values. With --off-by the network may be an approximate one, such as nsc search
    finds: it is proved that ranks are at most so far off. For C, a window such as 3x3 in the place of
    NETWORK, with --median or --rank R, gives the functions of a filter of images.

    --dtype takes one value, several with commas, or is repeated.
    """
    output, name = output_at(result.folder, "a text"), result.name
    check_json(result.as_json, output, "text")
    file = output.path
    is_file = file is not None and file.suffix != "" and not file.is_dir()
    if file is not None and is_file:
        if name not in (None, file.stem):
            raise click.UsageError(f"the text is named twice, {file} and --name {name}: name it once")
        name = file.stem
    start = time.perf_counter()
    with reporting(result.verbose) as progress:
        request = source.request(progress, name=name, language=language, **options)
        emitted = compile_emitted(request, limits.budget(progress))
        if file is None:
            click.echo(output.write(emitted.text.encode()), nl=False)
            return
        progress.phase("write")
        place = file if is_file else file / emitted.file
        replaced = replaces_file(place, emitted.text)
        write_file(place, emitted.text)
    seconds = time.perf_counter() - start
    if result.as_json:
        facts = {
            "name": emitted.name,
            "language": language,
            "file": str(place),
            "replaced": replaced,
            **counts_of(emitted.network),
            "proof": emitted.proof.facts(),
            **({"dtypes": request.dtypes} if LANGUAGES[language].has_types else {}),
            "seconds": round(seconds, 3),
        }
        click.echo(json.dumps(facts, indent=1))
        return
    click.echo(f"{place}: {emitted.network.counts}")
    say_proof(emitted.proof)
    if replaced:
        click.echo(f"replaced: {place} held another text")
    verb = "sort" if request.select is None else "select"
    words = {"file": place.name, "name": emitted.name, "dtype": request.dtypes[0], "verb": verb}
    use = LANGUAGES[language].use.format_map(words)
    click.echo(f"written, in {seconds:.2f} s; use it with: {use}")


emit_command.help = (emit_command.help or "").format(", ".join(LANGUAGES))
