"""Planning tables as files: what the generators of tables share."""
import csv
import os
import pathlib
import tempfile


class BadTable(Exception):
    """What a user can mend; its text is the whole message."""


def folder(path):
    """The folder of that name, made if it is missing."""
    made = pathlib.Path(path)
    try:
        made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadTable(f"'{path}': {error.strerror}; expected a folder, or a name for a new one") from None
    return made


def write_table(path, columns, rows):
    """Writes under another name first: a reader never sees half a table."""
    try:
        handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
        try:
            with open(handle, "w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(columns)
                writer.writerows(rows)
            os.chmod(unfinished, 0o644)
            os.replace(unfinished, path)
        except BaseException:
            os.unlink(unfinished)
            raise
    except OSError as error:
        raise BadTable(f"'{path}': {error.strerror}; expected a file that can be written") from None


def max_live(buffers):
    """Most bytes alive at once: no plan takes less. Buffers are (lower, upper, size), half-open."""
    changes = {}
    for lower, upper, size in buffers:
        changes[lower] = changes.get(lower, 0) + size
        changes[upper] = changes.get(upper, 0) - size
    most = live = 0
    for moment in sorted(changes):
        live += changes[moment]
        most = max(most, live)
    return most
