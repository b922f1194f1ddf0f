"""Errors of models as people read them."""


def format_error(share: float | None) -> str:
    """Write an error with two decimals, as the paper does.

    Examples
    --------
    >>> format_error(0.0476), format_error(None)
    ('4.76 %', '-')
    """
    return "-" if share is None else f"{share * 100:.2f} %"


def format_class(low: float, high: float | None) -> str:
    """Name an error class of the paper's Table 3.

    Examples
    --------
    >>> format_class(0.0, 0.05), format_class(0.1, None)
    ('0 - 5 %', 'over 10 %')
    """
    return f"over {low * 100:.0f} %" if high is None else f"{low * 100:.0f} - {high * 100:.0f} %"
