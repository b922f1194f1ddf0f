// A step of the shallow water equations by the scheme of Lax and Friedrichs: the mean of the four
// neighbours and the difference of the flows through them. Depth and the two momenta are fields of
// their own; beyond the shore the last cell is repeated.
#define HALF_GRAVITY 4.905f

__kernel void shallow_water(__global const float *restrict depth,
                            __global const float *restrict momentum_x,
                            __global const float *restrict momentum_y,
                            __global float *restrict next_depth,
                            __global float *restrict next_x, __global float *restrict next_y,
                            const float rate)
{
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const size_t row = (size_t)y * width;
    const size_t west = row + max(x - 1, 0);
    const size_t east = row + min(x + 1, width - 1);
    const size_t north = (size_t)max(y - 1, 0) * width + x;
    const size_t south = (size_t)min(y + 1, height - 1) * width + x;

    const float4 h = (float4)(depth[west], depth[east], depth[north], depth[south]);
    const float4 u = (float4)(momentum_x[west], momentum_x[east], momentum_x[north],
                              momentum_x[south]);
    const float4 v = (float4)(momentum_y[west], momentum_y[east], momentum_y[north],
                              momentum_y[south]);
    const float4 pressure = HALF_GRAVITY * h * h;
    const float4 mixed = u * v / h;
    const float2 push_x = u.xy * u.xy / h.xy + pressure.xy;
    const float2 push_y = v.zw * v.zw / h.zw + pressure.zw;
    next_depth[row + x] = 0.25f * (h.x + h.y + h.z + h.w) - rate * (u.y - u.x + v.w - v.z);
    next_x[row + x] = 0.25f * (u.x + u.y + u.z + u.w)
                      - rate * (push_x.y - push_x.x + mixed.w - mixed.z);
    next_y[row + x] = 0.25f * (v.x + v.y + v.z + v.w)
                      - rate * (mixed.y - mixed.x + push_y.y - push_y.x);
}
