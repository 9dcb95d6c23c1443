"""Where a genesis and a task meet: the size class that holds a task, told before anybody starts.

Board, owner, `anofel privacy` and `anofel simulate` ask the same function.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from anofel.errors import InvalidInput
from anofel.messages import Class
from anofel.tasks.task import Task

DEFAULT_SIZES: Final = ((100_000, 64), (100_000, 1_024), (100_000, 8_192), (1_000_000, 1_024))
"""Length and posts of the size classes that ``anofel node init`` gives a board unless told otherwise."""


DEFAULT_DEADLINES: Final[Mapping[str, int]] = {
    "post_from": 60,
    "train": 300,
    "aggregate": 120,
    "count": 120,
    "sum": 120,
    "model": 120,
}
"""How long its phases last, in blocks."""


def default_classes(deadlines: Mapping[str, int] = DEFAULT_DEADLINES) -> tuple[Class, ...]:
    """Return the size classes of default numbers."""
    return tuple(size_class(f"{length}:{posts}", deadlines) for length, posts in DEFAULT_SIZES)


def size_class(text: str, deadlines: Mapping[str, int] = DEFAULT_DEADLINES) -> Class:
    """Read ``LENGTH:POSTS``. Raises ``InvalidInput``."""
    length, _, posts = text.partition(":")
    if not length.isdecimal() or not posts.isdecimal() or not 0 < int(length) < 2**32 > int(posts) > 0:
        raise InvalidInput(f"The size class '{text}' is not LENGTH:POSTS.")
    return Class(max_length=int(length), max_posts=int(posts), **deadlines)


class NoSizeClass(InvalidInput):
    """No size class of a board holds a task; the message names the classes and the number to change."""

    code = "no-size-class"


def size_class_of(classes: Sequence[Class], task: Task) -> int:
    """Return the number of the class that holds a task; of several the one with the fewest posts.

    A class holds tasks with vectors and posts up to its own; what is posted is padded to the class, so that
    every post of a bundle can be added. Adaptive noise follows from ``max_posts``: only a class of exactly
    so many posts holds it, or the last posts of an iteration would bring too little noise. Raises
    ``NoSizeClass``.
    """
    fits = [
        (size.max_posts, size.max_length, number) for number, size in enumerate(classes) if holds(size, task)
    ]
    if fits:
        return min(fits)[2]
    raise NoSizeClass(_refusal([(size.max_length, size.max_posts) for size in classes], task))


def holds(size: Class, task: Task) -> bool:
    """Whether a size class holds a task."""
    posts = task.privacy.max_posts
    enough = posts == size.max_posts if task.privacy.adaptive else posts <= size.max_posts
    return enough and task.length <= size.max_length


def _refusal(sizes: Sequence[tuple[int, int]], task: Task) -> str:
    known = ", ".join(f"{length} values and {posts} posts" for length, posts in sizes)
    start = (
        f"Task '{task.name}' has vectors of {task.length} values and max_posts = {task.privacy.max_posts}; "
        f"the classes of this board hold up to {known}."
    )
    wide = [posts for length, posts in sizes if task.length <= length]
    if not wide:
        return (
            f"{start} No class is long enough: make the model smaller, or the board with "
            f"--size-class {task.length}:{task.privacy.max_posts}."
        )
    option = f"--size-class {task.length}:{task.privacy.max_posts}"
    if task.privacy.adaptive:
        choices = " or ".join(str(posts) for posts in sorted(set(wide)))
        return (
            f"{start} Adaptive noise follows from max_posts: set it to {choices}, or make the board with "
            f"{option}."
        )
    return f"{start} Lower max_posts to {max(wide)} or less, or make the board with {option}."
