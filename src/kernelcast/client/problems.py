"""Problem files as the service takes them: sources are sent as text."""

from pathlib import Path
from typing import Any

import yaml

from kernelcast.records.errors import ProblemFileError


def read_problem_file(path: str | Path) -> dict[str, Any]:
    """Read a problem file into what the service takes.

    Parameters
    ----------
    path : str or Path
        The YAML file; the source that it names is read too.

    Returns
    -------
    dict
        With `code` instead of `source`, and the file's stem as `name`.

    Raises
    ------
    ProblemFileError
        If a file cannot be read. Contents of buffers that come from files are the service's to
        refuse.
    """
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            msg = f"{path}: expected `key: value` pairs"
            raise ProblemFileError(msg)
        source = content.pop("source", None)
        if source is not None:
            content["code"] = (path.parent / str(source)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise ProblemFileError(msg) from error
    return {"name": path.stem, **content}
