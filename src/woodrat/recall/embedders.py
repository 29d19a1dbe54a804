"""Embedders: what turns texts into vectors.

The built-in one is MiniLM, where the extra `recall` is installed; without it recall goes by words alone. The others ask
a server or load a model and are imported when they are made. An embedder's id is kept with its vectors: two that share
an id must give the same vectors, and vectors of another id are never compared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

from woodrat.errors import Fault, Refused, Unavailable, shown
from woodrat.recall import minilm, relay, vectors

ID_BYTES_MAX: Final = 200
"""Longest id of an embedder."""
BATCH: Final = 64
"""How many texts are sent to an embedder at once, unless it says otherwise."""
TIMEOUT_SECONDS: Final = 30.0
"""How long a server may be silent."""
TOKENS_MAX: Final = 256
"""How many tokens of a text a local model reads, unless told otherwise."""

NONE: Final = "none"
"""What stands for no embedder: recall by words alone."""
BUILT_IN: Final = "minilm"
"""The name of the built-in embedder."""
NOTHING_SCORED: Final = "Nothing was scored and nothing was written."

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")


class Embedder(Protocol):
    """What recall asks of an embedder."""

    @property
    def id(self) -> str:
        """What its vectors are kept under; it changes whenever the vectors would."""

    @property
    def dimension(self) -> int:
        """How many components its vectors have."""

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the vector of each text, in order; `Unavailable` when that cannot be done now."""


def check(embedder: object) -> Embedder | None:
    """Return an embedder, found by its name where it is given as one; `Refused` when it is none.

    Nothing means the built-in one where it is installed, and no embedder where it is not.
    """
    if embedder is None:
        return minilm.MiniLM() if minilm.is_installed() else None
    if isinstance(embedder, str):
        return named(embedder)
    id = getattr(embedder, "id", None)
    if not callable(getattr(embedder, "embed", None)):
        remedy = "Send an object with id, dimension and embed(texts), the name of one such as ollama:MODEL, or nothing."
        raise Refused([Fault("embedder", f"got {shown(embedder)}", remedy)], NOTHING_SCORED)
    if not isinstance(id, str) or not _ID.fullmatch(id) or len(id) > ID_BYTES_MAX:
        remedy = (
            f"Use letters, digits and . _ : / @ + -, at most {ID_BYTES_MAX}, such as openai:text-embedding-3-small."
        )
        raise Refused([Fault("embedder", f"its id is {shown(id)}", remedy)], NOTHING_SCORED)
    return embedder  # type: ignore[return-value]


def is_built_in(embedder: Embedder) -> bool:
    """Return whether an embedder comes with the package and costs nothing but time."""
    return isinstance(embedder, minilm.MiniLM)


def scale_of(embedder: Embedder) -> Callable[[float], float]:
    """Return what brings the cosines of an embedder to the scale that scores were calibrated on, which is MiniLM's.

    Embedders differ in how near they put texts that have nothing to do with each other, and texts that mean the same.
    A few pairs of both kinds, embedded once, tell where these two lie.
    """
    if is_built_in(embedder):
        return _as_it_is
    if embedder.id not in _SCALES:
        flat = [text for pair in ANCHORS for text in pair]
        made = [vectors.as_numpy(packed) for packed in embed(embedder, flat)]
        ones, others = made[::2], made[1::2]
        alike = [_cosine(one, other) for one, other in zip(ones, others, strict=True)]
        apart = [_cosine(one, other) for i, one in enumerate(ones) for j, other in enumerate(others) if i != j]
        low, high = sum(apart) / len(apart), sum(alike) / len(alike)
        span = max(high - low, 0.05)
        _SCALES[embedder.id] = lambda cosine: APART + (cosine - low) / span * (ALIKE - APART)
    return _SCALES[embedder.id]


def _as_it_is(cosine: float) -> float:
    return cosine


def _cosine(one: Any, other: Any) -> float:
    both = float(one @ one) * float(other @ other)
    return float(one @ other) / both**0.5 if both else 0.0


ANCHORS: Final = (
    ("Why was the loan turned down?", "The credit application was rejected."),
    ("Where does Maria live?", "Maria's home is in Lisbon."),
    ("Which database did we pick?", "We decided to use Postgres for storage."),
    ("When does the contract end?", "The agreement expires in June."),
    ("How can I reach Tom?", "Tom's phone number is 555 0199."),
    ("What caused the outage?", "The site went down because a certificate expired."),
    ("Did the customer get money back?", "We refunded the order in full."),
    ("What does Ana like to drink?", "Ana prefers green tea."),
)
"""Pairs of texts each of which answers the other, and none that of another pair."""
ALIKE: Final = 0.50
APART: Final = 0.05
"""The mean cosine of MiniLM for the two of a pair, and for texts of different pairs."""
_SCALES: dict[str, Callable[[float], float]] = {}


def embed(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """Return the packed vectors of texts, in batches; an empty text has the vector 0 and is not sent."""
    size = dimension_of(embedder)
    packed = [bytes(size)] * len(texts)
    sent = [place for place, text in enumerate(texts) if text]
    batch = getattr(embedder, "batch", BATCH)
    for start in range(0, len(sent), batch):
        places = sent[start : start + batch]
        found = embedder.embed([texts[place] for place in places])
        if len(found) != len(places):
            raise Unavailable(
                f"The embedder {embedder.id} gave {len(found)} vectors for {len(places)} texts. {NOTHING_SCORED} "
                "Send the same call again, or use another embedder.",
                {"embedder": embedder.id},
            )
        for place, vector in zip(places, found, strict=True):
            packed[place] = vectors.pack(vector, size)
    return packed


def dimension_of(embedder: Embedder) -> int:
    """Return how many components an embedder's vectors have, once that is in order."""
    size = embedder.dimension
    faults = vectors.dimension_faults(size)
    if faults:
        raise Refused(faults, NOTHING_SCORED)
    return size


def named(name: str) -> Embedder | None:
    """Return the embedder a name means: `minilm`, `openai:MODEL`, `ollama:MODEL`, `sentence-transformers:MODEL` or
    `onnx:FOLDER`; `none` means none.

    Servers are found by `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OLLAMA_HOST`, as their own clients do.
    """
    kind, _, model = name.partition(":")
    if name == NONE:
        return None
    if name == BUILT_IN or kind == "minilm-l6-v2-int8":
        return minilm.MiniLM()
    if kind == "openai" and model:
        return OpenAI(model)
    if kind == "ollama" and model:
        return Ollama(model)
    if kind == "sentence-transformers" and model:
        return SentenceTransformers(model)
    if kind == "onnx" and model:
        folder = Path(model)
        return Onnx(folder / "model.onnx", folder / "tokenizer.json", id=f"onnx:{folder.name}")
    remedy = "Use minilm, none, openai:MODEL, ollama:MODEL, sentence-transformers:MODEL or onnx:FOLDER."
    raise Refused([Fault("embedder", f"there is no embedder {shown(name)}", remedy)], NOTHING_SCORED)


# Servers


class _Served:
    """An embedder behind an HTTP address."""

    path: str
    kind: str

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        headers: Mapping[str, str],
        id: str | None,
        dimension: int | None,
        timeout: float,
        batch: int,
    ) -> None:
        self.model = model
        self.id = id or f"{self.kind}:{model}"
        self.timeout = timeout
        self.batch = batch
        self._dimension = dimension
        self._url = base_url.rstrip("/") + self.path
        self._headers = dict(headers)
        if not self._url.startswith(("http://", "https://")):
            raise Refused(
                [Fault("base_url", f"got {shown(base_url)}", "Send an address that begins with http:// or https://.")],
                NOTHING_SCORED,
            )

    @property
    def dimension(self) -> int:
        """How many components the vectors have; asked of the server once."""
        if self._dimension is None:
            self._dimension = len(self.embed(["dimension"])[0])
        return self._dimension

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vector of each text, in order."""
        answer = self._post(self._request(list(texts)))
        try:
            found = self._vectors(answer)
            if len(found) != len(texts) or not all(isinstance(vector, list) and vector for vector in found):
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._unavailable("its answer is not what was asked for", "Check that it serves embeddings") from None
        return found

    def _request(self, texts: list[str]) -> dict[str, Any]:
        return {"model": self.model, "input": texts}

    def _vectors(self, answer: Any) -> list[list[float]]:
        raise NotImplementedError

    def _post(self, body: dict[str, Any]) -> Any:
        try:
            return relay.post(self._url, body, self._headers, self.timeout)
        except relay.Failed as failure:
            raise self._unavailable(failure.problem, failure.remedy) from failure.__cause__

    def _unavailable(self, told: str, remedy: str) -> Unavailable:
        from urllib.parse import urlsplit

        parts = urlsplit(self._url)
        # Neither user nor query of an address: either may hold a secret.
        where = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        return Unavailable(
            f"The embedder {self.id} at {where}: {told}. {NOTHING_SCORED} {remedy}, or use none.",
            {"embedder": self.id, "address": where},
        )


class OpenAI(_Served):
    """Any server that speaks OpenAI's `/v1/embeddings`; `dimensions` asks for shorter vectors, where it can."""

    path, kind = "/embeddings", "openai"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        id: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        batch: int = BATCH,
    ) -> None:
        key = api_key if api_key is not None else os.environ.get("OPENAI_API_KEY")
        self._dimensions = dimensions
        suffix = "" if dimensions is None else f":{dimensions}"
        super().__init__(
            model,
            base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            id=id or f"openai:{model}{suffix}",
            dimension=dimensions,
            timeout=timeout,
            batch=batch,
        )

    def _request(self, texts: list[str]) -> dict[str, Any]:
        asked = {**super()._request(texts), "encoding_format": "float"}
        return asked if self._dimensions is None else {**asked, "dimensions": self._dimensions}

    def _vectors(self, answer: Any) -> list[list[float]]:
        # The order of the list is not promised; the index of each is.
        by_index = {item["index"]: item["embedding"] for item in answer["data"]}
        return [by_index[place] for place in range(len(answer["data"]))]


class Ollama(_Served):
    """A model served by Ollama."""

    path, kind = "/api/embed", "ollama"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        id: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        batch: int = BATCH,
    ) -> None:
        host = base_url or os.environ.get("OLLAMA_HOST") or "http://127.0.0.1:11434"
        super().__init__(
            model,
            host if "://" in host else f"http://{host}",
            headers={},
            id=id,
            dimension=None,
            timeout=timeout,
            batch=batch,
        )

    def _vectors(self, answer: Any) -> list[list[float]]:
        found: list[list[float]] = answer["embeddings"]
        return found


# Models on this machine


class SentenceTransformers:
    """A model of the package `sentence-transformers`; not an extra of ours, since it brings torch."""

    batch = BATCH

    def __init__(self, model: str | Any, *, id: str | None = None) -> None:
        if isinstance(model, str):
            package = _load("sentence_transformers", "pip install sentence-transformers")
            self._model = _made(f"sentence-transformers:{model}", lambda: package.SentenceTransformer(model))
            self.id = id or f"sentence-transformers:{model}"
        else:
            self._model, self.id = model, id or ""
        # It has another name since version 6.
        measure = getattr(self._model, "get_embedding_dimension", None)
        self.dimension: int = (measure or self._model.get_sentence_embedding_dimension)()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vector of each text."""
        found = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return [[float(value) for value in vector] for vector in found]


class Onnx:
    """A sentence model in ONNX with its `tokenizer.json`: the mean over tokens, unless the model gives one vector."""

    batch = 16

    def __init__(
        self, model: str | os.PathLike[str], tokenizer: str | os.PathLike[str], *, id: str, tokens: int = TOKENS_MAX
    ) -> None:
        runtime = _load("onnxruntime", "pip install 'woodrat[onnx]'")
        cutter = _load("tokenizers", "pip install 'woodrat[onnx]'")
        self._numpy = _load("numpy", "pip install 'woodrat[onnx]'")
        self.id = id
        self._cut = _made(id, lambda: cutter.Tokenizer.from_file(os.fspath(tokenizer)))
        self._cut.enable_truncation(tokens)
        self._cut.no_padding()
        settings = runtime.SessionOptions()
        # One thread adds in one order, so the same text has the same vector every time.
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        providers = ["CPUExecutionProvider"]
        self._session = _made(id, lambda: runtime.InferenceSession(os.fspath(model), settings, providers=providers))
        self._inputs = {given.name for given in self._session.get_inputs()}
        self.dimension: int = len(self.embed(["dimension"])[0])

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vector of each text, of length 1."""
        numpy = self._numpy
        found = []
        for text in texts:
            # One at a time: padding in a batch changes the last digits of its neighbours in a quantised model.
            cut = self._cut.encode(text)
            given = {
                "input_ids": numpy.array([cut.ids], numpy.int64),
                "attention_mask": numpy.array([cut.attention_mask], numpy.int64),
                "token_type_ids": numpy.array([cut.type_ids], numpy.int64),
            }
            out = self._session.run(None, {name: given[name] for name in self._inputs if name in given})[0]
            vector = out[0].mean(axis=0) if out.ndim == 3 else out[0]
            length = float(numpy.linalg.norm(vector))
            found.append((vector / length if length else vector).tolist())
        return found


def _load(module: str, remedy: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        name = module.replace("_", "-")
        raise Unavailable(
            f"{name} is not installed here. {NOTHING_SCORED} Install it with `{remedy}`, or use none.",
            {"package": name},
        ) from error


def _made(id: str, make: Any) -> Any:
    """Return what a package makes of a model; whatever it raises becomes one sentence."""
    try:
        return make()
    except Exception as error:
        told = " ".join(str(error).split())[: relay.SAID_CHARACTERS_MAX]
        raise Unavailable(
            f"The embedder {id} cannot be loaded: {told}. {NOTHING_SCORED} Fix its files, or use none.",
            {"embedder": id},
        ) from error
