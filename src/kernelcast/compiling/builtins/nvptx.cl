// Built-in functions that NVIDIA's GPUs have instructions or registers for.
//
// A window of a launch is launched as a grid of its own: `kernelcast_launch`, which base.h defines
// and the host writes, holds its first work-group and the counts of the whole launch.
#define OVERLOADED __attribute__((overloadable))
#define CONST __attribute__((overloadable, const))

#define PICK(name, value) \
    static uint name(uint dim) { return dim == 0 ? value(x) : dim == 1 ? value(y) : value(z); }
#define TID(axis) __nvvm_read_ptx_sreg_tid_##axis()
#define NTID(axis) __nvvm_read_ptx_sreg_ntid_##axis()
#define CTAID(axis) __nvvm_read_ptx_sreg_ctaid_##axis()
PICK(local_id, TID)
PICK(local_size, NTID)
PICK(window_group, CTAID)
#define OF_LAUNCH(field, dim, otherwise) \
    ((dim) < 3 ? kernelcast_launch[3 * (field) + (dim)] : (otherwise))

CONST uint get_work_dim(void) { return kernelcast_launch[12]; }
CONST size_t get_local_id(uint dim) { return dim < 3 ? local_id(dim) : 0; }
CONST size_t get_local_size(uint dim) { return dim < 3 ? local_size(dim) : 1; }
CONST size_t get_enqueued_local_size(uint dim) { return get_local_size(dim); }
CONST size_t get_group_id(uint dim)
{
    return dim < 3 ? (uint)(window_group(dim) + OF_LAUNCH(0, dim, 0)) : 0;
}
CONST size_t get_num_groups(uint dim) { return OF_LAUNCH(1, dim, 1); }
CONST size_t get_global_offset(uint dim) { return OF_LAUNCH(2, dim, 0); }
CONST size_t get_global_size(uint dim) { return OF_LAUNCH(3, dim, 1); }
CONST size_t get_global_id(uint dim)
{
    return dim < 3 ? (uint)((window_group(dim) + OF_LAUNCH(0, dim, 0)) * local_size(dim)
                            + local_id(dim) + OF_LAUNCH(2, dim, 0))
                   : 0;
}
CONST size_t get_local_linear_id(void)
{
    return (TID(z) * NTID(y) + TID(y)) * NTID(x) + TID(x);
}
CONST size_t get_global_linear_id(void)
{
    size_t z = get_global_id(2) - get_global_offset(2), y = get_global_id(1) - get_global_offset(1);
    return (z * get_global_size(1) + y) * get_global_size(0) + get_global_id(0)
           - get_global_offset(0);
}

OVERLOADED void barrier(cl_mem_fence_flags flags) { __syncthreads(); }
OVERLOADED void work_group_barrier(cl_mem_fence_flags flags) { __syncthreads(); }
OVERLOADED void work_group_barrier(cl_mem_fence_flags flags, memory_scope scope)
{
    if (scope > memory_scope_work_group) __nvvm_membar_gl();
    __syncthreads();
}
#define FENCE(name)                                                  \
    OVERLOADED void name(cl_mem_fence_flags flags)                   \
    {                                                                \
        if (flags & CLK_GLOBAL_MEM_FENCE) __nvvm_membar_gl();        \
        else __nvvm_membar_cta();                                    \
    }
FENCE(mem_fence)
FENCE(read_mem_fence)
FENCE(write_mem_fence)

// Warps are sub-groups.
CONST uint get_sub_group_size(void)
{
    uint items = NTID(x) * NTID(y) * NTID(z), first = get_local_linear_id() & ~31u;
    return items - first < 32 ? items - first : 32;
}
CONST uint get_max_sub_group_size(void) { return 32; }
CONST uint get_sub_group_local_id(void) { return get_local_linear_id() & 31; }
CONST uint get_sub_group_id(void) { return get_local_linear_id() >> 5; }
CONST uint get_num_sub_groups(void) { return (NTID(x) * NTID(y) * NTID(z) + 31) >> 5; }
#if __has_builtin(__nvvm_bar_warp_sync)
OVERLOADED void sub_group_barrier(cl_mem_fence_flags flags) { __nvvm_bar_warp_sync(~0u); }
OVERLOADED void sub_group_barrier(cl_mem_fence_flags flags, memory_scope scope)
{
    __nvvm_bar_warp_sync(~0u);
}
#define SHUFFLES(type, as)                                                                       \
    OVERLOADED type sub_group_shuffle(type x, uint lane)                                         \
    {                                                                                            \
        return as_##type(__nvvm_shfl_sync_idx_i32(~0u, as(x), lane, 31));                        \
    }                                                                                            \
    OVERLOADED type sub_group_shuffle_xor(type x, uint mask)                                     \
    {                                                                                            \
        return as_##type(__nvvm_shfl_sync_bfly_i32(~0u, as(x), mask, 31));                       \
    }                                                                                            \
    OVERLOADED type sub_group_shuffle_up(type x, uint delta)                                     \
    {                                                                                            \
        return as_##type(__nvvm_shfl_sync_up_i32(~0u, as(x), delta, 0));                         \
    }                                                                                            \
    OVERLOADED type sub_group_shuffle_down(type x, uint delta)                                   \
    {                                                                                            \
        return as_##type(__nvvm_shfl_sync_down_i32(~0u, as(x), delta, 31));                      \
    }                                                                                            \
    OVERLOADED type sub_group_broadcast(type x, uint lane) { return sub_group_shuffle(x, lane); }
#define COLLECTIVE(type, name, none, join)                                                       \
    OVERLOADED type sub_group_reduce_##name(type x)                                              \
    {                                                                                            \
        for (uint mask = 16; mask; mask >>= 1) {                                                 \
            type y = sub_group_shuffle_xor(x, mask);                                             \
            x = join;                                                                            \
        }                                                                                        \
        return x;                                                                                \
    }                                                                                            \
    OVERLOADED type sub_group_scan_inclusive_##name(type x)                                      \
    {                                                                                            \
        for (uint delta = 1; delta < 32; delta <<= 1) {                                          \
            type y = sub_group_shuffle_up(x, delta);                                             \
            x = get_sub_group_local_id() < delta ? x : (join);                                   \
        }                                                                                        \
        return x;                                                                                \
    }                                                                                            \
    OVERLOADED type sub_group_scan_exclusive_##name(type x)                                      \
    {                                                                                            \
        type before = sub_group_shuffle_up(sub_group_scan_inclusive_##name(x), 1);               \
        return get_sub_group_local_id() ? before : (type)(none);                                 \
    }
SHUFFLES(int, as_int)
SHUFFLES(uint, as_int)
SHUFFLES(float, as_int)
COLLECTIVE(int, add, 0, x + y)
COLLECTIVE(int, min, INT_MAX, y < x ? y : x)
COLLECTIVE(int, max, INT_MIN, y > x ? y : x)
COLLECTIVE(uint, add, 0, x + y)
COLLECTIVE(uint, min, UINT_MAX, y < x ? y : x)
COLLECTIVE(uint, max, 0, y > x ? y : x)
COLLECTIVE(float, add, 0, x + y)
COLLECTIVE(float, min, INFINITY, y < x ? y : x)
COLLECTIVE(float, max, -INFINITY, y > x ? y : x)
OVERLOADED int sub_group_any(int x) { return __nvvm_vote_any_sync(~0u, x != 0); }
OVERLOADED int sub_group_all(int x) { return __nvvm_vote_all_sync(~0u, x != 0); }
#endif

// Instructions of the special function units; of less precision than functions without native_.
#define LANES(name)                                                                              \
    CONST float2 name(float2 x) { return (float2)(name(x.x), name(x.y)); }                       \
    CONST float3 name(float3 x) { return (float3)(name(x.x), name(x.y), name(x.z)); }            \
    CONST float4 name(float4 x) { return (float4)(name(x.lo), name(x.hi)); }                     \
    CONST float8 name(float8 x) { return (float8)(name(x.lo), name(x.hi)); }                     \
    CONST float16 name(float16 x) { return (float16)(name(x.lo), name(x.hi)); }
#define NATIVE(name, value)                                                                      \
    CONST float name(float x) { return value; }                                                  \
    LANES(name)
NATIVE(native_sin, __nvvm_sin_approx_f(x))
NATIVE(native_cos, __nvvm_cos_approx_f(x))
NATIVE(native_tan, __nvvm_sin_approx_f(x) / __nvvm_cos_approx_f(x))
NATIVE(native_exp2, __nvvm_ex2_approx_f(x))
NATIVE(native_exp, __nvvm_ex2_approx_f(x * M_LOG2E_F))
NATIVE(native_exp10, __nvvm_ex2_approx_f(x * (M_LN10_F * M_LOG2E_F)))
NATIVE(native_log2, __nvvm_lg2_approx_f(x))
NATIVE(native_log, __nvvm_lg2_approx_f(x) * M_LN2_F)
NATIVE(native_log10, __nvvm_lg2_approx_f(x) * (M_LN2_F * M_LOG10E_F))
NATIVE(native_sqrt, __nvvm_sqrt_approx_f(x))
NATIVE(native_rsqrt, __nvvm_rsqrt_approx_f(x))
NATIVE(native_recip, 1.0f / x)
NATIVE(rsqrt, __nvvm_rsqrt_approx_f(x))
CONST double rsqrt(double x) { return __nvvm_rsqrt_approx_d(x); }
CONST float native_divide(float x, float y) { return __nvvm_div_approx_f(x, y); }
CONST float native_powr(float x, float y)
{
    return __nvvm_ex2_approx_f(y * __nvvm_lg2_approx_f(x));
}
