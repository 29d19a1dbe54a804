"""Embedders: what is sent to a server, what comes back, and what is said when it does not."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from woodrat.errors import Refused, Unavailable
from woodrat.recall import embedders
from woodrat.recall.embedders import Ollama, Onnx, OpenAI, SentenceTransformers
from woodrat.recall.minilm import MiniLM

Answer = Callable[[str, dict[str, Any]], tuple[int, bytes]]
"""From path and request to status and body."""

KEY = "sk-test-0123456789"


class Server:
    """A real HTTP server on this machine, which answers as told and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.answer: Answer = lambda path, request: (200, b"{}")
        self.hang = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append((self.path, body, dict(self.headers)))
                status, answer = server.answer(self.path, body)
                self.send_response(status)
                if status in (301, 302):
                    self.send_header("Location", f"{server.url}/elsewhere")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                with suppress(ConnectionError):  # of one that has gone meanwhile
                    self.wfile.write(answer)

            def do_GET(self) -> None:
                server.asked.append((self.path, {}, dict(self.headers)))
                self.send_error(404)

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self.hang.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


def letters(text: str) -> list[float]:
    """Return a vector of three numbers for a text."""
    return [float(len(text)), float(text.count("a")), 1.0]


def as_openai(path: str, request: dict[str, Any]) -> tuple[int, bytes]:
    """Answer as OpenAI does, in another order than asked."""
    data = [{"index": place, "embedding": letters(text)} for place, text in enumerate(request["input"])]
    return 200, json.dumps({"data": data[::-1], "model": request["model"]}).encode()


def as_ollama(path: str, request: dict[str, Any]) -> tuple[int, bytes]:
    """Answer as Ollama does."""
    return 200, json.dumps({"embeddings": [letters(text) for text in request["input"]]}).encode()


def test_openai(server: Server) -> None:
    """An OpenAI-compatible server is asked at /embeddings with model, texts and key; vectors come in order."""
    server.answer = as_openai
    embedder = OpenAI("small", base_url=f"{server.url}/v1/", api_key=KEY)
    assert embedder.embed(["banana", "kiwi"]) == [letters("banana"), letters("kiwi")]
    path, request, headers = server.asked[0]
    assert path == "/v1/embeddings"
    assert request == {"model": "small", "input": ["banana", "kiwi"], "encoding_format": "float"}
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert embedder.id == "openai:small"
    assert embedder.dimension == 3
    assert embedder.dimension == 3
    assert len(server.asked) == 2


def test_openai_with_fewer_dimensions(server: Server) -> None:
    """Asked for shorter vectors, it says so to the server and in its id."""
    server.answer = as_openai
    embedder = OpenAI("small", base_url=server.url, api_key="", dimensions=3)
    embedder.embed(["x"])
    assert server.asked[0][1]["dimensions"] == 3
    assert "Authorization" not in server.asked[0][2]
    assert (embedder.id, embedder.dimension) == ("openai:small:3", 3)


def test_ollama(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ollama is asked at /api/embed, where OLLAMA_HOST says."""
    server.answer = as_ollama
    monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://"))
    embedder = embedders.named("ollama:nomic-embed-text")
    assert embedder is not None
    assert embedder.embed(["banana"]) == [letters("banana")]
    assert server.asked[0][:2] == ("/api/embed", {"model": "nomic-embed-text", "input": ["banana"]})
    assert embedder.id == "ollama:nomic-embed-text"


def test_no_proxy_stands_before_this_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment is not asked for a server on this machine."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    server.answer = as_ollama
    assert Ollama("m", base_url=server.url).embed(["a"]) == [letters("a")]


def test_texts_are_sent_in_batches_and_empty_ones_not_at_all(server: Server) -> None:
    """Many texts are many requests of bounded length; an empty text has the vector 0."""
    server.answer = as_ollama
    embedder = Ollama("m", base_url=server.url, batch=2)
    found = embedders.embed(embedder, ["a", "", "bb", "ccc", "", "dddd", "e"])
    assert [len(request["input"]) for _, request, _ in server.asked] == [1, 2, 2, 1]
    assert [vector == bytes(3) for vector in found] == [False, True, False, False, True, False, False]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b'{"error": "Incorrect API key provided: sk-test-0123456789"}', "it answered 401"),
        (404, b'{"error": "model not found"}', "model not found"),
        (429, b"", "it answered 429"),
        (500, b"\x00\xff boom", "it answered 500"),
        (200, b"not json", "its answer is no JSON"),
        (200, b"{}", "its answer is not what was asked for"),
        (200, b"[1, 2]", "its answer is not what was asked for"),
        (200, b'{"data": [{"index": 7, "embedding": [1]}]}', "its answer is not what was asked for"),
        (200, b'{"data": []}', "its answer is not what was asked for"),
        (302, b"", "it answered 302"),
    ],
)
def test_a_server_that_fails_is_unavailable(server: Server, status: int, body: bytes, said: str) -> None:
    """Whatever a server answers instead of vectors is told in one sentence, without the key, and nothing is scored."""
    server.answer = lambda path, request: (status, body)
    with pytest.raises(Unavailable) as caught:
        OpenAI("small", base_url=f"{server.url}/v1", api_key=KEY).embed(["x"])
    message = str(caught.value)
    assert said in message
    assert f"The embedder openai:small at {server.url}/v1/embeddings" in message
    assert "Nothing was scored and nothing was written." in message
    assert KEY not in message
    assert message.isprintable()
    # A redirection is not followed: it would carry the key elsewhere.
    assert [path for path, _, _ in server.asked] == ["/v1/embeddings"]


def test_a_server_that_is_not_there_is_unavailable() -> None:
    """No connection is told with the address, without user, password or query."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unavailable, match=f"at http://127.0.0.1:{port}/api/embed: no connection") as caught:
        Ollama("m", base_url=f"http://ann:secret@127.0.0.1:{port}").embed(["x"])
    assert "secret" not in str(caught.value)


def test_a_server_that_is_silent_is_given_up(server: Server) -> None:
    """A server that does not answer in time is told with the time."""

    def silent(path: str, request: dict[str, Any]) -> tuple[int, bytes]:
        server.hang.wait(30)
        return 200, b"{}"

    server.answer = silent
    with pytest.raises(Unavailable, match=r"no answer within 0\.05 seconds"):
        Ollama("m", base_url=server.url, timeout=0.05).embed(["x"])


def test_an_address_of_another_kind_is_refused() -> None:
    """Only http and https are asked; a file is not."""
    with pytest.raises(Refused, match="base_url"):
        OpenAI("m", base_url="file:///etc/passwd")


# What recall is given


class Odd:
    """An embedder that answers as told."""

    def __init__(self, found: Any, id: Any = "odd", dimension: Any = 3) -> None:
        self.id, self.dimension, self._found = id, dimension, found

    def embed(self, texts: Sequence[str]) -> Any:
        return self._found


@pytest.mark.parametrize("found", [[], [[1.0, 2.0, 3.0]], [[1, 2, 3]] * 3])
def test_another_number_of_vectors_is_not_taken(found: list[list[float]]) -> None:
    """As many vectors as texts, or none is taken."""
    with pytest.raises(Unavailable, match="vectors for 2 texts"):
        embedders.embed(Odd(found), ["a", "b"])


@pytest.mark.parametrize(
    "given", [42, object(), Odd([], id=""), Odd([], id="a b"), Odd([], id=None), Odd([], id="x" * 201)]
)
def test_what_is_no_embedder_is_refused(given: object) -> None:
    """An embedder has an id of plain characters, and embeds."""
    with pytest.raises(Refused, match="embedder"):
        embedders.check(given)


@pytest.mark.parametrize("dimension", [0, 9_999, "3", None])
def test_a_dimension_out_of_range_is_refused(dimension: Any) -> None:
    """Vectors have some components, and not too many."""
    with pytest.raises(Refused, match="dimension"):
        embedders.embed(Odd([], dimension=dimension), [])


@pytest.mark.parametrize("name", ["", "ngram-v2", "openai", "openai:", "word2vec:x"])
def test_an_unknown_name_is_refused_with_those_there_are(name: str) -> None:
    """A name that means no embedder is refused, and the refusal lists what there is."""
    with pytest.raises(Refused, match="ollama:MODEL"):
        embedders.check(name)


def test_names_and_nothing_mean_embedders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing means the built-in one; servers are found by the variables their own clients read."""
    assert embedders.check(None) is None  # as in the base install
    assert isinstance(embedders.check("minilm"), MiniLM)
    assert embedders.check("none") is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert getattr(embedders.check("openai:small"), "id", None) == "openai:small"


@pytest.mark.parametrize(
    ("make", "package"),
    [
        (lambda: SentenceTransformers("all-MiniLM-L6-v2"), "sentence-transformers"),
        (lambda: Onnx("model.onnx", "tokenizer.json", id="onnx:x"), "onnxruntime"),
    ],
)
def test_a_package_that_is_missing_is_named(
    make: Callable[[], object], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its package an embedder is unavailable, and it says what to install."""

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(embedders, "import_module", missing)
    with pytest.raises(Unavailable, match=f"{package} is not installed here.*pip install"):
        make()


class FakeModel:
    """What the package sentence-transformers calls a model, as far as it is used."""

    def get_sentence_embedding_dimension(self) -> int:
        return 3

    def encode(self, texts: list[str], **settings: Any) -> list[list[float]]:
        assert settings == {"normalize_embeddings": True, "show_progress_bar": False}
        return [letters(text) for text in texts]


def test_a_model_that_is_loaded_already_can_be_handed_over() -> None:
    """A model of sentence-transformers is taken as it is, under an id of the caller's."""
    embedder = SentenceTransformers(FakeModel(), id="ours:v3")
    assert (embedder.id, embedder.dimension) == ("ours:v3", 3)
    assert embedder.embed(["banana"]) == [letters("banana")]
    with pytest.raises(Refused, match="its id"):
        embedders.check(SentenceTransformers(FakeModel()))


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path: Path) -> None:
    """Importing embedders brings neither numpy nor an HTTP client."""
    import subprocess
    import sys

    code = "import sys, woodrat.recall.embedders; print({'numpy', 'urllib.request', 'http.client'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
