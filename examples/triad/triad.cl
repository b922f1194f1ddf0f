// a = b + s * c: three vectors, two operations, nothing but memory traffic. The index space goes
// over the vectors several times, start to end; later sweeps write the same values again.
__kernel void triad(__global float *restrict a,
                    __global const float *restrict b,
                    __global const float *restrict c,
                    const float s,
                    const uint count)
{
    // Wrapping the start of the work-group, not each id, keeps the accesses contiguous.
    const uint begin = (uint)(get_group_id(0) * get_local_size(0)) % count;
    const size_t i = begin + get_local_id(0);
    a[i] = b[i] + s * c[i];
}
