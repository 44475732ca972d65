"""The documents as a site, by Sphinx: `make site` copies them beside the README and builds `build/site`."""

import re
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import download_reference

project = "memctl"
extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "README"
html_theme = "furo"
html_title = "memctl"
html_show_sphinx = html_copy_source = html_show_copyright = False

_ROOMS = {
    "Start": ["docs/tutorial", "docs/how-good", "docs/coverage", "docs/examples", "CHANGELOG"],
    "How to": "docs/how-to",
    "Why it is so": "docs/explanation",
    "Reference": ["docs/reference/*", "docs/sources", "docs/export", "docs/glossary"],
    "Trust": ["docs/security", "docs/privacy"],
    "Run it": ["docs/scaling", "infra/deploy/README"],
    "한국어": "docs/ko",
    "For who changes it": ["CONTRIBUTING", "docs/internals/*", "docs/internals/evaluation/*", "docs/README"],
    "Decisions": "docs/decisions",
}
"""What the sidebar lists: folders, or pages in their order."""


_FOLDER = re.compile(r"\]\((?!\w+:)([^)#]*)/\)")


def _prepared(app, name, source):
    """Make a link to a folder one to a page that lists it; give the first page the list of all others, which the
    sidebar is made of."""
    here = Path(app.srcdir, name).parent

    def listed(link):
        folder = (here / link[1]).resolve()
        return f"]({link[1]}/README.md)" if (folder / "README.md").exists() else "]"

    source[0] = _FOLDER.sub(listed, source[0])
    if name == root_doc:
        for title, pages in _ROOMS.items():
            patterns = "\n".join(pages if isinstance(pages, list) else [f"{pages}/*"])
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n:maxdepth: 1\n:caption: {title}\n\n{patterns}\n```\n"


def _to_the_sources(app, doctree, name):
    """Show the name of a file of the repository that is no page, instead of a link that leads nowhere."""
    for link in list(doctree.findall(download_reference)):
        link.replace_self(nodes.inline("", "", *link.children))


def setup(app):
    app.connect("source-read", _prepared)
    app.connect("doctree-resolved", _to_the_sources)
