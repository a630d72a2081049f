"""Files that are written: looked at before a command runs, so that a wrong one costs nothing, and written whole."""
import contextlib
import itertools
import os
import pathlib
import stat

from command import Complaint

STANDARD = 1, 2  # output and error


def found_at(path):
    """What stat says of it, links followed; None where there is nothing. Raises Complaint where it may not be asked for."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Complaint(f"cannot write {path}: {error.strerror}", status=2) from None


def standard_at(found):
    """The standard stream that is this file already; None: none is."""
    for descriptor in STANDARD:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), found):
                return descriptor
    return None


def is_replaced(path):
    """Whether writing gives it a new file: not a device or a pipe, which others hold, nor what is printed to."""
    found = found_at(path)
    return found is None or (stat.S_ISREG(found.st_mode) and standard_at(found) is None)


def prepare(path, by_command=False):
    """The path, whole. `by_command`: the command writes it and it is read afterwards, so it has to be a file of its own."""
    path = pathlib.Path(path).absolute()
    found = found_at(path)
    if found and stat.S_ISDIR(found.st_mode):
        raise Complaint(f"{path} is a folder; expected a path of a file", status=2)
    if found and not os.access(path, os.W_OK):
        raise Complaint(f"cannot write {path}: it may not be {'replaced' if is_replaced(path) else 'written'}", status=2)
    if not is_replaced(path):
        if by_command:
            what = "what is printed goes there" if stat.S_ISREG(found.st_mode) else "it is a device, a pipe or a socket"
            raise Complaint(f"cannot write {path}: {what}; expected a path of a file", "the file is read when the command has ended", 2)
        return path
    folder = pathlib.Path(os.path.realpath(path)).parent
    within = found_at(folder)
    if not within or not stat.S_ISDIR(within.st_mode):
        raise Complaint(f"cannot write {path}: {folder} is no folder", status=2)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Complaint(f"cannot write {path}: {folder} cannot be written", status=2)
    return path


def is_same(one, other):
    """Whether both name one file, there or not."""
    return os.path.realpath(one) == os.path.realpath(other)


def write(path, content):
    """Text or bytes, whole or not at all. What is no file is written as it stands; of a link, what it leads to."""
    content = content.encode(errors="replace") if isinstance(content, str) else content
    try:
        if is_replaced(path):
            replace(pathlib.Path(os.path.realpath(path)), content)
            return
        standard = standard_at(os.stat(path))
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC) if standard is None else os.dup(standard)
        with open(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise Complaint(f"cannot write {path}: {error.strerror}") from None


def replace(path, content):
    """By a file beside it, with the permissions of what was there."""
    beside, descriptor = make_beside(path)
    try:
        with open(descriptor, "wb") as file:
            if path.exists():
                os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def make_beside(path):
    """(path, descriptor) of a new file. It has none of the path's name, which may be as long as names can be."""
    for number in itertools.count():
        beside = path.with_name(f".profile-{os.getpid()}-{number}")
        with contextlib.suppress(FileExistsError):
            return beside, os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
