// Half a sweep of Metropolis's algorithm over Ising's magnet on a torus: spins of one colour of the
// chessboard turn over if that saves energy, or by chance, near the critical temperature.
inline uint scramble(uint x)
{
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ (x >> 16);
}

__kernel void ising(__global uchar *spins, const int width, const int colour, const uint seed)
{
    const int height = get_global_size(1);
    const int y = get_global_id(1);
    const int x = 2 * get_global_id(0) + ((y + colour) & 1);
    const size_t row = (size_t)y * width;
    const size_t above = (size_t)(y == 0 ? height - 1 : y - 1) * width;
    const size_t below = (size_t)(y == height - 1 ? 0 : y + 1) * width;
    const int mine = spins[row + x];
    const int up = spins[above + x] + spins[below + x] + spins[row + (x == 0 ? width - 1 : x - 1)]
                   + spins[row + (x == width - 1 ? 0 : x + 1)];
    const int alike = mine ? up : 4 - up;
    // exp(-4 / 2.27) and exp(-8 / 2.27) of 2^32
    const uint chance = alike == 4 ? 126617650u : 737437300u;
    if (alike <= 2 || scramble((uint)(row + x) ^ seed) < chance) {
        spins[row + x] = 1 - mine;
    }
}
