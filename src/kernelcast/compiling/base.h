// What OpenCL C defines beside its built-in functions (which clang declares itself): types,
// constants, feature macros. Included before every source; __OPENCL_VERSION__, extensions and
// features of the device come from the command line. Numbers are those of clang's own header.
#pragma clang system_header
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#if defined(cl_khr_fp64) && __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#if __OPENCL_C_VERSION__ == 200
#define __opencl_c_pipes 1
#define __opencl_c_generic_address_space 1
#define __opencl_c_work_group_collective_functions 1
#define __opencl_c_atomic_order_acq_rel 1
#define __opencl_c_atomic_order_seq_cst 1
#define __opencl_c_atomic_scope_device 1
#define __opencl_c_atomic_scope_all_devices 1
#define __opencl_c_device_enqueue 1
#define __opencl_c_read_write_images 1
#define __opencl_c_program_scope_global_variables 1
#define __opencl_c_images 1
#endif
#ifndef __opencl_c_generic_address_space
#define __opencl_c_named_address_space_builtins 1
#endif
#if defined(cl_intel_subgroups) || defined(cl_khr_subgroups) || defined(__opencl_c_subgroups)
#define __opencl_subgroup_builtins 1
#endif
#ifdef cl_intel_subgroups
#define cl_khr_subgroup_shuffle 1
#define intel_sub_group_shuffle(x, lane) sub_group_shuffle(x, lane)
#define intel_sub_group_shuffle_xor(x, mask) sub_group_shuffle_xor(x, mask)
#endif

#define __half half

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;

#define __vectors(type)                                          \
    typedef type type##2 __attribute__((ext_vector_type(2)));    \
    typedef type type##3 __attribute__((ext_vector_type(3)));    \
    typedef type type##4 __attribute__((ext_vector_type(4)));    \
    typedef type type##8 __attribute__((ext_vector_type(8)));    \
    typedef type type##16 __attribute__((ext_vector_type(16)));
__vectors(uchar)
__vectors(ushort)
__vectors(uint)
__vectors(ulong)
__vectors(char)
__vectors(short)
__vectors(int)
__vectors(long)
__vectors(float)
#ifdef cl_khr_fp16
__vectors(half)
#endif
#ifdef cl_khr_fp64
__vectors(double)
#endif
#undef __vectors

// Reinterpretation (6.4.4.2).
#define as_char(x) __builtin_astype((x), char)
#define as_char2(x) __builtin_astype((x), char2)
#define as_char3(x) __builtin_astype((x), char3)
#define as_char4(x) __builtin_astype((x), char4)
#define as_char8(x) __builtin_astype((x), char8)
#define as_char16(x) __builtin_astype((x), char16)
#define as_uchar(x) __builtin_astype((x), uchar)
#define as_uchar2(x) __builtin_astype((x), uchar2)
#define as_uchar3(x) __builtin_astype((x), uchar3)
#define as_uchar4(x) __builtin_astype((x), uchar4)
#define as_uchar8(x) __builtin_astype((x), uchar8)
#define as_uchar16(x) __builtin_astype((x), uchar16)
#define as_short(x) __builtin_astype((x), short)
#define as_short2(x) __builtin_astype((x), short2)
#define as_short3(x) __builtin_astype((x), short3)
#define as_short4(x) __builtin_astype((x), short4)
#define as_short8(x) __builtin_astype((x), short8)
#define as_short16(x) __builtin_astype((x), short16)
#define as_ushort(x) __builtin_astype((x), ushort)
#define as_ushort2(x) __builtin_astype((x), ushort2)
#define as_ushort3(x) __builtin_astype((x), ushort3)
#define as_ushort4(x) __builtin_astype((x), ushort4)
#define as_ushort8(x) __builtin_astype((x), ushort8)
#define as_ushort16(x) __builtin_astype((x), ushort16)
#define as_int(x) __builtin_astype((x), int)
#define as_int2(x) __builtin_astype((x), int2)
#define as_int3(x) __builtin_astype((x), int3)
#define as_int4(x) __builtin_astype((x), int4)
#define as_int8(x) __builtin_astype((x), int8)
#define as_int16(x) __builtin_astype((x), int16)
#define as_uint(x) __builtin_astype((x), uint)
#define as_uint2(x) __builtin_astype((x), uint2)
#define as_uint3(x) __builtin_astype((x), uint3)
#define as_uint4(x) __builtin_astype((x), uint4)
#define as_uint8(x) __builtin_astype((x), uint8)
#define as_uint16(x) __builtin_astype((x), uint16)
#define as_long(x) __builtin_astype((x), long)
#define as_long2(x) __builtin_astype((x), long2)
#define as_long3(x) __builtin_astype((x), long3)
#define as_long4(x) __builtin_astype((x), long4)
#define as_long8(x) __builtin_astype((x), long8)
#define as_long16(x) __builtin_astype((x), long16)
#define as_ulong(x) __builtin_astype((x), ulong)
#define as_ulong2(x) __builtin_astype((x), ulong2)
#define as_ulong3(x) __builtin_astype((x), ulong3)
#define as_ulong4(x) __builtin_astype((x), ulong4)
#define as_ulong8(x) __builtin_astype((x), ulong8)
#define as_ulong16(x) __builtin_astype((x), ulong16)
#define as_float(x) __builtin_astype((x), float)
#define as_float2(x) __builtin_astype((x), float2)
#define as_float3(x) __builtin_astype((x), float3)
#define as_float4(x) __builtin_astype((x), float4)
#define as_float8(x) __builtin_astype((x), float8)
#define as_float16(x) __builtin_astype((x), float16)
#define as_double(x) __builtin_astype((x), double)
#define as_double2(x) __builtin_astype((x), double2)
#define as_double3(x) __builtin_astype((x), double3)
#define as_double4(x) __builtin_astype((x), double4)
#define as_double8(x) __builtin_astype((x), double8)
#define as_double16(x) __builtin_astype((x), double16)
#define as_half(x) __builtin_astype((x), half)
#define as_half2(x) __builtin_astype((x), half2)
#define as_half3(x) __builtin_astype((x), half3)
#define as_half4(x) __builtin_astype((x), half4)
#define as_half8(x) __builtin_astype((x), half8)
#define as_half16(x) __builtin_astype((x), half16)
#define as_size_t(x) __builtin_astype((x), size_t)
#define as_ptrdiff_t(x) __builtin_astype((x), ptrdiff_t)
#define as_intptr_t(x) __builtin_astype((x), intptr_t)
#define as_uintptr_t(x) __builtin_astype((x), uintptr_t)

#define NULL ((void*)0)
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-127 - 1)
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32767 - 1)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 0xffffffffU
#define LONG_MAX 0x7fffffffffffffffL
#define LONG_MIN (-0x7fffffffffffffffL - 1)
#define ULONG_MAX 0xffffffffffffffffUL
#define MAXFLOAT 0x1.fffffep127f
#define HUGE_VALF (__builtin_huge_valf())
#define HUGE_VAL (__builtin_huge_val())
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define FP_ILOGB0 INT_MIN
#define FP_ILOGBNAN INT_MAX
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define CLK_IMAGE_MEM_FENCE 4
#define ATOMIC_VAR_INIT(x) (x)
#define ATOMIC_FLAG_INIT 0
#define CLK_ADDRESS_NONE 0
#define CLK_ADDRESS_CLAMP_TO_EDGE 2
#define CLK_ADDRESS_CLAMP 4
#define CLK_ADDRESS_REPEAT 6
#define CLK_ADDRESS_MIRRORED_REPEAT 8
#define CLK_NORMALIZED_COORDS_FALSE 0
#define CLK_NORMALIZED_COORDS_TRUE 1
#define CLK_FILTER_NEAREST 0x10
#define CLK_FILTER_LINEAR 0x20
#define CLK_SUCCESS 0
#define CLK_ENQUEUE_FAILURE (-101)
#define CLK_INVALID_QUEUE (-102)
#define CLK_INVALID_NDRANGE (-160)
#define CLK_INVALID_EVENT_WAIT_LIST (-57)
#define CLK_DEVICE_QUEUE_FULL (-161)
#define CLK_INVALID_ARG_SIZE (-51)
#define CLK_EVENT_ALLOCATION_FAILURE (-100)
#define CLK_OUT_OF_RESOURCES (-5)
#define CL_COMPLETE 0
#define CL_RUNNING 1
#define CL_SUBMITTED 2
#define CL_QUEUED 3
#define CLK_ENQUEUE_FLAGS_NO_WAIT 0
#define CLK_ENQUEUE_FLAGS_WAIT_KERNEL 1
#define CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP 2
#define CLK_PROFILING_COMMAND_EXEC_TIME 1
#define CLK_NULL_QUEUE 0
#define CLK_NULL_EVENT (__builtin_astype((__SIZE_MAX__), clk_event_t))
#define CLK_NULL_RESERVE_ID (__builtin_astype(((void*)(__SIZE_MAX__)), reserve_id_t))
#define kernel_exec(X, T) __kernel __attribute__((work_group_size_hint(X, 1, 1))) __attribute__((vec_type_hint(T)))
#define __kernel_exec(X, T) kernel_exec(X, T)
#define M_E 2.71828182845904523536
#define M_E_F 2.71828182845904523536f
#define M_E_H 2.71828182845904523536h
#define M_LOG2E 1.44269504088896340736
#define M_LOG2E_F 1.44269504088896340736f
#define M_LOG2E_H 1.44269504088896340736h
#define M_LOG10E 0.43429448190325182765
#define M_LOG10E_F 0.43429448190325182765f
#define M_LOG10E_H 0.43429448190325182765h
#define M_LN2 0.69314718055994530942
#define M_LN2_F 0.69314718055994530942f
#define M_LN2_H 0.69314718055994530942h
#define M_LN10 2.30258509299404568402
#define M_LN10_F 2.30258509299404568402f
#define M_LN10_H 2.30258509299404568402h
#define M_PI 3.14159265358979323846
#define M_PI_F 3.14159265358979323846f
#define M_PI_H 3.14159265358979323846h
#define M_PI_2 1.57079632679489661923
#define M_PI_2_F 1.57079632679489661923f
#define M_PI_2_H 1.57079632679489661923h
#define M_PI_4 0.78539816339744830962
#define M_PI_4_F 0.78539816339744830962f
#define M_PI_4_H 0.78539816339744830962h
#define M_1_PI 0.31830988618379067154
#define M_1_PI_F 0.31830988618379067154f
#define M_1_PI_H 0.31830988618379067154h
#define M_2_PI 0.63661977236758134308
#define M_2_PI_F 0.63661977236758134308f
#define M_2_PI_H 0.63661977236758134308h
#define M_2_SQRTPI 1.12837916709551257390
#define M_2_SQRTPI_F 1.12837916709551257390f
#define M_2_SQRTPI_H 1.12837916709551257390h
#define M_SQRT2 1.41421356237309504880
#define M_SQRT2_F 1.41421356237309504880f
#define M_SQRT2_H 1.41421356237309504880h
#define M_SQRT1_2 0.70710678118654752440
#define M_SQRT1_2_F 0.70710678118654752440f
#define M_SQRT1_2_H 0.70710678118654752440h
#define FLT_RADIX 2
#define FLT_DIG (6)
#define FLT_MANT_DIG (24)
#define FLT_MAX_10_EXP (38)
#define FLT_MAX_EXP (128)
#define FLT_MIN_10_EXP (-37)
#define FLT_MIN_EXP (-125)
#define FLT_MAX (0x1.fffffep127f)
#define FLT_MIN (0x1.0p-126f)
#define FLT_EPSILON (0x1.0p-23f)
#define DBL_RADIX 2
#define DBL_DIG (15)
#define DBL_MANT_DIG (53)
#define DBL_MAX_10_EXP (308)
#define DBL_MAX_EXP (1024)
#define DBL_MIN_10_EXP (-307)
#define DBL_MIN_EXP (-1021)
#define DBL_MAX (0x1.fffffffffffffp1023)
#define DBL_MIN (0x1.0p-1022)
#define DBL_EPSILON (0x1.0p-52)
#define HALF_RADIX 2
#define HALF_DIG (3)
#define HALF_MANT_DIG (11)
#define HALF_MAX_10_EXP (4)
#define HALF_MAX_EXP (16)
#define HALF_MIN_10_EXP (-4)
#define HALF_MIN_EXP (-13)
#define HALF_MAX (0x1.ffcp15h)
#define HALF_MIN (0x1.0p-14h)
#define HALF_EPSILON (0x1.0p-10h)
#define CLK_SNORM_INT8 0x10d0
#define CLK_SNORM_INT16 0x10d1
#define CLK_UNORM_INT8 0x10d2
#define CLK_UNORM_INT16 0x10d3
#define CLK_UNORM_SHORT_565 0x10d4
#define CLK_UNORM_SHORT_555 0x10d5
#define CLK_UNORM_INT_101010 0x10d6
#define CLK_SIGNED_INT8 0x10d7
#define CLK_SIGNED_INT16 0x10d8
#define CLK_SIGNED_INT32 0x10d9
#define CLK_UNSIGNED_INT8 0x10da
#define CLK_UNSIGNED_INT16 0x10db
#define CLK_UNSIGNED_INT32 0x10dc
#define CLK_HALF_FLOAT 0x10dd
#define CLK_FLOAT 0x10de
#define CLK_UNORM_INT24 0x10df
#define CLK_R 0x10b0
#define CLK_A 0x10b1
#define CLK_RG 0x10b2
#define CLK_RA 0x10b3
#define CLK_RGB 0x10b4
#define CLK_RGBA 0x10b5
#define CLK_BGRA 0x10b6
#define CLK_ARGB 0x10b7
#define CLK_INTENSITY 0x10b8
#define CLK_LUMINANCE 0x10b9
#define CLK_Rx 0x10ba
#define CLK_RGx 0x10bb
#define CLK_RGBx 0x10bc
#define CLK_DEPTH 0x10bd
#define CLK_DEPTH_STENCIL 0x10be
#define CLK_sRGB 0x10bf
#define CLK_sRGBx 0x10c0
#define CLK_sRGBA 0x10c1
#define CLK_sBGRA 0x10c2
#define CLK_ABGR 0x10c3

typedef uint cl_mem_fence_flags;
typedef int kernel_enqueue_flags_t;
typedef int clk_profiling_info;
typedef enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
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
typedef struct {
    uint workDimension;
    size_t globalWorkOffset[3], globalWorkSize[3], localWorkSize[3];
} ndrange_t;
#if __OPENCL_C_VERSION__ >= 120
int printf(__constant const char *format, ...) __attribute__((format(printf, 1, 2)));
#endif

#ifdef __NVPTX__
// A window of a launch: its first work-group, then counts of work-groups, global offset and size
// of the whole launch, three numbers each, and its dimensions. The host writes it before a launch.
__attribute__((weak)) constant uint kernelcast_launch[13] = {0};
#endif

// Copies by a work-group (6.15.11): every work-item copies its share, and waits for the others'.
#if __OPENCL_C_VERSION__ >= 120
#define __kc_static static
#else
#define __kc_static
#endif
__kc_static __attribute__((overloadable)) size_t __kc_step(const volatile __global void *p, size_t stride)
{
    return stride;
}
__kc_static __attribute__((overloadable)) size_t __kc_step(const volatile __local void *p, size_t stride)
{
    return 1;
}
#define __kc_copy(to, from, count, to_step, from_step, event)                              \
    ({                                                                                     \
        __auto_type __kc_to = (to);                                                        \
        __auto_type __kc_from = (from);                                                    \
        size_t __kc_count = (count), __kc_to_step = (to_step), __kc_from_step = (from_step); \
        size_t __kc_x = get_local_size(0), __kc_y = get_local_size(1);                     \
        size_t __kc_i = (get_local_id(2) * __kc_y + get_local_id(1)) * __kc_x + get_local_id(0); \
        for (; __kc_i < __kc_count; __kc_i += __kc_x * __kc_y * get_local_size(2))         \
            __kc_to[__kc_i * __kc_to_step] = __kc_from[__kc_i * __kc_from_step];           \
        event_t __kc_event = (event);                                                      \
        __kc_event;                                                                        \
    })
#define async_work_group_copy(to, from, count, event) __kc_copy(to, from, count, 1, 1, event)
#define async_work_group_strided_copy(to, from, count, stride, event) \
    __kc_copy(to, from, count, __kc_step(__kc_to, stride), __kc_step(__kc_from, stride), event)
#define wait_group_events(count, events) \
    ((void)(count), (void)(events), barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE))
