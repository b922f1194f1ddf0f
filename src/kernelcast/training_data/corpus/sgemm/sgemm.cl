// C = alpha * A * B + beta * D for column-major matrices. A work-group of 16 x 4 work-items makes
// 64 rows and 16 columns of C: each work-item has a row, whose 16 results stay in registers. The
// 16 x 16 values of B that all rows need next lie in local memory; each work-item loads its own
// value of A, next to its neighbours'.
#define TILE 16
#define ROWS_OF_LANES 4
#define LANES (TILE * ROWS_OF_LANES)

// Adds the products of the next TILE columns of A with the tile.
inline void add_products(float sums[TILE], __global const float *a, const int pitch_a,
                         __local const float (*tile)[TILE + 1])
{
    for (int k = 0; k < TILE; ++k) {
        const float mine = a[k * pitch_a];
        for (int column = 0; column < TILE; ++column) {
            sums[column] += mine * tile[k][column];
        }
    }
}

inline void store_results(const float sums[TILE], __global const float *d, __global float *c,
                          const int pitch_c, const float alpha, const float beta)
{
    for (int column = 0; column < TILE; ++column) {
        c[column * pitch_c] = alpha * sums[column] + beta * d[column * pitch_c];
    }
}

// Neighbours load down a column of B and store down a column of the tile.
__kernel __attribute__((reqd_work_group_size(TILE, ROWS_OF_LANES, 1)))
void sgemm_nn(__global const float *restrict a, const int pitch_a,
              __global const float *restrict b, const int pitch_b,
              __global const float *restrict d, __global float *restrict c, const int pitch_c,
              const int depth, const float alpha, const float beta)
{
    __local float tile[TILE][TILE + 1];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int row = get_group_id(0) * LANES + ly * TILE + lx;
    const int column = get_group_id(1) * TILE;

    float sums[TILE] = {0.0f};
    for (int begin = 0; begin < depth; begin += TILE) {
        for (int i = ly; i < TILE; i += ROWS_OF_LANES) {
            tile[lx][i] = b[(column + i) * pitch_b + begin + lx];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        add_products(sums, a + begin * pitch_a + row, pitch_a, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int corner = column * pitch_c + row;
    store_results(sums, d + corner, c + corner, pitch_c, alpha, beta);
}

// B is given transposed: neighbours load along what is a row of the tile.
__kernel __attribute__((reqd_work_group_size(TILE, ROWS_OF_LANES, 1)))
void sgemm_nt(__global const float *restrict a, const int pitch_a,
              __global const float *restrict b, const int pitch_b,
              __global const float *restrict d, __global float *restrict c, const int pitch_c,
              const int depth, const float alpha, const float beta)
{
    __local float tile[TILE][TILE + 1];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int row = get_group_id(0) * LANES + ly * TILE + lx;
    const int column = get_group_id(1) * TILE;

    float sums[TILE] = {0.0f};
    for (int begin = 0; begin < depth; begin += TILE) {
        for (int i = ly; i < TILE; i += ROWS_OF_LANES) {
            tile[i][lx] = b[(begin + i) * pitch_b + column + lx];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        add_products(sums, a + begin * pitch_a + row, pitch_a, tile);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int corner = column * pitch_c + row;
    store_results(sums, d + corner, c + corner, pitch_c, alpha, beta);
}
