from pathlib import Path

import pytest

from kernelcast.compiling import Target, compile_kernel
from kernelcast.records.errors import CompileError, InputError

KERNEL = "\nkernel void k(global int *a) { a[0] = 1; }\n"
SECRET = "hidden_word"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that may be read, a secret beside it, and a link that leads to the secret."""
    (tmp_path / "secret.h").write_text(f"int {SECRET};\n")
    shown = tmp_path / "shown"
    (shown / "below").mkdir(parents=True)
    (shown / "size.h").write_text('#include "below/deep.h"\n')
    (shown / "below" / "deep.h").write_text("#define SIZE 7\n")
    (shown / "link.h").symlink_to("../secret.h")
    (shown / "away").symlink_to("..", target_is_directory=True)
    return shown


ESCAPES = (
    '#include "{secret}"',
    "#include <{secret}>",
    '#include "../secret.h"',
    '#include "below/../../secret.h"',
    '#include "link.h"',
    '#include "away/secret.h"',
    '#define FILE "{secret}"\n#include FILE',
    '%:include "{secret}"',
    '??=include "{secret}"',
    '#inc\\\nlude "{secret}"',
    '#import "{secret}"',
    '#include_next "{secret}"',
    '#embed "{secret}"',
    '_Pragma("GCC dependency \\"{secret}\\"")',
    '#if __has_include("{secret}") || __has_include("../secret.h")\n#else\n#error unseen\n#endif',
)


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("is_given", [True, False])
def test_no_way_out(escape: str, is_given: bool, folder: Path) -> None:
    """No include, in whatever spelling, reads a file outside the folders, nor tells of it."""
    secret = folder.parent / "secret.h"
    folders = [folder] if is_given else []
    with pytest.raises(CompileError) as raised:
        compile_kernel(escape.format(secret=secret) + KERNEL, include_folders=folders)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("target", ["x86", "gfx90a", "sm_75"])
@pytest.mark.parametrize("directive", [".incbin", ".include"])
def test_assembly_reads_no_file(directive: str, target: str, folder: Path) -> None:
    """Inline assembly is copied, not assembled."""
    secret = folder.parent / "secret.h"
    line = f'__asm__ volatile("{directive} \\"{secret}\\"");'
    source = f"kernel void k(global int *a) {{ {line} a[0] = 1; }}"
    assert SECRET not in compile_kernel(source, (), Target.parse(target)).text


@pytest.mark.parametrize("option", ["-I/etc", "-I ..", "-Iaway", "-Ibelow/../.."])
def test_options_lead_nowhere(option: str, folder: Path) -> None:
    """A -I that leaves the folders is refused, also over a link."""
    with pytest.raises(InputError, match="leads out of the include folders"):
        compile_kernel(KERNEL, [option], include_folders=[folder])


@pytest.mark.parametrize(
    ("options", "name"), [((), "size.h"), (("-I.",), "size.h"), (("-Ibelow",), "deep.h")]
)
def test_files_within(options: tuple[str, ...], name: str, folder: Path) -> None:
    """Files of the folders are included, and what they include beside them."""
    source = f'#include "{name}"\nkernel void k(global int *a) {{ a[0] = SIZE; }}'
    compiled = compile_kernel(source, options, include_folders=[folder])
    assert "store i32 7" in compiled.text


def test_errors_in_included_files(folder: Path) -> None:
    """An error in an included file is at that file's line."""
    (folder / "wrong.h").write_text("\nint = 3;\n")
    with pytest.raises(CompileError, match=r"wrong\.h:2:5: error"):
        compile_kernel('#include "wrong.h"' + KERNEL, include_folders=[folder])


@pytest.mark.parametrize("place", ["/", "/none/such"])
def test_folders_refused(place: str) -> None:
    """What is no folder is refused, and so is the root of the file system."""
    with pytest.raises(InputError, match="no such folder"):
        compile_kernel(KERNEL, include_folders=[place])
