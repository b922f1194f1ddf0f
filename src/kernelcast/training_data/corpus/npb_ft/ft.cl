// A heat equation solved in Fourier space: factors of the time step (indexmap), the step (evolve)
// and fast Fourier transforms along each of three axes (cffts1, cffts2, cffts3), in the form that
// leaves every stage in order. Complex numbers are pairs.
#ifdef USE_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifndef REAL
#define REAL float
#define REAL2 float2
#endif

// The two results of a butterfly: a + b, and a - b turned by the root.
inline REAL2 turn_difference(const REAL2 a, const REAL2 b, const REAL2 root, const int direction)
{
    const REAL2 difference = a - b;
    const REAL sine = direction * root.y;
    return (REAL2)(difference.x * root.x - difference.y * sine,
                   difference.x * sine + difference.y * root.x);
}

// Along x: a row a work-group.
__kernel void cffts1(__global const REAL2 *restrict x,
                     __global REAL2 *restrict out,
                     __global const REAL2 *restrict roots,
                     __local REAL2 *from,
                     __local REAL2 *to,
                     const int length,
                     const int direction)
{
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const int half_length = length / 2;
    const int begin = get_group_id(0) * length;
    for (int i = lane; i < length; i += lanes) {
        from[i] = x[begin + i];
    }
    for (int width = 1; width < length; width *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = lane; i < half_length; i += lanes) {
            const int inner = i % width;
            const int outer = i - inner;
            const REAL2 a = from[i];
            const REAL2 b = from[i + half_length];
            to[inner + 2 * outer] = a + b;
            to[inner + 2 * outer + width] = turn_difference(a, b, roots[outer], direction);
        }
        __local REAL2 *other = from;
        from = to;
        to = other;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < length; i += lanes) {
        out[begin + i] = from[i];
    }
}

#define COLUMNS 4

// Along y: COLUMNS neighbouring lines a work-group, so that each access brings whole sectors.
__kernel void cffts2(__global const REAL2 *restrict x,
                     __global REAL2 *restrict out,
                     __global const REAL2 *restrict roots,
                     __local REAL2 *from,
                     __local REAL2 *to,
                     const int length,
                     const int pitch,
                     const int direction)
{
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const int half_count = length / 2 * COLUMNS;
    const int begin = get_group_id(1) * length * pitch + get_group_id(0) * COLUMNS;
    for (int i = lane; i < length * COLUMNS; i += lanes) {
        from[i] = x[begin + i / COLUMNS * pitch + i % COLUMNS];
    }
    for (int width = 1; width < length; width *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = lane; i < half_count; i += lanes) {
            const int column = i % COLUMNS;
            const int inner = i / COLUMNS % width;
            const int outer = i / COLUMNS - inner;
            const REAL2 a = from[i];
            const REAL2 b = from[i + half_count];
            const int place = (inner + 2 * outer) * COLUMNS + column;
            to[place] = a + b;
            to[place + width * COLUMNS] = turn_difference(a, b, roots[outer], direction);
        }
        __local REAL2 *other = from;
        from = to;
        to = other;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < length * COLUMNS; i += lanes) {
        out[begin + i / COLUMNS * pitch + i % COLUMNS] = from[i];
    }
}

// Along z: a line a work-item, each stage from one array in global memory to the other. The number
// of stages is even, so that the last one writes to `out`.
__kernel void cffts3(__global const REAL2 *restrict x,
                     __global REAL2 *scratch,
                     __global REAL2 *out,
                     __global const REAL2 *restrict roots,
                     const int length,
                     const int lines,
                     const int direction)
{
    const int line = get_global_id(0);
    const int half_length = length / 2;
    __global const REAL2 *from = x + line;
    __global REAL2 *to = scratch + line;
    __global REAL2 *next = out + line;
    for (int width = 1; width < length; width *= 2) {
        for (int i = 0; i < half_length; ++i) {
            const int inner = i % width;
            const int outer = i - inner;
            const REAL2 a = from[i * lines];
            const REAL2 b = from[(i + half_length) * lines];
            to[(inner + 2 * outer) * lines] = a + b;
            to[(inner + 2 * outer + width) * lines] =
                turn_difference(a, b, roots[outer], direction);
        }
        __global REAL2 *written = to;
        to = next;
        next = written;
        from = written;
    }
}

// Decay of each wave: exp(scale * k^2), where wave numbers beyond half of an axis are negative.
__kernel void indexmap(__global REAL *restrict decay,
                       const int nx,
                       const int ny,
                       const int nz,
                       const REAL scale)
{
    const int i = get_global_id(0);
    const int j = get_global_id(1);
    const int k = get_global_id(2);
    const int kx = (i + nx / 2) % nx - nx / 2;
    const int ky = (j + ny / 2) % ny - ny / 2;
    const int kz = (k + nz / 2) % nz - nz / 2;
    decay[(k * ny + j) * nx + i] = exp(scale * (kx * kx + ky * ky + kz * kz));
}

// One step in time; rows are padded by one number.
__kernel void evolve(__global REAL2 *restrict waves,
                     __global REAL2 *restrict copy,
                     __global const REAL *restrict decay,
                     const int nx,
                     const int ny)
{
    const int i = get_global_id(0);
    const int row = get_global_id(2) * ny + get_global_id(1);
    const int place = row * (nx + 1) + i;
    const REAL2 wave = waves[place] * decay[row * nx + i];
    waves[place] = wave;
    copy[place] = wave;
}
