"""What a process has freed, given back to the system."""

import ctypes

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it


def return_freed_memory() -> None:
    """Return freed memory to the system now; where the C library is not glibc, it decides by itself.

    After a burst of work a heap stays as large as it was at most: what lives on lies scattered in it. This takes some
    100 ms a GB, on the caller's thread but without the interpreter.
    """
    if _trim is not None:
        _trim(ctypes.c_size_t(0))
