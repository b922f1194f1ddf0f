// A sparse matrix of blocks of 4 by 4 times a vector, a row of blocks per work-item.
kernel void bsr(global const int *rows, global const int *columns, global const float16 *blocks,
                global const float4 *x, global float4 *y)
{
    size_t r = get_global_id(0);
    float4 sum = 0;
    for (int e = rows[r]; e < rows[r + 1]; e++) {
        float16 b = blocks[e];
        float4 v = x[columns[e]];
        sum += (float4)(dot(b.s0123, v), dot(b.s4567, v), dot(b.s89ab, v), dot(b.scdef, v));
    }
    y[r] = sum;
}
