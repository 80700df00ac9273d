"""Four numbers of the house, which `make check` holds: how far a reader has to go to follow one path through the code.

`python -m tests.house` prints them; with a name, also the places that it counts.
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
HALVES = ("annotator", "rewards", "rewardloop")
MOST_IMPORTS = 10
"""Modules of ours that a module may import. A list of addresses or tasks, and a package that says what it offers, names
more by its nature."""
LISTS = {"__init__", "urls", "tasks"}
FEWEST_LINES = 4
"""Lines of a private function below which its only caller could say the same."""
GIVEN = {"Command", "Config", "Meta", "Migration", "__init__", "__main__", "apps", "admin", "formats", "tasks", "urls"}
"""Names of classes and modules that Django gives."""
DOORS = {"admin", "api", "management", "models", "pages", "templatetags"}
"""Storeys whose modules are named after what they open or store: `api/members.py` opens `managing/members.py`."""
LIMITS = {"imports": 62, "shreds": 69, "modules": 0, "classes": 0}


@dataclass(frozen=True)
class Module:
    """A module of ours: its dotted name, its file, and its syntax."""

    name: str
    file: Path
    tree: ast.Module


def modules() -> list[Module]:
    """Returns every module but the migrations."""
    files = sorted(file for half in HALVES for file in (ROOT / half).rglob("*.py") if "migrations" not in file.parts)
    return [Module(_dotted(file), file, ast.parse(file.read_text(encoding="utf-8"))) for file in files]


def _dotted(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def far_reaching(every: list[Module]) -> list[str]:
    """Returns the modules that import more than MOST_IMPORTS others."""
    names = {module.name for module in every}
    reaching = [module for module in every if module.file.stem not in LISTS]
    counted = {module.name: len(set(_imported(module.tree, names))) for module in reaching}
    return [f"{name} imports {number} modules" for name, number in counted.items() if number > MOST_IMPORTS]


def _imported(tree: ast.Module, names: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in HALVES:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in names else str(node.module)


def shreds(every: list[Module]) -> list[str]:
    """Returns the private functions of fewer than FEWEST_LINES lines that one place names."""
    found = []
    for module in every:
        named = Counter(node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name))
        named.update(node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute))
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("_") or node.name.startswith("__"):
                continue
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines < FEWEST_LINES and named[node.name] == 1:
                found.append(f"{module.name}.{node.name}, line {node.lineno}")
    return found


def doubles(names: dict[str, list[str]]) -> list[str]:
    """Returns the names that stand for more than one thing, with where they do."""
    return [f"{name}: {', '.join(places)}" for name, places in sorted(names.items()) if len(places) > 1]


def measured() -> dict[str, list[str]]:
    """Returns what each number of LIMITS counts, one line a place."""
    every = modules()
    by_module: defaultdict[str, list[str]] = defaultdict(list)
    by_class: defaultdict[str, list[str]] = defaultdict(list)
    for module in every:
        world = _world(module.name)
        if module.file.stem not in GIVEN and module.name.split(".")[1] not in DOORS:
            by_module[f"{world} {module.file.stem}"].append(module.name)
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and node.name not in GIVEN and not node.name.startswith("_"):
                by_class[f"{world} {node.name}"].append(module.name)
    return {
        "imports": far_reaching(every),
        "shreds": shreds(every),
        "modules": doubles(by_module),
        "classes": doubles(by_class),
    }


def _world(name: str) -> str:
    """Returns where a word has to have one meaning: a half, the learning core, or the client."""
    return "rewards.learning" if name.startswith("rewards.learning.") else name.partition(".")[0]


def main(wanted: str = "") -> int:
    """Prints the numbers beside their limits; returns 1 if one is above its own."""
    places = measured()
    for name, found in places.items():
        print(f"{name}: {len(found)} (at most {LIMITS[name]})")
        if wanted == name or len(found) > LIMITS[name]:
            print(*(f"    {place}" for place in found), sep="\n")
    return int(any(len(found) > LIMITS[name] for name, found in places.items()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
