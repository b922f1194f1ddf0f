// Motion estimation by full search: sums of absolute differences (SAD) between each macroblock of
// 16 x 16 pixels and every position within 16 pixels in the reference frame, first for blocks of
// 4 x 4 pixels, then added up to larger ones. Positions are padded to an even number.
#define SIDE 16
#define REACH 16
#define WIDTH (2 * REACH + 1)
#define POSITIONS (WIDTH * WIDTH)
#define PADDED 1096

// A work-group takes a macroblock, kept in local memory; a work-item takes every so many-th
// position. The reference frame has a border of REACH pixels.
__kernel void mb_calc(__global const uchar *restrict frame,
                      __global const uchar *restrict reference,
                      __global ushort *restrict sad_4x4,
                      const int blocks_x)
{
    __local uchar block[SIDE * SIDE];

    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const int block_x = get_group_id(0);
    const int block_y = get_group_id(1);
    const int pitch = blocks_x * SIDE;
    for (int i = lane; i < SIDE * SIDE; i += lanes) {
        block[i] = frame[(block_y * SIDE + i / SIDE) * pitch + block_x * SIDE + i % SIDE];
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const int reference_pitch = pitch + 2 * REACH;
    __global ushort *sads = sad_4x4 + (block_y * blocks_x + block_x) * SIDE * PADDED;
    for (int position = lane; position < POSITIONS; position += lanes) {
        const int x = block_x * SIDE + position % WIDTH;
        const int y = block_y * SIDE + position / WIDTH;
        for (int part = 0; part < SIDE; ++part) {
            const int part_x = part % 4 * 4;
            const int part_y = part / 4 * 4;
            uint sad = 0;
            for (int row = part_y; row < part_y + 4; ++row) {
                __global const uchar *there = reference + (y + row) * reference_pitch + x + part_x;
                __local const uchar *here = block + row * SIDE + part_x;
                sad += abs_diff(here[0], there[0]) + abs_diff(here[1], there[1])
                     + abs_diff(here[2], there[2]) + abs_diff(here[3], there[3]);
            }
            sads[part * PADDED + position] = sad;
        }
    }
}

// From blocks of 4 x 4 to 8 x 4, 4 x 8 and 8 x 8 pixels, two positions at a time. Blocks of a
// macroblock are numbered row by row.
__kernel void calc_8(__global const ushort2 *restrict sad_4x4,
                     __global ushort2 *restrict sad_8x4,
                     __global ushort2 *restrict sad_4x8,
                     __global ushort2 *restrict sad_8x8)
{
    const int lanes = get_local_size(0);
    const int quarter = get_local_id(1);
    const int macroblock = get_group_id(1);
    const int left = quarter % 2 * 2;
    const int top = quarter / 2 * 2;
    const int position = get_group_id(0) * lanes + get_local_id(0);
    if (position >= PADDED / 2) {
        return;
    }
    __global const ushort2 *from = sad_4x4 + macroblock * (16 * PADDED / 2) + position;
    const ushort2 upper_left = from[(top * 4 + left) * (PADDED / 2)];
    const ushort2 upper_right = from[(top * 4 + left + 1) * (PADDED / 2)];
    const ushort2 lower_left = from[(top * 4 + 4 + left) * (PADDED / 2)];
    const ushort2 lower_right = from[(top * 4 + 5 + left) * (PADDED / 2)];
    const ushort2 upper = upper_left + upper_right;
    const ushort2 lower = lower_left + lower_right;

    __global ushort2 *wide = sad_8x4 + macroblock * (8 * PADDED / 2) + position;
    wide[(top * 2 + left / 2) * (PADDED / 2)] = upper;
    wide[(top * 2 + 2 + left / 2) * (PADDED / 2)] = lower;
    __global ushort2 *tall = sad_4x8 + macroblock * (8 * PADDED / 2) + position;
    tall[(top * 2 + left) * (PADDED / 2)] = upper_left + lower_left;
    tall[(top * 2 + left + 1) * (PADDED / 2)] = upper_right + lower_right;
    sad_8x8[(macroblock * 4 + quarter) * (PADDED / 2) + position] = upper + lower;
}

// From blocks of 8 x 8 to 16 x 8, 8 x 16 and 16 x 16 pixels, two positions at a time.
__kernel void calc_16(__global const ushort2 *restrict sad_8x8,
                      __global ushort2 *restrict sad_16x8,
                      __global ushort2 *restrict sad_8x16,
                      __global ushort2 *restrict sad_16x16)
{
    const int position = get_global_id(0);
    const int macroblock = get_global_id(1);
    if (position >= PADDED / 2) {
        return;
    }
    __global const ushort2 *from = sad_8x8 + macroblock * (4 * PADDED / 2) + position;
    const ushort2 upper_left = from[0];
    const ushort2 upper_right = from[PADDED / 2];
    const ushort2 lower_left = from[2 * (PADDED / 2)];
    const ushort2 lower_right = from[3 * (PADDED / 2)];
    const ushort2 upper = upper_left + upper_right;
    const ushort2 lower = lower_left + lower_right;

    __global ushort2 *wide = sad_16x8 + macroblock * PADDED + position;
    wide[0] = upper;
    wide[PADDED / 2] = lower;
    __global ushort2 *tall = sad_8x16 + macroblock * PADDED + position;
    tall[0] = upper_left + lower_left;
    tall[PADDED / 2] = upper_right + lower_right;
    sad_16x16[macroblock * (PADDED / 2) + position] = upper + lower;
}
