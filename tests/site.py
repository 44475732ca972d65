"""The documents as a site in `build/site`: searchable, every link followed. A link that leads nowhere ends it with 1.

python tests/site.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import main

HERE = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "docs", "infra/deploy/README.md")
SITE = HERE / "build" / "site"


def build() -> int:
    """Sphinx's exit code; warnings are errors."""
    with tempfile.TemporaryDirectory(prefix="memctl-site-") as name:
        source = Path(name)
        for each in PAGES:
            copy = shutil.copytree if (HERE / each).is_dir() else shutil.copy
            (source / each).parent.mkdir(parents=True, exist_ok=True)
            copy(HERE / each, source / each)
        (source / "docs" / "conf.py").rename(source / "conf.py")
        for folder, title in (("decisions", "Decisions"), ("reference", "Reference")):
            listed = f"# {title}\n\n```{{toctree}}\n:glob:\n:maxdepth: 1\n\n[!R]*\n```\n"
            (source / "docs" / folder / "README.md").write_text(listed)
        shutil.rmtree(SITE, ignore_errors=True)
        ended = main(["-q", "-W", "--keep-going", "-b", "html", "-d", f"{name}/.trees", name, str(SITE)])
        shutil.copy(SITE / "README.html", SITE / "index.html")
        return ended


if __name__ == "__main__":
    sys.exit(build())
