"""The declarations of OpenCL C that libclang's wheel lacks, as the text of a header.

Functions are declared by clang itself (``-fdeclare-opencl-builtins``); types, constants and the
few functions below are not. Sections are those of the OpenCL C 3.0 specification; values that it
leaves open are the ones of clang's own header, so that what clang builds in agrees with them.
"""

from collections.abc import Iterator

_SCALARS = {
    "char": "char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short",
    "int": "int", "uint": "unsigned int", "long": "long", "ulong": "unsigned long",
    "float": "float", "double": "double", "half": "half",
}  # fmt: skip
_LANES = (2, 3, 4, 8, 16)
_ADDRESSES = ("size_t", "ptrdiff_t", "intptr_t", "uintptr_t")

# 6.15.2.1: pi and its like, with the letter that ends the name for float and half.
_CONSTANTS = {
    "M_E": "2.71828182845904523536", "M_LOG2E": "1.44269504088896340736",
    "M_LOG10E": "0.43429448190325182765", "M_LN2": "0.69314718055994530942",
    "M_LN10": "2.30258509299404568402", "M_PI": "3.14159265358979323846",
    "M_PI_2": "1.57079632679489661923", "M_PI_4": "0.78539816339744830962",
    "M_1_PI": "0.31830988618379067154", "M_2_PI": "0.63661977236758134308",
    "M_2_SQRTPI": "1.12837916709551257390", "M_SQRT2": "1.41421356237309504880",
    "M_SQRT1_2": "0.70710678118654752440",
}  # fmt: skip
# Digits, bits of the mantissa, then the exponents: 10's and 2's largest, 10's and 2's least.
_FLOATING = {
    "FLT": (6, 24, 38, 128, -37, -125, "0x1.fffffep127f", "0x1.0p-126f", "0x1.0p-23f"),
    "DBL": (15, 53, 308, 1024, -307, -1021,
            "0x1.fffffffffffffp1023", "0x1.0p-1022", "0x1.0p-52"),
    "HALF": (3, 11, 4, 16, -4, -13, "0x1.ffcp15h", "0x1.0p-14h", "0x1.0p-10h"),
}  # fmt: skip
_FLOATING_NAMES = (
    "DIG", "MANT_DIG", "MAX_10_EXP", "MAX_EXP", "MIN_10_EXP", "MIN_EXP", "MAX", "MIN", "EPSILON",
)  # fmt: skip

_MACROS = {
    # the device: it has images and bytes in the usual order
    "__OPENCL_VERSION__": "300", "__ENDIAN_LITTLE__": "1", "__IMAGE_SUPPORT__": "1",
    "NULL": "((void*)0)",
    # 6.15.3: integers
    "CHAR_BIT": "8", "SCHAR_MAX": "127", "SCHAR_MIN": "(-127 - 1)", "CHAR_MAX": "SCHAR_MAX",
    "CHAR_MIN": "SCHAR_MIN", "UCHAR_MAX": "255", "SHRT_MAX": "32767", "SHRT_MIN": "(-32767 - 1)",
    "USHRT_MAX": "65535", "INT_MAX": "2147483647", "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "0xffffffffU", "LONG_MAX": "0x7fffffffffffffffL",
    "LONG_MIN": "(-0x7fffffffffffffffL - 1)", "ULONG_MAX": "0xffffffffffffffffUL",
    # 6.15.2.1: floating point
    "MAXFLOAT": "0x1.fffffep127f", "HUGE_VALF": "(__builtin_huge_valf())",
    "HUGE_VAL": "(__builtin_huge_val())", "INFINITY": "(__builtin_inff())",
    "NAN": '(__builtin_nanf(""))', "FP_ILOGB0": "INT_MIN", "FP_ILOGBNAN": "INT_MAX",
    # 6.15.8, 6.15.12: fences and atomics
    "CLK_LOCAL_MEM_FENCE": "1", "CLK_GLOBAL_MEM_FENCE": "2", "CLK_IMAGE_MEM_FENCE": "4",
    "ATOMIC_VAR_INIT(x)": "(x)", "ATOMIC_FLAG_INIT": "0",
    # 6.15.15: samplers
    "CLK_ADDRESS_NONE": "0", "CLK_ADDRESS_CLAMP_TO_EDGE": "2", "CLK_ADDRESS_CLAMP": "4",
    "CLK_ADDRESS_REPEAT": "6", "CLK_ADDRESS_MIRRORED_REPEAT": "8",
    "CLK_NORMALIZED_COORDS_FALSE": "0", "CLK_NORMALIZED_COORDS_TRUE": "1",
    "CLK_FILTER_NEAREST": "0x10", "CLK_FILTER_LINEAR": "0x20",
    # 6.15.17: kernels that enqueue kernels
    "CLK_SUCCESS": "0", "CLK_ENQUEUE_FAILURE": "(-101)", "CLK_INVALID_QUEUE": "(-102)",
    "CLK_INVALID_NDRANGE": "(-160)", "CLK_INVALID_EVENT_WAIT_LIST": "(-57)",
    "CLK_DEVICE_QUEUE_FULL": "(-161)", "CLK_INVALID_ARG_SIZE": "(-51)",
    "CLK_EVENT_ALLOCATION_FAILURE": "(-100)", "CLK_OUT_OF_RESOURCES": "(-5)",
    "CL_COMPLETE": "0", "CL_RUNNING": "1", "CL_SUBMITTED": "2", "CL_QUEUED": "3",
    "CLK_ENQUEUE_FLAGS_NO_WAIT": "0", "CLK_ENQUEUE_FLAGS_WAIT_KERNEL": "1",
    "CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP": "2", "CLK_PROFILING_COMMAND_EXEC_TIME": "1",
    "CLK_NULL_QUEUE": "0", "CLK_NULL_EVENT": "(__builtin_astype((__SIZE_MAX__), clk_event_t))",
    "CLK_NULL_RESERVE_ID": "(__builtin_astype(((void*)(__SIZE_MAX__)), reserve_id_t))",
    # attributes of kernels that clang takes in no other form
    "kernel_exec(X, T)": "__kernel __attribute__((work_group_size_hint(X, 1, 1)))"
                         " __attribute__((vec_type_hint(T)))",
    "__kernel_exec(X, T)": "kernel_exec(X, T)",
}  # fmt: skip
# 6.15.15.9: what get_image_channel_data_type and _order give, counted from these values.
_CHANNEL_TYPES = (
    "SNORM_INT8", "SNORM_INT16", "UNORM_INT8", "UNORM_INT16", "UNORM_SHORT_565",
    "UNORM_SHORT_555", "UNORM_INT_101010", "SIGNED_INT8", "SIGNED_INT16", "SIGNED_INT32",
    "UNSIGNED_INT8", "UNSIGNED_INT16", "UNSIGNED_INT32", "HALF_FLOAT", "FLOAT", "UNORM_INT24",
)  # fmt: skip
_CHANNEL_ORDERS = (
    "R", "A", "RG", "RA", "RGB", "RGBA", "BGRA", "ARGB", "INTENSITY", "LUMINANCE", "Rx", "RGx",
    "RGBx", "DEPTH", "DEPTH_STENCIL", "sRGB", "sRGBx", "sRGBA", "sBGRA", "ABGR",
)  # fmt: skip

# What clang's builtins ask for: optional features of 3.0 that 2.0 always has, and extensions.
# Half and double are enabled here, because many sources use them without a pragma.
_FEATURES = """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#if __OPENCL_C_VERSION__ == 200 || __OPENCL_CPP_VERSION__ == 100
#define __opencl_c_pipes 1
#define __opencl_c_device_enqueue 1
#define __opencl_c_generic_address_space 1
#define __opencl_c_program_scope_global_variables 1
#define __opencl_c_atomic_order_acq_rel 1
#define __opencl_c_images 1
#endif
#if __OPENCL_C_VERSION__ >= 200 || defined(__OPENCL_CPP_VERSION__)
#define __opencl_c_work_group_collective_functions 1
#define __opencl_c_atomic_order_seq_cst 1
#define __opencl_c_atomic_scope_device 1
#define __opencl_c_atomic_scope_all_devices 1
#define __opencl_c_read_write_images 1
#define __opencl_c_integer_dot_product_input_4x8bit 1
#define __opencl_c_integer_dot_product_input_4x8bit_packed 1
#endif
#ifndef __opencl_c_generic_address_space
#define __opencl_c_named_address_space_builtins 1
#endif
#define __opencl_subgroup_builtins 1
#define cl_khr_subgroups 1
#define cl_khr_subgroup_extended_types 1
#define cl_khr_subgroup_non_uniform_vote 1
#define cl_khr_subgroup_ballot 1
#define cl_khr_subgroup_non_uniform_arithmetic 1
#define cl_khr_subgroup_shuffle 1
#define cl_khr_subgroup_shuffle_relative 1
#define cl_khr_subgroup_clustered_reduce 1
#define cl_khr_subgroup_rotate 1
#define cl_khr_extended_bit_ops 1
#define cl_khr_integer_dot_product 1
#define cl_khr_kernel_clock 1
#define cl_ext_float_atomics 1
"""
_FLOAT_ATOMICS = tuple(
    f"__opencl_c_ext_{type_}_{place}_atomic_{what}"
    for type_ in ("fp32", "fp64")
    for place in ("global", "local")
    for what in ("add", "min_max")
)

_DECLARATIONS = """
typedef uint cl_mem_fence_flags;
typedef int kernel_enqueue_flags_t;
typedef int clk_profiling_info;
typedef enum memory_order {
  memory_order_relaxed = __ATOMIC_RELAXED, memory_order_acquire = __ATOMIC_ACQUIRE,
  memory_order_release = __ATOMIC_RELEASE, memory_order_acq_rel = __ATOMIC_ACQ_REL,
  memory_order_seq_cst = __ATOMIC_SEQ_CST
} memory_order;
typedef enum memory_scope {
  memory_scope_work_item = __OPENCL_MEMORY_SCOPE_WORK_ITEM,
  memory_scope_work_group = __OPENCL_MEMORY_SCOPE_WORK_GROUP,
  memory_scope_device = __OPENCL_MEMORY_SCOPE_DEVICE,
  memory_scope_all_svm_devices = __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES,
  memory_scope_all_devices = memory_scope_all_svm_devices,
  memory_scope_sub_group = __OPENCL_MEMORY_SCOPE_SUB_GROUP
} memory_scope;
typedef struct { uint workDimension; size_t globalWorkOffset[3], globalWorkSize[3],
  localWorkSize[3]; } ndrange_t;
#if __OPENCL_C_VERSION__ >= 120 || defined(__OPENCL_CPP_VERSION__)
int printf(__constant const char *format, ...) __attribute__((format(printf, 1, 2)));
#endif
ulong clock_read_device(void); uint2 clock_read_hilo_device(void);
ulong clock_read_work_group(void); uint2 clock_read_hilo_work_group(void);
ulong clock_read_sub_group(void); uint2 clock_read_hilo_sub_group(void);
uint amd_pack(float4 a);
#define intel_sub_group_shuffle(x, lane) sub_group_shuffle(x, lane)
#define intel_sub_group_shuffle_xor(x, mask) sub_group_shuffle_xor(x, mask)
"""
# cl_amd_media_ops and its successor: all lanes of uint, one or three arguments.
_VENDOR_OF_ONE = ("amd_unpack0", "amd_unpack1", "amd_unpack2", "amd_unpack3")
_VENDOR_OF_THREE = ("amd_bitalign", "amd_bytealign", "amd_lerp", "amd_sad", "amd_bfe")


def make_header() -> str:
    """Write the header.

    Returns
    -------
    str
        Text to be included before any source of OpenCL C 1.0 to 3.0.
    """
    lines = (
        _FEATURES, *_type_lines(), *_constant_lines(), *_channel_lines(), _DECLARATIONS,
        *_vendor_lines(),
    )  # fmt: skip
    return "\n".join(lines) + "\n"


def _type_lines() -> Iterator[str]:
    """Name the types of 6.3.1 and 6.3.2, and the reinterpretations of 6.4.4.2."""
    for name, meaning in _SCALARS.items():
        if name != meaning:
            yield f"typedef {meaning} {name};"
        yield f"#define as_{name}(x) __builtin_astype((x), {name})"
        for lanes in _LANES:
            vector = f"{name}{lanes}"
            yield f"typedef {name} {vector} __attribute__((ext_vector_type({lanes})));"
            yield f"#define as_{vector}(x) __builtin_astype((x), {vector})"
    for name in _ADDRESSES:
        yield f"typedef __{name.removesuffix('_t').upper()}_TYPE__ {name};"
        yield f"#define as_{name}(x) __builtin_astype((x), {name})"


def _constant_lines() -> Iterator[str]:
    yield from (f"#define {name} 1" for name in _FLOAT_ATOMICS)
    for name, value in _MACROS.items():
        yield f"#define {name} {value}"
    for name, value in _CONSTANTS.items():
        yield f"#define {name} {value}"
        yield f"#define {name}_F {value}f"
        yield f"#define {name}_H {value}h"
    for prefix, values in _FLOATING.items():
        yield f"#define {prefix}_RADIX 2"
        for name, number in zip(_FLOATING_NAMES, values, strict=True):
            yield f"#define {prefix}_{name} ({number})"


def _channel_lines() -> Iterator[str]:
    for value, name in enumerate(_CHANNEL_TYPES, start=0x10D0):
        yield f"#define CLK_{name} {value:#x}"
    for value, name in enumerate(_CHANNEL_ORDERS, start=0x10B0):
        yield f"#define CLK_{name} {value:#x}"


def _vendor_lines() -> Iterator[str]:
    for lanes in ("", *_LANES):
        uint = f"uint{lanes}"
        for name in _VENDOR_OF_THREE:
            yield f"{uint} __attribute__((overloadable)) {name}({uint}, {uint}, {uint});"
    for name in _VENDOR_OF_ONE:
        yield f"float {name}(uint a);"
