/* Softmax of each row. A work-group of LX * LY work-items makes LY rows, LX work-items a row
 * (1: each work-item its own row); CHAINS running sums per work-item. */
__kernel __attribute__((reqd_work_group_size(LX, LY, 1)))
void softmax(__global const float *in, __global float *out)
{
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int row = (get_group_id(1) * LY + ly) * WIDTH;
    float top[CHAINS], sum[CHAINS];
    for (int c = 0; c < CHAINS; c++) {
        top[c] = -INFINITY;
        sum[c] = 0.0f;
    }
    for (int i = 0; i < WIDTH / (LX * CHAINS); i++)
        for (int c = 0; c < CHAINS; c++)
            top[c] = fmax(top[c], in[row + (i * CHAINS + c) * LX + lx]);
    float most = -INFINITY;
    for (int c = 0; c < CHAINS; c++)
        most = fmax(most, top[c]);
#if LX > 1
    __local float shared[LY][LX];
    shared[ly][lx] = most;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < LX; k++)
        most = fmax(most, shared[ly][k]);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (int i = 0; i < WIDTH / (LX * CHAINS); i++)
        for (int c = 0; c < CHAINS; c++) {
            const int at = row + (i * CHAINS + c) * LX + lx;
            const float e = native_exp(in[at] - most);
            out[at] = e;
            sum[c] += e;
        }
    float total = 0.0f;
    for (int c = 0; c < CHAINS; c++)
        total += sum[c];
#if LX > 1
    shared[ly][lx] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    total = 0.0f;
    for (int k = 0; k < LX; k++)
        total += shared[ly][k];
#endif
    const float scale = 1.0f / total;
    for (int i = 0; i < WIDTH / LX; i++)
        out[row + i * LX + lx] *= scale;
}
