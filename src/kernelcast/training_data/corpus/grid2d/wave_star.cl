// A step of the wave equation, of fourth order in space: a star of nine points. The field of the
// step after next takes the place of the one before.
#define FAR (-1.0f / 12.0f)
#define NEAR (4.0f / 3.0f)
#define CENTRE (-5.0f)

__kernel void wave_star(__global const float *restrict now, __global float *restrict before,
                        __global const float *restrict speed, const int pitch)
{
    const size_t place = (size_t)(get_global_id(1) + 2) * pitch + get_global_id(0) + 2;
    const float here = now[place];
    float bend = CENTRE * here;
    bend += NEAR * (now[place - 1] + now[place + 1] + now[place - pitch] + now[place + pitch]);
    bend += FAR * (now[place - 2] + now[place + 2] + now[place - 2 * pitch]
                   + now[place + 2 * pitch]);
    before[place] = 2.0f * here - before[place] + speed[place] * bend;
}
