"""Records which patterns of `re` meet text from outside, in each process that has this folder in PYTHONPATH.

A text is from outside where it holds one of the marks that a test plants in all that it sends. Each pattern that meets
one is written into a file of the process in the folder `MEMCTL_TEST_PATTERNS`, at once: processes of tests are killed.
"""

import json
import os
import re
import sys

MARKS = ("qzxmark", "9182736455")
"""What tests plant: in texts, and where only digits pass."""

_BYTES = tuple(mark.encode() for mark in MARKS)
_folder = os.environ.get("MEMCTL_TEST_PATTERNS", "")
_compiled = re._compiler.compile
_native = re.Pattern


class Recorded:
    """A pattern that looks whether what it is asked about holds a mark."""

    def __init__(self, pattern, flags=0):
        self._real = _compiled(pattern, flags)
        self._seen = set()

    def __getattr__(self, name):
        return getattr(self._real, name)

    def __reduce__(self):
        return re._compile, (self._real.pattern, self._real.flags)

    def __eq__(self, other):
        return isinstance(other, Recorded) and self._real == other._real

    def __hash__(self):
        return hash(self._real)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __class_getitem__(cls, item):
        return _native[item]

    def _look(self, text, method):
        anchored = {"match": "start", "fullmatch": "whole"}.get(method, "anywhere")
        if anchored in self._seen:
            return
        marks = MARKS if isinstance(text, str) else _BYTES
        plain = text.lower() if isinstance(text, str) else bytes(text).lower()
        if any(mark in plain for mark in marks):
            self._seen.add(anchored)
            frame = sys._getframe(2)
            while frame.f_globals.get("__name__") == "re" and frame.f_back is not None:
                frame = frame.f_back
            source = self._real.pattern
            found = {
                "module": frame.f_globals.get("__name__", ""),
                "function": frame.f_code.co_name,
                "place": anchored,
                "pattern": source if isinstance(source, str) else source.decode("latin-1"),
                "bytes": isinstance(source, bytes),
                "flags": int(self._real.flags),
            }
            with open(os.path.join(_folder, f"{os.getpid()}.jsonl"), "a") as file:
                file.write(json.dumps(found) + "\n")


def _of_text(name):
    def method(self, string, *rest, **named):
        self._look(string, name)
        return getattr(self._real, name)(string, *rest, **named)

    return method


def _of_replacement(name):
    def method(self, repl, string, *rest, **named):
        self._look(string, name)
        return getattr(self._real, name)(repl, string, *rest, **named)

    return method


if _folder:
    for _name in ("match", "search", "fullmatch", "findall", "finditer", "split", "scanner"):
        setattr(Recorded, _name, _of_text(_name))
    for _name in ("sub", "subn"):
        setattr(Recorded, _name, _of_replacement(_name))
    re.Pattern = Recorded
    re._compiler.compile = Recorded
    re._cache.clear()
    getattr(re, "_cache2", {}).clear()
