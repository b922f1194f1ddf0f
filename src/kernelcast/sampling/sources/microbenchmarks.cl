// Kernels of the microbenchmarks. A program is one section; macros say which, and what varies.
#define REPEAT4(x) x x x x
#define REPEAT16(x) REPEAT4(x) REPEAT4(x) REPEAT4(x) REPEAT4(x)
#define REPEAT32(x) REPEAT16(x) REPEAT16(x)
#define REPEAT64(x) REPEAT32(x) REPEAT32(x)
#define EACH16(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define EACH32(f) EACH16(f) f(16) f(17) f(18) f(19) f(20) f(21) f(22) f(23) f(24) f(25) f(26) f(27) \
    f(28) f(29) f(30) f(31)

#if defined IDLE
// With an argument: rusticl launches an empty kernel a sixth faster.
kernel void kc_idle(global int *sink, int never)
{
    if (get_global_id(0) == (size_t)never)
        *sink = 1;
}

#elif defined INSTRUCTIONS
kernel void kc_instructions(
    global SCALAR *out, global const SCALAR *in, local uchar *ballast, int n)
{
    const size_t item = get_global_id(0);
    const VECTOR a = (VECTOR)(in[STREAMS]), b = (VECTOR)(in[STREAMS + 1]);
    const SCALAR own = (SCALAR)(item % 64) * in[STREAMS + 2];
    STARTS
    if (n < 0)
        ballast[get_local_id(0)] = 1;
    for (int i = 0; i < n; ++i) { STEPS }
    out[item] = SUM;
}

#elif defined CHAIN
// Dependent steps on one value.
kernel void kc_chain(global uint *out, global const uint *in, int n)
{
    const size_t item = get_global_id(0);
    const uint a = in[0], b = in[1];
    uint x = (uint)item;
    for (int i = 0; i < n; ++i) { STEPS }
    out[item] = x;
}

#elif defined BRANCHES
// Four branches of one shape, each with another factor, so that they cannot be merged.
#define LOOP(factor) \
    { const uint m = factor; for (int i = 0; i < n; ++i) { REPEAT16(x = x * m + b;) } }
kernel void kc_branches(global uint *out, global const uint *in, int n)
{
    const size_t item = get_global_id(0);
    const uint b = in[1];
    uint x = (uint)item;
    const int branch = (int)get_local_id(0) / (int)in[2] % 4;
    if (branch == 0) LOOP(FACTOR0)
    else if (branch == 1) LOOP(FACTOR1)
    else if (branch == 2) LOOP(FACTOR2)
    else LOOP(FACTOR3)
    out[item] = x;
}

#elif defined ATOMICS
// Intel's compiler adds to a fixed local address in a register: where the address is, only the
// buffer says, and it may move with every iteration.
kernel void kc_atomics(global uint *out, global const uint *in, int n)
{
    const int own = (int)get_local_id(0), apart = (int)in[1], hop = (int)in[2];
    const uint step = in[0];
#ifdef IN_LOCAL_MEMORY
    local uint sums[64];
    sums[own] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    global uint *sums = out + apart * ((int)get_global_id(0) - own);
#endif
    for (int i = 0; i < n; ++i)
        atomic_add(&sums[(own * apart + i * hop) & ((int)get_local_size(0) - 1)], step);
#ifdef IN_LOCAL_MEMORY
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] += sums[own];
#endif
}

#elif defined GATHER
// Neighbours look at places that only data tell, and no loop stands between a runtime and its loop
// over work-items. The cells, 8 KiB, are less than any L1 cache holds.
#define LOAD(i) sum += cells[place ^ i];
kernel void kc_gather(global uint *out, global const uint *cells, global const int *places)
{
    const int place = places[get_local_id(0)];
    uint sum = 0;
    EACH32(LOAD)
    out[get_global_id(0)] = sum;
}

#elif defined ORDER
kernel void kc_order(global volatile int *count, global int *tickets, global float *sink, int steps)
{
    if (get_local_id(0) == 0)
        tickets[get_group_id(0) + get_num_groups(0) * get_group_id(1)] = atomic_inc(count);
    float x = (float)get_global_id(0);
    for (int i = 0; i < steps; ++i)
        x = x * 0.999f + 0.5f;
    if (x == -1.0f)
        *sink = x;
}

#elif defined CYCLES
// Work-item 0 counts the cycles of its compute unit between the begin and the end of the loop;
// `x` passes through both readings, so that neither moves.
kernel void kc_cycles(global ulong *cycles, global uint *out, int n)
{
    uint x = (uint)get_global_id(0);
    ulong begin, end;
    READ_CYCLES(begin)
    for (int i = 0; i < n; ++i) { REPEAT16(x = (x * 1664525u) ^ 1013904223u;) }
    READ_CYCLES(end)
    out[get_global_id(0)] = x;
    if (get_global_id(0) == 0)
        *cycles = end - begin;
}

#elif defined WALK
// One work-item follows a chain of places; of local and private memory, after it has filled them.
#if defined IN_LOCAL
kernel void kc_walk(global const uint *array, local uint *walked, global uint *result,
                    uint elements, uint start, int iterations)
#elif defined IN_CONSTANT
kernel void kc_walk(constant uint *walked, global uint *result, uint elements, uint start,
                    int iterations)
#elif defined IN_PRIVATE
kernel void kc_walk(global const uint *array, global uint *result, uint elements, uint start,
                    int iterations)
#else
kernel void kc_walk(global const uint *walked, global uint *result, uint elements, uint start,
                    int iterations)
#endif
{
#ifdef IN_PRIVATE
    uint walked[ELEMENTS];
#endif
#if defined IN_LOCAL || defined IN_PRIVATE
    for (uint i = 0; i < elements; ++i)
        walked[i * STRIDE] = array[i * STRIDE];
#endif
    uint index = start;
    // A loop of one step would add its own cost, and rusticl allows few iterations.
    for (int i = 0; i < iterations; ++i) { REPEAT64(index = walked[index];) }
    result[0] = index;
}

#elif defined LOAD || defined COPY
// Integers, so that the sum can be checked bit by bit, and a rotation of the start by group, so
// that the compute units of a GPU do not all ask the same bank at once.
#define ZERO(i) TYPE a##i = (TYPE)(0);
#define ADD(i) a##i += at[i * width];
#define TOTAL(i) + a##i
#define STORE(i) copies[at + i * width] = array[at + i * width];
kernel void kc_load(global const TYPE *array, global uint *sums, int rounds, int count)
{
    int lane = get_local_id(0), width = get_local_size(0);
    int blocks = count / (16 * width);
    int first = (int)(((long)blocks * get_group_id(0)) / get_num_groups(0));
    EACH16(ZERO)
    for (int round = 0; round < rounds; ++round) {
        for (int block = first; block < blocks; ++block) {
            global const TYPE *at = array + (size_t)block * 16 * width + lane;
            EACH16(ADD)
        }
        for (int block = 0; block < first; ++block) {
            global const TYPE *at = array + (size_t)block * 16 * width + lane;
            EACH16(ADD)
        }
    }
    TYPE total = (TYPE)(0) EACH16(TOTAL);
    sums[get_global_id(0)] = SUM;
}

kernel void kc_copy(global const TYPE *array, global TYPE *copies, int rounds, int count)
{
    int lane = get_local_id(0), width = get_local_size(0);
    int blocks = count / (16 * width);
    size_t base = (size_t)get_group_id(0) * count;
    for (int round = 0; round < rounds; ++round)
        for (int block = 0; block < blocks; ++block) {
            size_t at = base + (size_t)block * 16 * width + lane;
            EACH16(STORE)
        }
}

#elif defined STREAM
kernel void kc_stream(global const TYPE *array, global TYPE *found, int count, int key)
{
    size_t at = FIRST;
    const size_t step = NEXT;
    TYPE sum = (TYPE)(0);
    MOVES
#ifndef COPIES
    // The paper's trick: the compiler cannot know that nothing is stored.
    if ((uint)(SUM) * (uint)key != 0)
        found[get_global_id(0)] = sum;
#endif
}
#endif
