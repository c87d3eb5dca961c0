"""One writer a file: an exclusive lock that ends with the process, however it ends."""

from __future__ import annotations

import errno
import os
import sys

_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}

if sys.platform == "win32":
    import msvcrt

    _FAR = 2**62  # the lock forbids reading, so it is set on a byte that never exists

    def try_lock(fd: int) -> bool:
        """Lock an open file; False if somebody else has it locked."""
        os.lseek(fd, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def unlock(fd: int) -> None:
        """Give the lock back."""
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(fd: int) -> bool:
        """Lock an open file; False if somebody else has it locked.

        Raises:
            LocksUnsupported: The file system has no locks.
        """
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as problem:
            if problem.errno in _UNSUPPORTED:
                raise LocksUnsupported(str(problem)) from problem
            raise
        return True

    def unlock(fd: int) -> None:
        """Give the lock back, also from processes that inherited the descriptor."""
        fcntl.flock(fd, fcntl.LOCK_UN)


class LocksUnsupported(OSError):
    """The file system has no locks, as some network file systems."""
