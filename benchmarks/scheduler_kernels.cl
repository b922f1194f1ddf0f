// Twelve kernels of twelve kinds in one program, as a host program of some size has them.

#define TILE 16

// Streaming: every element once.
kernel void triad(global float *a, global const float *b, global const float *c, float s)
{
    size_t i = get_global_id(0);
    a[i] = b[i] + s * c[i];
}

// A stencil in two dimensions.
kernel void diffuse(global float *out, global const float *in)
{
    int x = get_global_id(0), y = get_global_id(1);
    int w = get_global_size(0), h = get_global_size(1);
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1)
        return;
    int i = y * w + x;
    out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
}

// Dense arithmetic through local memory.
kernel void multiply(global float *c, global const float *a, global const float *b)
{
    local float left[TILE][TILE], right[TILE][TILE];
    int x = get_global_id(0), y = get_global_id(1), n = get_global_size(0);
    int i = get_local_id(0), j = get_local_id(1);
    float sum = 0.0f;
    for (int tile = 0; tile < n; tile += TILE) {
        left[j][i] = a[y * n + tile + i];
        right[j][i] = b[(tile + j) * n + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += left[j][k] * right[k][i];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[y * n + x] = sum;
}

// Work that differs by place.
kernel void escape(global int *image, int most)
{
    int x = get_global_id(0), y = get_global_id(1);
    float cr = 3.0f * x / get_global_size(0) - 2.0f, ci = 2.0f * y / get_global_size(1) - 1.0f;
    float r = 0.0f, i = 0.0f;
    int n = 0;
    for (; n < most && r * r + i * i < 4.0f; n++) {
        float next = r * r - i * i + cr;
        i = 2.0f * r * i + ci;
        r = next;
    }
    image[y * get_global_size(0) + x] = n;
}

// Every body with every other.
kernel void attract(global float4 *force, global const float4 *body, int n)
{
    float4 me = body[get_global_id(0)];
    float3 sum = (float3)(0.0f);
    for (int j = 0; j < n; j++) {
        float3 d = body[j].xyz - me.xyz;
        float r = rsqrt(dot(d, d) + 0.01f);
        sum += body[j].w * r * r * r * d;
    }
    force[get_global_id(0)] = (float4)(sum, 0.0f);
}

// Addresses that data decide.
kernel void gather(global float *out, global const float *in, global const int *where)
{
    size_t i = get_global_id(0);
    out[i] = in[where[i]];
}

// A sparse matrix in rows of different lengths.
kernel void sparse(global float *y, global const int *first, global const int *column,
                   global const float *value, global const float *x)
{
    size_t row = get_global_id(0);
    float sum = 0.0f;
    for (int k = first[row]; k < first[row + 1]; k++)
        sum += value[k] * x[column[k]];
    y[row] = sum;
}

// Special functions.
kernel void wave(global float *out, global const float *in, int steps)
{
    size_t i = get_global_id(0);
    float v = in[i];
    for (int k = 0; k < steps; k++)
        v = sin(v) + exp(-v * v) + 0.25f * cos(3.0f * v);
    out[i] = v;
}

// A sum per work-group.
kernel void reduce(global float *sums, global const float *in, local float *part)
{
    int i = get_local_id(0);
    size_t at = get_group_id(0) * get_local_size(0) * 4 + i;
    float sum = 0.0f;
    for (int k = 0; k < 4; k++)
        sum += in[at + k * get_local_size(0)];
    part[i] = sum;
    for (int half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < half_size)
            part[i] += part[i + half_size];
    }
    if (i == 0)
        sums[get_group_id(0)] = part[0];
}

// Atomic additions to a small table.
kernel void count(global int *bins, global const int *in)
{
    atomic_inc(&bins[in[get_global_id(0)] & 1023]);
}

// Work that grows with the row.
kernel void lower(global float *y, global const float *a, global const float *x)
{
    int row = get_global_id(0), n = get_global_size(0);
    float sum = 0.0f;
    for (int k = 0; k <= row; k++)
        sum += a[(size_t)row * n + k] * x[k];
    y[row] = sum;
}

// Fewer work-items than elements.
kernel void stride(global float *out, global const float *in, int n)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        out[i] = sqrt(fabs(in[i])) + 1.0f;
}
