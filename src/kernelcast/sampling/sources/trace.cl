// What a traced kernel is built with: a clock, by the macro that chooses it, and marks.
#if defined KC_DEVICE_CLOCK
#pragma OPENCL EXTENSION cl_khr_kernel_clock : enable
static inline ulong kc_clock(void) { return clock_read_device(); }
#elif defined KC_PTX
// volatile and the clobber keep the reading where it stands among loads and stores.
static inline ulong kc_clock(void)
{ ulong now; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory"); return now; }
static inline ulong kc_unit(void)
{ uint unit; asm volatile("mov.u32 %0, %%smid;" : "=r"(unit)); return unit; }
#elif defined KC_REAL_TIME
// Counts at one rate whatever the shader clock does; later chips' compilers refuse it.
static inline ulong kc_clock(void) { return __builtin_amdgcn_s_memrealtime(); }
#else
static inline ulong kc_clock(void) { return __builtin_readcyclecounter(); }
#endif
#ifndef KC_PTX
static inline ulong kc_unit(void) { return 0; }
#endif

#ifdef KC_CHECKS_CLOCK
kernel void kc_read_clock(global ulong *readings, int count)
{
    for (int i = 0; i < count; ++i)
        readings[i] = kc_clock();
}
#else
// Every work-item passes a barrier beside each mark, for two reasons. The time is then taken
// before the first has begun and after the last has ended, in whatever order a device runs them.
// And runtimes that run the work-items of a group in a loop split that loop at barriers: reading a
// clock inside it kept PoCL from vectorising a stencil (6.3 times as slow, 2.1 with barriers).
#define KC_TRACE_PARAMETER global ulong *kc_trace
static inline bool kc_is_item(size_t x, size_t y, size_t z)
{ return get_local_id(0) == x && get_local_id(1) == y && get_local_id(2) == z; }
static inline ulong kc_trace_place(uint word)
{
    return word + 3 * (get_group_id(0)
        + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2)));
}
static inline void kc_trace_begin(global ulong *trace)
{
    if (kc_is_item(0, 0, 0)) {
        trace[kc_trace_place(0)] = kc_clock();
        trace[kc_trace_place(2)] = kc_unit();
    }
}
static inline void kc_trace_end(global ulong *trace, bool is_chosen)
{
    if (is_chosen)
        trace[kc_trace_place(1)] = kc_clock();
}
#define KC_TRACE_BEGIN kc_trace_begin(kc_trace); barrier(CLK_LOCAL_MEM_FENCE);
#define KC_TRACE_END barrier(CLK_LOCAL_MEM_FENCE); kc_trace_end(kc_trace, kc_is_item(0, 0, 0));
#define KC_TRACE_END_APART kc_trace_end(kc_trace, kc_is_item( \
    get_local_size(0) - 1, get_local_size(1) - 1, get_local_size(2) - 1));
#endif
