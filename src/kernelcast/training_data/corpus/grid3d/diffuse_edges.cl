// A step of Perona's and Malik's diffusion of a volume: noise spreads, edges stay, since little flows
// where the difference is large. A work-group stages its block of NX * NY * NZ cells and a cell around
// it; beyond the faces the last cell is repeated.
#define WIDE (NX + 2)
#define HIGH (NY + 2)
#define DEEP (NZ + 2)

inline float find_flow(const float difference, const float sharpness)
{
    return difference * exp(-sharpness * difference * difference);
}

__kernel __attribute__((reqd_work_group_size(NX, NY, NZ)))
void diffuse_edges(__global const float *restrict now, __global float *restrict next,
                   const float sharpness, const float rate)
{
    __local float block[DEEP][HIGH][WIDE];
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int depth = get_global_size(2);
    const int left = get_group_id(0) * NX - 1;
    const int top = get_group_id(1) * NY - 1;
    const int front = get_group_id(2) * NZ - 1;
    const int lane = (get_local_id(2) * NY + get_local_id(1)) * NX + get_local_id(0);
    for (int i = lane; i < DEEP * HIGH * WIDE; i += NX * NY * NZ) {
        const int column = i % WIDE;
        const int row = i / WIDE % HIGH;
        const int layer = i / (WIDE * HIGH);
        const int from_x = clamp(left + column, 0, width - 1);
        const int from_y = clamp(top + row, 0, height - 1);
        const int from_z = clamp(front + layer, 0, depth - 1);
        block[layer][row][column] = now[((size_t)from_z * height + from_y) * width + from_x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int x = get_local_id(0) + 1;
    const int y = get_local_id(1) + 1;
    const int z = get_local_id(2) + 1;
    const float here = block[z][y][x];
    float sum = find_flow(block[z][y][x - 1] - here, sharpness);
    sum += find_flow(block[z][y][x + 1] - here, sharpness);
    sum += find_flow(block[z][y - 1][x] - here, sharpness);
    sum += find_flow(block[z][y + 1][x] - here, sharpness);
    sum += find_flow(block[z - 1][y][x] - here, sharpness);
    sum += find_flow(block[z + 1][y][x] - here, sharpness);
    const size_t place = (get_global_id(2) * height + get_global_id(1)) * width + get_global_id(0);
    next[place] = here + rate * sum;
}
