// An explicit step of heat conduction in a plate of varying material: what flows through a side of a
// cell goes by the harmonic mean of the two cells' conductivities. The rim keeps its temperature.
inline float find_flow(const float here, const float there, const float mine, const float other)
{
    return 2.0f * mine * other / (mine + other) * (there - here);
}

__kernel void heat_variable(__global const float *restrict temperature,
                            __global const float *restrict conductivity,
                            __global float *restrict next, const int width, const int height,
                            const float rate)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const size_t place = (size_t)y * width + x;
    const float here = temperature[place];
    if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
        next[place] = here;
        return;
    }
    const float mine = conductivity[place];
    float flow = find_flow(here, temperature[place - 1], mine, conductivity[place - 1]);
    flow += find_flow(here, temperature[place + 1], mine, conductivity[place + 1]);
    flow += find_flow(here, temperature[place - width], mine, conductivity[place - width]);
    flow += find_flow(here, temperature[place + width], mine, conductivity[place + width]);
    next[place] = here + rate * flow;
}
