// A knock-out option on a lattice: each work-item follows a path of steps up or down, a bit of a
// random word each, until it meets the barrier or ends. Paths end at very different times. Only the
// place on the lattice is kept.
inline uint draw(uint *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

__kernel void barrier_option(__global short *restrict places, __global ushort *restrict lengths,
                             const int words, const int limit, const uint seed)
{
    const uint path = get_global_id(0);
    uint state = (path * 2654435761u) ^ seed;
    state = state == 0 ? 1 : state;
    // neighbouring seeds draw alike at first
    for (int i = 0; i < 8; ++i) {
        draw(&state);
    }
    int place = 0;
    int length = 0;
    bool is_alive = true;
    for (int word = 0; word < words && is_alive; ++word) {
        uint bits = draw(&state);
        for (int i = 0; i < 32 && is_alive; ++i) {
            place += (bits & 1) != 0 ? 1 : -1;
            bits >>= 1;
            ++length;
            is_alive = place < limit;
        }
    }
    places[path] = place;
    lengths[path] = length;
}
