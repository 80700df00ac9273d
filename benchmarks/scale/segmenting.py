"""Measures how well texts are cut into sentences, beside other libraries, and how fast.

`bench_scale segmenting [LIBRARY ...]`. The libraries (pysbd, syntok, blingfire with numpy, sentencex,
nupunkt, icu4py) come from `pip install --target FOLDER`, with FOLDER in PYTHONPATH; nothing of ours needs the others.
A cut counts as right where the text was cut by hand (tests/annotator/segmenting/texts_cut_by_hand.py). *Alone*, a
library sees the whole text; *within*, it takes the place of sentencex in our stage.
"""

import gzip
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import accumulate
from typing import Any
from unittest.mock import patch

from annotator.launch.install import ROOT
from annotator.segmenting import Unit, cut, cutting
from benchmarks.real_data import DATA
from tests.annotator.segmenting.texts_cut_by_hand import LANGUAGES, MARKDOWN, PROSE, read

Starts = Callable[[str, str], Iterable[int]]
"""Where the sentences of a text begin, white space included or not, by the text and its language."""

SCRIPTS = {"ja": "[\u3040-\u30ff]", "ko": "[\uac00-\ud7af]", "zh": "[\u4e00-\u9fff]", "hi": "[\u0900-\u097f]"}
SCRIPTS |= {"ur": "[\u06d2\u06d4]", "ar": "[\u0600-\u06ff]"}
"""Languages of the texts that LANGUAGES does not name, by a character of theirs."""
HOSTILE = {"empty lines": "\n", "lines": "a\n", "items": "- a\n", "quotation marks": "“", "tables": "|a|\n|-|\n"}


@dataclass
class Tally:
    """Counts of texts, of those cut as by hand, and of boundaries too many and too few."""

    texts: int = 0
    right: int = 0
    added: int = 0
    missed: int = 0

    def count(self, there: set[int], wanted: set[int]) -> None:
        self.texts += 1
        self.right += there == wanted
        self.added += len(there - wanted)
        self.missed += len(wanted - there)

    def cell(self) -> str:
        return f"{self.right} of {self.texts}, {self.added}, {self.missed}"


def pysbd(text: str, language: str) -> Iterator[int]:
    known: Any = import_module("pysbd.languages").LANGUAGE_CODES
    segmenter = import_module("pysbd").Segmenter(language if language in known else "en", clean=False, char_span=True)
    yield from (sentence.start for sentence in segmenter.segment(text))


def syntok(text: str, _: str) -> Iterator[int]:
    for paragraph in import_module("syntok.segmenter").analyze(text):
        yield from (sentence[0].offset for sentence in paragraph if sentence)


def blingfire(text: str, _: str) -> Iterator[int]:
    yield from (start for start, _end in import_module("blingfire").text_to_sentences_and_offsets(text)[1])


def sentencex(text: str, language: str) -> Iterator[int]:
    found = import_module("sentencex").get_sentence_boundaries(language, text)
    yield from (sentence["start_index"] for sentence in found)


def nupunkt(text: str, _: str) -> Iterator[int]:
    at = 0
    for sentence in import_module("nupunkt").sent_tokenize(text):
        at = text.index(sentence, at)
        yield at
        at += len(sentence)


def icu4py(text: str, language: str) -> Iterator[int]:
    breaker = import_module("icu4py.breakers").SentenceBreaker(text, f"{language}-u-ss-standard")
    yield from accumulate((len(part) for part in breaker), initial=0)


LIBRARIES: dict[str, Starts] = {
    library.__name__: library for library in (pysbd, syntok, blingfire, sentencex, nupunkt, icu4py)
}


def boundaries(text: str, starts: Iterable[int]) -> set[int]:
    """Returns the starts behind the white space at them, without the first, as the sides of white space are custom."""
    moved = {start + len(text[start:]) - len(text[start:].lstrip()) for start in starts}
    return {start for start in moved if start < len(text) and text[:start].strip()}


def within(library: Starts) -> Starts:
    def starts(text: str, language: str) -> list[int]:
        def in_prose(plain: str, *, language: str) -> list[int]:
            return sorted(boundaries(plain, library(plain, language)))

        with patch.object(cutting, "_starts", in_prose):
            return [start for start, _end in cut(text, language=language)]

    return starts


def language_by_script(text: str) -> str:
    return next((language for language, pattern in SCRIPTS.items() if re.search(pattern, text)), "en")


def tally(examples: dict[str, tuple[str, ...]], starts: Starts, *, languages: bool) -> Tally:
    result = Tally()
    for kind, texts in examples.items():
        for text, wanted in map(read, texts):
            language = (LANGUAGES.get(kind) or language_by_script(text)) if languages else "en"
            there = boundaries(text, starts(text, language))
            result.count(there, boundaries(text, [start for start, _end in wanted]))
    return result


def report_errors(names: Sequence[str]) -> None:
    """Prints how many texts each library cuts right, and its boundaries too many and too few."""
    print("| library | language | alone, prose | alone, markdown | within, prose | within, markdown |")
    print("|---|---|---|---|---|---|")
    for name in names:
        library = LIBRARIES[name]
        for languages in (False, True):
            tallies = [
                tally(examples, starts, languages=languages)
                for starts in (library, within(library))
                for examples in (PROSE, MARKDOWN)
            ]
            cells = " | ".join(one.cell() for one in tallies)
            print(f"| {name} | {'told' if languages else 'not told'} | {cells} |")


def real_texts() -> list[str]:
    texts = []
    for file in ("tasks", "gold"):
        lines = (ROOT / f"annotator/launch/demo/{file}.jsonl").read_text().splitlines()
        texts += [response["text"] for line in lines for response in json.loads(line)["responses"]]
    for path in sorted(DATA.glob("*.jsonl*")):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        texts += [text for line in content.splitlines() for text in texts_in(json.loads(line))]
    return [text for text in texts if text]  # blingfire fails on an empty one


def texts_in(row: dict[str, Any]) -> Iterator[str]:
    yield from (response["text"] for response in row.get("responses", []))
    yield from (row[name] for name in ("response", "chosen", "rejected", "text") if isinstance(row.get(name), str))


def report_speed(names: Sequence[str]) -> None:
    texts = real_texts()
    characters = sum(map(len, texts))
    print(f"\n{len(texts):,} texts, {characters:,} characters\n\n| what | million characters a second |\n|---|---|")
    for unit in (Unit.SENTENCE, Unit.STEP):
        seconds = min(seconds_for(partial(cut, unit=unit), texts) for _ in range(3))
        print(f"| our stage, {unit} | {characters / seconds / 1e6:.1f} |")
    for name in names:
        some = texts[:: 10 if name == "pysbd" else 1]  # it is slow
        seconds = seconds_for(partial(all_starts, LIBRARIES[name]), some)
        print(f"| {name} alone | {sum(map(len, some)) / seconds / 1e6:.1f} |")


def all_starts(library: Starts, text: str) -> list[int]:
    return list(library(text, "en"))


def report_hostile() -> None:
    print("\n| 50,000 and 200,000 characters of | s | s |\n|---|---|---|")
    for name, part in HOSTILE.items():
        times = [seconds_for(cut, [(part * length)[:length]]) for length in (50_000, 200_000)]
        print(f"| {name} | " + " | ".join(f"{seconds:.2f}" for seconds in times) + " |")


def seconds_for(work: Callable[[str], object], texts: Sequence[str]) -> float:
    begun = time.process_time()
    for text in texts:
        work(text)
    return time.process_time() - begun


def main(names: Sequence[str]) -> None:
    report_errors(names or ["sentencex"])
    report_speed(names or ["sentencex"])
    report_hostile()
