"""Measures how well texts are cut into sentences, beside other libraries, and how fast.

`bench_scale segmenting [LIBRARY ...]`. The libraries (pysbd, syntok, blingfire with numpy, sentencex, nupunkt, icu4py)
come from `pip install --target FOLDER`, with FOLDER in PYTHONPATH; nothing of ours needs the others. A cut counts as
right where the text was cut by hand (texts_cut_by_hand.py). *Alone*, a library sees the
whole text; *within*, it takes the place of sentencex in our stage.
"""

import gzip
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import accumulate
from typing import Any
from unittest.mock import patch

from annotator.launch.install import ROOT
from annotator.stages.segmenting import Unit, cut, cutting
from benchmarks.measuring import DATA, heading, row
from tests.annotator.stages.segmenting.texts_cut_by_hand import LANGUAGES, MARKDOWN, PROSE, read

Starts = Callable[[str, str], Iterable[int]]
"""Where the sentences of a text begin, white space included or not, by the text and its language."""
SCRIPTS = {"ja": "[\u3040-\u30ff]", "ko": "[\uac00-\ud7af]", "zh": "[\u4e00-\u9fff]", "hi": "[\u0900-\u097f]"}
SCRIPTS |= {"ur": "[\u06d2\u06d4]", "ar": "[\u0600-\u06ff]"}
"""Languages of the texts that LANGUAGES does not name, by a character of theirs."""


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


def cell(examples: dict[str, tuple[str, ...]], starts: Starts, *, told: bool) -> str:
    """Returns how many texts are cut as by hand, and the boundaries too many and too few."""
    texts = right = added = missed = 0
    for kind, text, by_hand in ((kind, *read(one)) for kind, several in examples.items() for one in several):
        by_script = (language for language, pattern in SCRIPTS.items() if re.search(pattern, text))
        language = (LANGUAGES.get(kind) or next(by_script, "en")) if told else "en"
        there = boundaries(text, starts(text, language))
        wanted = boundaries(text, [start for start, _end in by_hand])
        texts, right = texts + 1, right + (there == wanted)
        added, missed = added + len(there - wanted), missed + len(wanted - there)
    return f"{right} of {texts}, {added}, {missed}"


def real_texts() -> list[str]:
    texts = []
    for file in ("tasks", "gold"):
        lines = (ROOT / f"annotator/management/demo/{file}.jsonl").read_text().splitlines()
        texts += [response["text"] for line in lines for response in json.loads(line)["responses"]]
    for path in sorted(DATA.glob("*.jsonl*")):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for one in map(json.loads, content.splitlines()):
            texts += [response["text"] for response in one.get("responses", [])]
            texts += [
                one[name] for name in ("response", "chosen", "rejected", "text") if isinstance(one.get(name), str)
            ]
    return [text for text in texts if text]  # blingfire fails on an empty one


def million_characters(work: Callable[[str], object], texts: Sequence[str]) -> str:
    """Returns how many millions of characters the work takes a second of processor time."""
    begun = time.process_time()
    for text in texts:
        work(text)
    return f"{sum(map(len, texts)) / (time.process_time() - begun) / 1e6:.1f}"


def main(words: Sequence[str]) -> None:
    names = words or ["sentencex"]
    heading("library", "language", "alone, prose", "alone, markdown", "within, prose", "within, markdown")
    for name in names:
        for told in (False, True):
            ways = (LIBRARIES[name], within(LIBRARIES[name]))
            tallies = [cell(examples, starts, told=told) for starts in ways for examples in (PROSE, MARKDOWN)]
            row(name, "told" if told else "not told", *tallies)
    texts = real_texts()
    print(f"\n{len(texts):,} texts, {sum(map(len, texts)):,} characters")
    heading("what", "million characters a second")
    for unit in (Unit.SENTENCE, Unit.STEP):
        row(
            f"our stage, {unit}", max((million_characters(partial(cut, unit=unit), texts) for _ in range(3)), key=float)
        )
    for name in names:
        some = texts[:: 10 if name == "pysbd" else 1]  # it is slow
        row(f"{name} alone", million_characters(lambda text, name=name: list(LIBRARIES[name](text, "en")), some))  # type: ignore[misc]
