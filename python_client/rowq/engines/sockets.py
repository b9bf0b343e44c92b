"""What several engines' drivers leave to their users about sockets."""

import select


def has_input(descriptor: int) -> bool:
    """Return whether something can be read at once: a word of the other side, or its end."""
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
