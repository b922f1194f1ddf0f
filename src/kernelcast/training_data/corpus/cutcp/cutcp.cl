// Coulomb potential with a cutoff on a three-dimensional lattice. Atoms lie in bins as wide as the
// block of 8 x 8 x 8 lattice points that a work-group computes. The work-group goes through the
// bins around it, BATCH at a time: one atom a work-item is copied to local memory, then each
// work-item adds the atoms within the cutoff to its four points. Bins hold different numbers of
// atoms, so work-groups take different times.
#define LANES 128
#define DEPTH 8
#define BATCH (LANES / DEPTH)
#define REACH 2
#define WIDTH (2 * REACH + 1)
#define BINS (WIDTH * WIDTH * WIDTH)
#define SPACING 0.5f
#define CUTOFF 8.0f

inline float find_energy(const float4 atom, const float beside, const float z)
{
    const float dz = atom.z - z;
    const float r2 = beside + dz * dz;
    if (r2 >= CUTOFF * CUTOFF) {
        return 0.0f;
    }
    const float shift = 1.0f - r2 * (1.0f / (CUTOFF * CUTOFF));
    return atom.w * rsqrt(r2) * shift * shift;
}

// Atoms are x, y, z and charge; bins include a margin of REACH on every side.
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void lattice(__global const float4 *restrict atoms,
             __global const int *restrict counts,
             __global float *restrict energy,
             const int bins_x,
             const int bins_y)
{
    __local float4 near_atoms[LANES];
    __local int near_counts[BATCH];

    const int lane = get_local_id(0);
    const int slot = lane / DEPTH;
    const int entry = lane % DEPTH;
    const int column = lane % 8;
    const int row = lane / 8 % 8;
    const int layer = lane / 64 * 4;
    const int block_x = get_group_id(0);
    const int block_y = get_group_id(1);
    const int block_z = get_group_id(2);
    const float x = SPACING * (block_x * 8 + column);
    const float y = SPACING * (block_y * 8 + row);
    const float z = SPACING * (block_z * 8 + layer);

    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int first = 0; first < BINS; first += BATCH) {
        const int place = first + slot;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (place < BINS) {
            const int bin_x = block_x + place % WIDTH;
            const int bin_y = block_y + place / WIDTH % WIDTH;
            const int bin_z = block_z + place / (WIDTH * WIDTH);
            const int bin = (bin_z * bins_y + bin_y) * bins_x + bin_x;
            near_atoms[lane] = atoms[bin * DEPTH + entry];
            if (entry == 0) {
                near_counts[slot] = counts[bin];
            }
        } else if (entry == 0) {
            near_counts[slot] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int bin = 0; bin < BATCH; ++bin) {
            const int count = near_counts[bin];
            for (int n = 0; n < count; ++n) {
                const float4 atom = near_atoms[bin * DEPTH + n];
                const float dx = atom.x - x;
                const float dy = atom.y - y;
                const float beside = dx * dx + dy * dy;
                sums[0] += find_energy(atom, beside, z);
                sums[1] += find_energy(atom, beside, z + SPACING);
                sums[2] += find_energy(atom, beside, z + 2.0f * SPACING);
                sums[3] += find_energy(atom, beside, z + 3.0f * SPACING);
            }
        }
    }
    const int pitch = (bins_x - 2 * REACH) * 8;
    const int slice = pitch * (bins_y - 2 * REACH) * 8;
    __global float *point = energy + (block_z * 8 + layer) * slice
                          + (block_y * 8 + row) * pitch + block_x * 8 + column;
    for (int k = 0; k < 4; ++k) {
        point[k * slice] = sums[k];
    }
}
