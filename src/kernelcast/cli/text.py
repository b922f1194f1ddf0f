"""Numbers as people read them."""

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def format_seconds(seconds: float) -> str:
    """Write a time with three digits and the unit that suits it.

    Examples
    --------
    >>> format_seconds(0.0123456), format_seconds(153.2), format_seconds(2e-6)
    ('12.3 ms', '153 s', '2.00 us')
    """
    scale, unit = _unit_of(seconds)
    return f"{_three_digits(seconds / scale)} {unit}"


def format_range(low_s: float, high_s: float) -> str:
    """Write an interval of times in one unit.

    Examples
    --------
    >>> format_range(0.98, 1.1234)
    '0.980 - 1.12 s'
    """
    scale, unit = _unit_of(high_s)
    return f"{_three_digits(low_s / scale)} - {_three_digits(high_s / scale)} {unit}"


def format_share(share: float, *, signed: bool = False) -> str:
    """Write a share in percent.

    Examples
    --------
    >>> format_share(0.0194), format_share(0.5, signed=True)
    ('1.9 %', '+50.0 %')
    """
    return f"{share * 100:{'+' if signed else ''}.1f} %"


def format_bytes(count: int) -> str:
    """Write an amount of memory.

    Examples
    --------
    >>> format_bytes(32768), format_bytes(100)
    ('32 KiB', '100 B')
    """
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= scale:
            return f"{count / scale:g} {unit}"
    return f"{count} B"


def _unit_of(seconds: float) -> tuple[float, str]:
    return next((entry for entry in _TIME_UNITS if seconds >= entry[0]), _TIME_UNITS[-1])


def _three_digits(value: float) -> str:
    decimals = 0 if value >= 99.95 else 1 if value >= 9.995 else 2 if value >= 0.9995 else 3
    return f"{value:.{decimals}f}"
