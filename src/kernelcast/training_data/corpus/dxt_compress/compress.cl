// DXT1 compression: a work-group of 64 work-items has a block of 16 pixels. The pixels are ordered
// along the axis of their greatest spread; every work-item then tries some of the ways to cut the
// order into four classes, by least squares for the two end colours of each; the best of all wins.
// Without contraction the results are the same on every device.
#pragma OPENCL FP_CONTRACT OFF

#define PIXELS 16
#define LANES 64
#define ITERATIONS 8

// Squared weights and their product for a class: w * w, v * v and w * v with v = 3 - w.
__constant int PRODUCTS[4] = {0x090000, 0x000900, 0x040102, 0x010402};
__constant float WEIGHTS[4] = {3.0f, 0.0f, 2.0f, 1.0f};

// The axis of greatest spread by the power method on the matrix of covariances, which is scaled by
// a power of two so that no step grows or shrinks much.
float3 find_axis(const int *covariance)
{
    const float trace = (float)(covariance[0] + covariance[3] + covariance[5]);
    const int shift = trace > 0.0f ? -ilogb(trace) : 0;
    float m[6];
    for (int i = 0; i < 6; ++i) {
        m[i] = ldexp((float)covariance[i], shift);
    }
    float3 axis = (float3)(1.0f);
    for (int i = 0; i < ITERATIONS; ++i) {
        const float x = axis.x * m[0] + axis.y * m[1] + axis.z * m[2];
        const float y = axis.x * m[1] + axis.y * m[3] + axis.z * m[4];
        const float z = axis.x * m[2] + axis.y * m[4] + axis.z * m[5];
        axis = (float3)(x, y, z);
    }
    return axis;
}

// Rounds a colour to 5, 6 and 5 bits.
int3 quantise(const float3 colour)
{
    const float3 most = (float3)(31.0f, 63.0f, 31.0f);
    const float3 scaled = clamp(colour, 0.0f, 255.0f) * (most / 255.0f);
    return convert_int3(floor(scaled + 0.5f));
}

// Gives the colour that a decoder makes of 5, 6 and 5 bits.
float3 expand(const int3 q)
{
    return convert_float3((int3)(q.x << 3 | q.x >> 2, q.y << 2 | q.y >> 4, q.z << 3 | q.z >> 2));
}

// Squared error of a cut but for what all cuts share, times nine.
float try_cut(__local const float4 *sorted, const float3 sum, const uint cut, const float factor,
              int3 *first, int3 *last)
{
    float3 first_sum = (float3)(0.0f);
    int products = 0;
    for (int i = 0; i < PIXELS; ++i) {
        const uint class = cut >> (2 * i) & 3;
        first_sum += WEIGHTS[class] * sorted[i].xyz;
        products += PRODUCTS[class];
    }
    const float3 last_sum = 3.0f * sum - first_sum;
    const float ww = (float)(products >> 16);
    const float vv = (float)(products >> 8 & 255);
    const float wv = (float)(products & 255);

    *first = quantise((first_sum * vv - last_sum * wv) * factor);
    *last = quantise((last_sum * ww - first_sum * wv) * factor);
    const float3 a = expand(*first);
    const float3 b = expand(*last);
    const float3 mixed = a * b * wv - 3.0f * (a * first_sum + b * last_sum);
    const float3 error = a * a * ww + b * b * vv + 2.0f * mixed;
    return error.x + error.y + error.z;
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void compress(__global const uchar4 *restrict pixels,
              __global const uint *restrict cuts,
              __global const float *restrict factors,
              __global uint2 *restrict result,
              const int cut_count)
{
    __local float4 colours[PIXELS];
    __local float4 sorted[PIXELS];
    __local float along[PIXELS];
    __local int ranks[PIXELS];
    __local int spread[PIXELS][6];
    __local float errors[LANES];
    __local int winners[LANES];
    const int lane = get_local_id(0);
    const int block = get_group_id(0);

    if (lane < PIXELS) {
        colours[lane] = convert_float4(pixels[block * PIXELS + lane]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    float3 sum = (float3)(0.0f);
    for (int i = 0; i < PIXELS; ++i) {
        sum += colours[i].xyz;
    }
    if (lane < PIXELS) {
        const int3 d = convert_int3(16.0f * colours[lane].xyz - sum);
        spread[lane][0] = d.x * d.x;
        spread[lane][1] = d.x * d.y;
        spread[lane][2] = d.x * d.z;
        spread[lane][3] = d.y * d.y;
        spread[lane][4] = d.y * d.z;
        spread[lane][5] = d.z * d.z;
    }
    for (int distance = PIXELS / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < distance) {
            for (int i = 0; i < 6; ++i) {
                spread[lane][i] += spread[lane + distance][i];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (lane < PIXELS) {
        int covariance[6];
        for (int i = 0; i < 6; ++i) {
            covariance[i] = spread[0][i];
        }
        const float3 axis = find_axis(covariance);
        const float4 mine = colours[lane];
        along[lane] = axis.x * mine.x + axis.y * mine.y + axis.z * mine.z;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < PIXELS) {
        int rank = 0;
        for (int i = 0; i < PIXELS; ++i) {
            rank += along[i] < along[lane] || (along[i] == along[lane] && i < lane);
        }
        ranks[lane] = rank;
        sorted[rank] = colours[lane];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    float best = INFINITY;
    int winner = 0;
    int3 first;
    int3 last;
    for (int i = lane; i < cut_count; i += LANES) {
        const float error = try_cut(sorted, sum, cuts[i], factors[i], &first, &last);
        if (error < best) {
            best = error;
            winner = i;
        }
    }
    errors[lane] = best;
    winners[lane] = winner;
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < distance) {
            const float other = errors[lane + distance];
            const int other_winner = winners[lane + distance];
            if (other < errors[lane] || (other == errors[lane] && other_winner < winners[lane])) {
                errors[lane] = other;
                winners[lane] = other_winner;
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (lane == 0) {
        uint cut = cuts[winners[0]];
        try_cut(sorted, sum, cut, factors[winners[0]], &first, &last);
        uint a = first.x << 11 | first.y << 5 | first.z;
        uint b = last.x << 11 | last.y << 5 | last.z;
        if (a < b) {  // four classes want the greater one first; that swaps them in pairs
            const uint swap = a;
            a = b;
            b = swap;
            cut ^= 0x55555555;
        }
        uint classes = 0;
        for (int i = 0; i < PIXELS; ++i) {
            classes |= (cut >> (2 * ranks[i]) & 3) << (2 * i);
        }
        result[block] = (uint2)(a | b << 16, a == b ? 0 : classes);
    }
}
