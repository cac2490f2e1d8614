"""Did what a system raised mean that memory ran out?"""

_WORDS = ("out of memory", "outofmemory", "allocate memory")


def ran_out_of_memory(error: BaseException) -> bool:
    """Frameworks have allocators and error types of their own; their words agree better than their types."""
    text = f"{type(error).__name__} {error}".lower()
    return isinstance(error, MemoryError) or any(words in text for words in _WORDS)
