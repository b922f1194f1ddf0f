// Softmax of every row of a matrix, one work-group per row.

__kernel void softmax_rows(__global const float *scores, __global float *weights,
                           __local float *scratch, const int columns)
{
    const int lid = get_local_id(0);
    const int width = get_local_size(0);
    __global const float *in = scores + get_group_id(0) * (size_t)columns;
    __global float *out = weights + get_group_id(0) * (size_t)columns;

    float largest = -INFINITY;
    for (int c = lid; c < columns; c += width)
        largest = fmax(largest, in[c]);
    scratch[lid] = largest;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_width = width / 2; half_width > 0; half_width /= 2) {
        if (lid < half_width)
            scratch[lid] = fmax(scratch[lid], scratch[lid + half_width]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    largest = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);

    float sum = 0.0f;
    for (int c = lid; c < columns; c += width) {
        const float e = exp(in[c] - largest);
        out[c] = e;
        sum += e;
    }
    scratch[lid] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_width = width / 2; half_width > 0; half_width /= 2) {
        if (lid < half_width)
            scratch[lid] += scratch[lid + half_width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    const float scale = 1.0f / scratch[0];
    for (int c = lid; c < columns; c += width)
        out[c] *= scale;
}
