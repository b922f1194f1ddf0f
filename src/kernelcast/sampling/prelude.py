"""Makes a launch of a few work-groups look, from inside the kernel, like the whole launch.

A sampled box of work-groups is launched with a global offset, so `get_global_id` and
`get_local_id` are right without any change. The other work-item functions would tell of the small
launch; a prelude in front of the source corrects them:

==========================  =========================================================
`get_group_id(d)`           launch's own + launch's offset / local size, where the true
                            offset is 0; else (global id - local id - true offset) / local size
`get_num_groups(d)`         the whole launch's, plus zero
`get_global_size(d)`        the whole launch's, plus zero
`get_global_offset(d)`      the whole launch's, plus zero
`get_global_linear_id()`    from true ids, sizes and offsets
==========================  =========================================================

The zero is the size of a dimension that the launch does not have, less one; in three dimensions
their number, less three. The compiler does not know it: it shall know no more of these numbers than
in the unchanged kernel. With constants it made other code, 1.5 times slower for one kernel on
Intel's CPU runtime, 0.8 times for another on PoCL. Nor is it enough that a number is one of a few:
as nothing is divided by zero, kernels that divide by the global size divided by a constant where
that was multiplied with 0 or 1, or more quickly by a small number, and took a quarter or half of
their time.

Group ids of launches that have an offset of their own come from global ids: PoCL assumes of
launches smaller than 65,536 work-items that their offset is below 65,535. Less a true offset beyond
that, it must be negative then: group ids came out as 2^58, and comparisons with them as never true.

A window of several rows may be launched as one row of work-groups (`add_prelude(row_width=...)`): a
runtime that cuts index spaces into tiles would cut a small box otherwise than the whole launch.
Work-group g of the row is then the window's (g mod w, g div w), w the tile's width. Only full
work-groups are launched so.
Global ids are the builtin's, less or plus what is the same for all work-items of a work-group, as
signed sums of 32 bits where they fit: with unsigned ones, Intel's compiler no longer saw that
neighbours access neighbours, and stencils of 32 x 8 work-items took three to five times as long.
A matrix product became faster than it is; with sums of 64 bits it did not.

The functions are defined before the macros, which only rename: an argument is evaluated once, and
inside the functions the builtins keep their names. Dimensions beyond 2 have OpenCL's fixed answers
and reach no builtin: PoCL and rusticl crash on `get_group_id(3)`.
Kernels that use none of these names run as they are where nothing is mapped: the least intrusive
launch. Those that cannot ask for sizes get a prelude without them: it is the same for all index
spaces, and so is what is built.
"""

import re
from collections.abc import Sequence

from kernelcast.records.ndrange import NDRange

_TELL_SIZE = ("get_num_groups", "get_global_size", "get_global_offset", "get_global_linear_id")
# What may name one of them: the names, a file's text, and names pasted together by the
# preprocessor. Comments count too: a needless prelude changes nothing, a missing one everything.
_MAY_TELL_SIZE = re.compile("|".join(_TELL_SIZE) + r"|#\s*include|##")
_MAY_USE = re.compile("get_group_id|" + _MAY_TELL_SIZE.pattern)
_CONTINUED_LINE = re.compile(r"\\\r?\n")

_GROUP = "get_group_id(AXIS) + get_global_offset(AXIS) / KC_LOCAL_AXIS SHIFT"
_GROUP_OF_ID = "(KC_ID_AXIS - get_local_id(AXIS) - KC_OFFSET_AXIS) / KC_LOCAL_AXIS"
_ID = "get_global_id(AXIS)"
_MAPPED_ID = "(size_t)((TYPE)get_global_id(AXIS) + (TYPE)(0 SHIFT * KC_LOCAL_AXIS))"
_INT_MAX = 2**31 - 1
_SHIFTS = (
    "- get_group_id(0) / KC_ROW_WIDTH * KC_ROW_WIDTH",
    "+ get_group_id(0) / KC_ROW_WIDTH",
    "",
)
# Names begin with kc_ or KC_, so that the macros of build options (-Dd=2) leave them alone.
_PRELUDE = """\
#define KC_GROUP(axis) (KC_GROUP_##axis)
#define KC_PICK(a, b, c, other) \\
    (kc_axis == 0 ? (a) : kc_axis == 1 ? (b) : kc_axis == 2 ? (c) : (size_t)(other))
static inline size_t kc_group_id(uint kc_axis)
{ return KC_PICK(KC_GROUP(0), KC_GROUP(1), KC_GROUP(2), 0); }
static inline size_t kc_global_id(uint kc_axis)
{ return KC_PICK(KC_ID_0, KC_ID_1, KC_ID_2, 0); }
"""
_SIZES = """\
#define KC_NUM_GROUPS(axis) (KC_GROUPS_##axis + KC_ZERO)
#define KC_GLOBAL_SIZE(axis) (KC_SIZE_##axis + KC_ZERO)
#define KC_GLOBAL_OFFSET(axis) (KC_OFFSET_##axis + KC_ZERO)
static inline size_t kc_num_groups(uint kc_axis)
{ return KC_PICK(KC_NUM_GROUPS(0), KC_NUM_GROUPS(1), KC_NUM_GROUPS(2), 1); }
static inline size_t kc_global_size(uint kc_axis)
{ return KC_PICK(KC_GLOBAL_SIZE(0), KC_GLOBAL_SIZE(1), KC_GLOBAL_SIZE(2), 1); }
static inline size_t kc_global_offset(uint kc_axis)
{ return KC_PICK(KC_GLOBAL_OFFSET(0), KC_GLOBAL_OFFSET(1), KC_GLOBAL_OFFSET(2), 0); }
static inline size_t kc_global_linear_id(void)
{
    return ((KC_ID_2 - KC_GLOBAL_OFFSET(2)) * KC_GLOBAL_SIZE(1)
            + KC_ID_1 - KC_GLOBAL_OFFSET(1)) * KC_GLOBAL_SIZE(0)
        + KC_ID_0 - KC_GLOBAL_OFFSET(0);
}
"""


def needs_prelude(source: str, build_options: Sequence[str] = ()) -> bool:
    """Tell whether a kernel could notice that it runs in a smaller launch.

    Parameters
    ----------
    build_options : sequence of str
        Options of the compiler; a macro defined there may name a function too.

    Examples
    --------
    >>> needs_prelude("kernel void k(global int *a) { a[get_global_id(0)] = 0; }")
    False
    >>> needs_prelude("kernel void k(global int *a) { a[get_group_id(0)] = 0; }")
    True
    """
    return _may_name(_MAY_USE, source, build_options)


def _may_name(names: re.Pattern[str], source: str, build_options: Sequence[str]) -> bool:
    text = "\n".join((source, *build_options))
    return names.search(_CONTINUED_LINE.sub("", text)) is not None


def add_prelude(
    source: str,
    ndrange: NDRange,
    *,
    source_name: str,
    build_options: Sequence[str] = (),
    row_width: int = 0,
    is_wide: bool = False,
) -> str:
    """Put the prelude for one launch in front of a source; its line numbers stay right.

    Parameters
    ----------
    source_name : str
        File name for the compiler's messages.
    build_options : sequence of str
        As of `needs_prelude`.
    row_width : int
        Work-groups of a window's rows, where a single row of work-groups is mapped to them; 0 for
        windows that are launched as the boxes they are.
    is_wide : bool
        Whether ids of a mapped row are sums of 64 bits, also where 32 would do.
    """
    padding = 3 - ndrange.dimensions
    offsets = ndrange.global_offset + (0,) * padding
    values = {"OFFSET": offsets, "LOCAL": ndrange.known_local_size + (1,) * padding}
    tells_size = _may_name(_MAY_TELL_SIZE, source, build_options)
    if tells_size:
        values["GROUPS"] = ndrange.group_counts + (1,) * padding
        values["SIZE"] = ndrange.global_size + (1,) * padding
    defines = "".join(
        f"#define KC_{name}_{axis} {number}ul\n"
        for name, numbers in values.items()
        for axis, number in enumerate(numbers)
    )
    zero = "get_global_size(2) - 1" if padding else "get_work_dim() - 3ul"
    defines += f"#define KC_ZERO ({zero})\n"
    if row_width:
        defines += f"#define KC_ROW_WIDTH {row_width}ul\n"
    shifts = _SHIFTS if row_width else ("", "", "")
    highest = max(offsets) + ndrange.work_item_count
    mapped_id = _MAPPED_ID.replace("TYPE", "long" if is_wide or highest > _INT_MAX else "int")
    ids = "".join(
        _define("ID", axis, mapped_id if shift else _ID, shift)
        + _define("GROUP", axis, _GROUP_OF_ID if offset else _GROUP, shift)
        for axis, (offset, shift) in enumerate(zip(offsets, shifts, strict=True))
    )
    names = ("get_group_id", *_TELL_SIZE * tells_size, *("get_global_id",) * bool(row_width))
    renamed = "".join(f"#define {one} {one.replace('get', 'kc', 1)}\n" for one in names)
    return f"{defines}{ids}{_PRELUDE}{_SIZES * tells_size}{renamed}{mark_line(source_name)}{source}"


def _define(name: str, axis: int, formula: str, shift: str) -> str:
    text = formula.replace("SHIFT", shift).replace("AXIS", str(axis)).strip()
    return f"#define KC_{name}_{axis} ({text})\n"


def mark_line(source_name: str) -> str:
    """Give the directive that makes the next line the first of `source_name`."""
    one_line = "".join(sign if sign.isprintable() else " " for sign in source_name)
    printable = one_line.replace("\\", "/").replace('"', "'")
    return f'#line 1 "{printable}"\n'
