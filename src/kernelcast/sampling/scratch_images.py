"""Scratch copies of the images that a kernel may write."""

from collections.abc import Sequence
from typing import cast

from kernelcast.records.arguments import Access
from kernelcast.sampling.opencl import cl

_AXES = {
    cl.mem_object_type.IMAGE2D: ("width", "height"),
    cl.mem_object_type.IMAGE2D_ARRAY: ("width", "height", "array_size"),
    cl.mem_object_type.IMAGE3D: ("width", "height", "depth"),
}


class ScratchImages:
    """Copies of a launch's images, each as a whole: no source says which pixels are touched.

    Parameters
    ----------
    arguments : sequence
        The launch's.
    accesses : sequence of Access or None
        One per argument; images that are only read are not copied.
    """

    def __init__(
        self, queue: cl.CommandQueue, arguments: Sequence[object], accesses: Sequence[Access | None]
    ) -> None:
        self._queue = queue
        self._originals = {
            argument.int_ptr: argument
            for argument, access in zip(arguments, accesses, strict=True)
            if isinstance(argument, cl.Image) and access is not Access.READ
        }
        self._copies: dict[int, cl.Image] = {}

    @property
    def bytes(self) -> int:
        """Size of the copies."""
        return sum(image.size for image in self._originals.values())

    def make(self) -> None:
        """Make the copies."""
        self._copies = {key: _make_alike(one) for key, one in self._originals.items()}
        self.refresh()

    def replace(self, argument: object) -> object:
        """Give the copy that stands for an argument; itself where there is none."""
        if not isinstance(argument, cl.Image):
            return argument
        return self._copies.get(argument.int_ptr, argument)

    def refresh(self) -> None:
        """Give the copies the originals' content."""
        for key, copy in self._copies.items():
            width, height, depth = (*_find_shape(copy), 1)[:3]
            cl.enqueue_copy(
                self._queue, copy, self._originals[key],
                src_origin=(0, 0, 0), dest_origin=(0, 0, 0), region=(width, height, depth),
            )  # fmt: skip

    def release(self) -> None:
        """Give the memory back."""
        self._copies = {}


def can_be_copied(image: cl.Image) -> bool:
    """Tell whether pyopencl copies such images, and nothing else shares their memory."""
    shared = image.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    return _find_type(image) in _AXES and shared is None


def _make_alike(image: cl.Image) -> cl.Image:
    return cl.create_image(
        image.context, cl.mem_flags.READ_WRITE, image.format,
        shape=_find_shape(image), is_array=_find_type(image) == cl.mem_object_type.IMAGE2D_ARRAY,
    )  # fmt: skip


def _find_shape(image: cl.Image) -> tuple[int, ...]:
    """Give how many pixels, rows and slices or images an image has."""
    return tuple(getattr(image, axis) for axis in _AXES[_find_type(image)])


def _find_type(image: cl.Image) -> cl.mem_object_type:
    return cast("cl.mem_object_type", image.type)  # pyopencl types it as a number
