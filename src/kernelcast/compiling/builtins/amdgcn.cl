// Built-in functions that AMD's GPUs have instructions or registers for. Counts of the launch come
// from the implicit arguments of code object version 5.
#define OVERLOADED __attribute__((overloadable))
#define CONST __attribute__((overloadable, const))

#define PICK(name, value) \
    static uint name(uint dim) { return dim == 0 ? value(x) : dim == 1 ? value(y) : value(z); }
#define LOCAL_ID(axis) __builtin_amdgcn_workitem_id_##axis()
#define GROUP_ID(axis) __builtin_amdgcn_workgroup_id_##axis()
PICK(local_id, LOCAL_ID)
PICK(group_id, GROUP_ID)
static uint group_count(uint dim)
{
    return ((constant uint *)__builtin_amdgcn_implicitarg_ptr())[dim];
}
static uint local_size(uint dim)
{
    return ((constant ushort *)__builtin_amdgcn_implicitarg_ptr())[6 + dim];
}
static size_t global_offset(uint dim)
{
    return ((constant size_t *)__builtin_amdgcn_implicitarg_ptr())[5 + dim];
}

CONST uint get_work_dim(void)
{
    return ((constant ushort *)__builtin_amdgcn_implicitarg_ptr())[32];
}
CONST size_t get_local_id(uint dim) { return dim < 3 ? local_id(dim) : 0; }
CONST size_t get_local_size(uint dim) { return dim < 3 ? local_size(dim) : 1; }
CONST size_t get_enqueued_local_size(uint dim) { return get_local_size(dim); }
CONST size_t get_group_id(uint dim) { return dim < 3 ? group_id(dim) : 0; }
CONST size_t get_num_groups(uint dim) { return dim < 3 ? group_count(dim) : 1; }
CONST size_t get_global_offset(uint dim) { return dim < 3 ? global_offset(dim) : 0; }
CONST size_t get_global_size(uint dim)
{
    return dim < 3 ? (size_t)(group_count(dim) * local_size(dim)) : 1;
}
CONST size_t get_global_id(uint dim)
{
    return dim < 3 ? (uint)(group_id(dim) * local_size(dim) + local_id(dim)) + global_offset(dim)
                   : 0;
}
CONST size_t get_local_linear_id(void)
{
    return (LOCAL_ID(z) * local_size(1) + LOCAL_ID(y)) * local_size(0) + LOCAL_ID(x);
}
CONST size_t get_global_linear_id(void)
{
    size_t z = get_global_id(2) - get_global_offset(2), y = get_global_id(1) - get_global_offset(1);
    return (z * get_global_size(1) + y) * get_global_size(0) + get_global_id(0)
           - get_global_offset(0);
}

static void wait_for_group(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
OVERLOADED void barrier(cl_mem_fence_flags flags) { wait_for_group(); }
OVERLOADED void work_group_barrier(cl_mem_fence_flags flags) { wait_for_group(); }
OVERLOADED void work_group_barrier(cl_mem_fence_flags flags, memory_scope scope)
{
    if (scope > memory_scope_work_group) __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
    wait_for_group();
}
#define FENCE(name, order)                                                                       \
    OVERLOADED void name(cl_mem_fence_flags flags)                                               \
    {                                                                                            \
        if (flags & CLK_GLOBAL_MEM_FENCE) __builtin_amdgcn_fence(order, "agent");                \
        else __builtin_amdgcn_fence(order, "workgroup");                                         \
    }
FENCE(mem_fence, __ATOMIC_ACQ_REL)
FENCE(read_mem_fence, __ATOMIC_ACQUIRE)
FENCE(write_mem_fence, __ATOMIC_RELEASE)

#define LANES(name)                                                                              \
    CONST float2 name(float2 x) { return (float2)(name(x.x), name(x.y)); }                       \
    CONST float3 name(float3 x) { return (float3)(name(x.x), name(x.y), name(x.z)); }            \
    CONST float4 name(float4 x) { return (float4)(name(x.lo), name(x.hi)); }                     \
    CONST float8 name(float8 x) { return (float8)(name(x.lo), name(x.hi)); }                     \
    CONST float16 name(float16 x) { return (float16)(name(x.lo), name(x.hi)); }
#define NATIVE(name, value)                                                                      \
    CONST float name(float x) { return value; }                                                  \
    LANES(name)
#define TURNS(x) ((x) * 0.15915494309189535f)
NATIVE(native_sin, __builtin_amdgcn_sinf(TURNS(x)))
NATIVE(native_cos, __builtin_amdgcn_cosf(TURNS(x)))
NATIVE(native_tan, __builtin_amdgcn_sinf(TURNS(x)) * __builtin_amdgcn_rcpf(__builtin_amdgcn_cosf(TURNS(x))))
NATIVE(native_exp2, __builtin_exp2f(x))
NATIVE(native_exp, __builtin_exp2f(x * M_LOG2E_F))
NATIVE(native_exp10, __builtin_exp2f(x * (M_LN10_F * M_LOG2E_F)))
NATIVE(native_log2, __builtin_log2f(x))
NATIVE(native_log, __builtin_log2f(x) * M_LN2_F)
NATIVE(native_log10, __builtin_log2f(x) * (M_LN2_F * M_LOG10E_F))
NATIVE(native_sqrt, __builtin_sqrtf(x))
NATIVE(native_rsqrt, __builtin_amdgcn_rsqf(x))
NATIVE(native_recip, __builtin_amdgcn_rcpf(x))
NATIVE(rsqrt, __builtin_amdgcn_rsqf(x))
CONST double rsqrt(double x) { return __builtin_amdgcn_rsq(x); }
CONST float native_divide(float x, float y) { return x * __builtin_amdgcn_rcpf(y); }
CONST float native_powr(float x, float y) { return __builtin_exp2f(y * __builtin_log2f(x)); }
