// A matrix of 6 bit weights times a vector: 64 weights in 48 bytes and a scale; 32 work-items a row.
typedef struct { uchar low[32], high[16]; float scale; } block;

kernel void gemv_q6(global const block *matrix, global const float *x, global float *y, int blocks)
{
    local float partial[8][32];
    int lane = get_local_id(0), row = get_global_id(1);
    float sum = 0;
    for (int b = lane; b < blocks; b += 32) {
        global const block *w = matrix + row * blocks + b;
        float s = 0;
        for (int i = 0; i < 32; i++) {
            int high = w->high[i >> 1] >> (i & 1) * 4;
            s += (((w->low[i] & 15) | (high & 3) << 4) - 32) * x[b * 64 + 2 * i];
            s += (((w->low[i] >> 4) | (high & 12) << 2) - 32) * x[b * 64 + 2 * i + 1];
        }
        sum += s * w->scale;
    }
    partial[get_local_id(1)][lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
        for (int i = 1; i < 32; i++)
            sum += partial[get_local_id(1)][i];
        y[row] = sum;
    }
}
