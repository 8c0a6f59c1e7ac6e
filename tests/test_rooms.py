"""Imports follow the order of rooms in DESIGN.md, and no files import each other in a circle."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("nsc", "compiler", "library", "runtime", "study", "templates")
MOST_ROOMS = 30
# Files outside the order: they import public names on first use, with `importlib.import_module`.
LAZY = {"nsc/__init__.py"}
# What a file imports in the same way, when it is asked for, from a room above it.
LATE = {"nsc.compiler.network": {"nsc.compiler.formats"}}


def source_files() -> dict[str, Path]:
    """Return the paths of the project's modules by their names in nsc."""
    files = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            relative = path.relative_to(ROOT)
            if room == "nsc" and relative.parts[1] in ROOMS:  # a link to a room
                continue
            parts = relative.with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            files[name if room == "nsc" else f"nsc.{name}"] = path
    return files


def is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imported_modules(tree: ast.Module, modules: set[str], types: bool = False) -> set[str]:
    """Return the project's modules that a file imports anywhere; those under TYPE_CHECKING if asked for."""
    imported = set()
    stack: list[ast.AST] = [node for node in tree.body if types or not is_for_types(node)]
    while stack:
        node = stack.pop()
        stack.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"imports are absolute, found {ast.unparse(node)}"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                imported.add(full if full in modules else str(node.module))
    return imported & modules


def rooms_in_order() -> list[tuple[str, ...]]:
    """Return the rooms of the list in DESIGN.md, lowest first, as prefixes of modules.

    A line is a room and a sentence. A room is a folder, or some files of one: "nsc/{api,sizes}".
    """
    block = re.search(r"```text rooms\n(.*?)```", (ROOT / "DESIGN.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block, "DESIGN.md has no list of rooms"
    lines = []
    for line in block[1].splitlines():
        folder, _, files = line.split()[0].partition("{")
        names = [f"{folder}{file}".replace("/", ".") for file in files.rstrip("}").split(",")]
        lines.append(tuple(name if name.startswith("nsc") else f"nsc.{name}" for name in names))
    return lines


FILES = source_files()
ORDER = rooms_in_order()


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Return the parsed files; each worker collects this file, and one of them needs the trees."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


@functools.cache
def all_imports() -> dict[str, set[str]]:
    """Return the project's modules that each file imports."""
    return {name: imported_modules(tree, set(FILES)) - {name} for name, tree in trees().items()}


@functools.cache
def level_of(module: str) -> int | None:
    """Return the level of a module in the list, or None if it is not in the list."""
    levels = [
        (len(prefix), level)
        for level, prefixes in enumerate(ORDER)
        for prefix in prefixes
        if module == prefix or module.startswith(f"{prefix}.")
    ]
    return max(levels)[1] if levels else None


def is_package_of_rooms(module: str) -> bool:
    """Return whether a package only holds rooms: its file has nothing but a docstring."""
    return all(isinstance(node, ast.Expr) for node in trees()[module].body)


def test_rooms_are_few_and_distinct():
    """A newcomer keeps the list in mind; a room that is listed twice would have two places."""
    assert len(ORDER) <= MOST_ROOMS
    assert len({prefix for prefixes in ORDER for prefix in prefixes}) == sum(map(len, ORDER))


def test_every_file_has_a_place_in_the_order():
    unlisted = [
        name
        for name, path in FILES.items()
        if level_of(name) is None
        and path.relative_to(ROOT).as_posix() not in LAZY
        and not is_package_of_rooms(name)
    ]
    assert not unlisted
    for prefixes in ORDER:
        for prefix in prefixes:
            assert any(name == prefix or name.startswith(f"{prefix}.") for name in FILES), (
                f"{prefix} names no module"
            )


def upward_imports(imports_of: dict[str, set[str]]) -> list[str]:
    """Return the imports of a module that stands higher in the list, or not in it."""
    return [
        f"{name} imports {imported}"
        for name, imports in imports_of.items()
        for imported in imports
        if (here := level_of(name)) is not None and ((there := level_of(imported)) is None or there > here)
    ]


def circles(imports_of: dict[str, set[str]]) -> list[list[str]]:
    graph = nx.DiGraph((name, imported) for name, imports in imports_of.items() for imported in imports)
    return list(nx.simple_cycles(graph))


def test_imports_go_one_way():
    assert not upward_imports(all_imports())


def late_imports(tree: ast.Module) -> set[str]:
    """Return the names that a file gives to `importlib.import_module`; "" for one that is no constant."""
    return {
        node.args[0].value if isinstance(node.args[0], ast.Constant) else ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "import_module"
    }


def test_late_imports_are_listed():
    """Where a file imports by name, the order of rooms is not seen."""
    found = {
        name: late & {"", *FILES}
        for name, path in FILES.items()
        if path.relative_to(ROOT).as_posix() not in LAZY and (late := late_imports(trees()[name]))
    }
    assert {name: late for name, late in found.items() if late} == LATE


def test_compiler_and_runtime_do_not_know_each_other():
    halves = ("nsc.compiler", "nsc.runtime")
    for name, imports in all_imports().items():
        for half, other in (halves, halves[::-1]):
            if name.startswith(half):
                assert not [imported for imported in imports if imported.startswith(other)], name


def test_only_the_command_line_imports_the_study():
    """A user who only compiles and calls networks loads nothing of it."""
    users = {
        name
        for name, imports in all_imports().items()
        if any(imported.startswith("nsc.study") for imported in imports)
    }
    assert {name for name in users if not name.startswith(("nsc.study.", "nsc.cli."))} == set()
    assert any(name.startswith("nsc.cli.") for name in users)


def test_no_files_import_each_other_in_a_circle_not_even_for_types():
    found = {name: imported_modules(tree, set(FILES), types=True) - {name} for name, tree in trees().items()}
    assert not circles(found)


# What uses nsc, each with those that use it in turn.
USERS = {"benchmarks", "experiments", "examples"}


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        *((room, USERS) for room in ROOMS),
        ("benchmarks", {"experiments", "examples"}),
        ("experiments", {"examples"}),
        ("examples", {"benchmarks", "experiments"}),
        ("compiler", {"torch", "cupy", "ctypes", "subprocess", "platformdirs", "click", "rich"}),
        ("templates", {"torch", "cupy", "ctypes", "subprocess", "numpy", "click", "rich"}),
        ("runtime", {"jinja2", "networkx", "click", "rich"}),
        ("nsc/contract", {"torch", "cupy", "numpy", "jinja2", "ctypes"}),
    ],
)
def test_rooms_do_not_import(room, forbidden):
    for path in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [str(node.module)]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not {name.split(".")[0] for name in names} & forbidden, path


def test_examples_are_written_in_public_names():
    """Whoever copies the folder and installs nsc can run them, but for the explorers of all families."""
    for path in set((ROOT / "examples").glob("*.py")) - {ROOT / "examples" / "explorers.py"}:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        found = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
        found |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        assert not {name for name in found if name.split(".")[0] == "nsc"} - {"nsc", "nsc.nn"}, path


def test_the_order_is_not_vacuous():
    """An import that goes up and a circle are found; imports are seen except under TYPE_CHECKING."""
    driver, network = "nsc.compiler.driver", "nsc.compiler.network"
    assert upward_imports({network: {driver}, driver: {network}}) == [f"{network} imports {driver}"]
    assert len(circles({network: {driver}, driver: {network}})) == 1
    assert not circles({driver: {network}, network: {"nsc.errors"}})
    assert level_of("nsc.compiler.driver") > level_of("nsc.compiler.network") > level_of("nsc.errors")  # type: ignore[operator]
    source = "from nsc.compiler import driver\nif TYPE_CHECKING:\n    from nsc import api\n"
    assert imported_modules(ast.parse(source), set(FILES)) == {"nsc.compiler.driver"}
