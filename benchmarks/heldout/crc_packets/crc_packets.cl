// CRC-32 of network packets stored in slots of fixed size, one packet per work-item.

__kernel void crc_packets(__global const uchar *slots, __global const ushort *lengths,
                          __constant uint *table, __global uint *checksums,
                          const uint slot_bytes)
{
    const size_t packet = get_global_id(0);
    __global const uchar *bytes = slots + packet * slot_bytes;
    const uint length = lengths[packet];

    uint crc = 0xffffffffu;
    for (uint i = 0; i < length; ++i)
        crc = table[(crc ^ bytes[i]) & 0xffu] ^ (crc >> 8);
    checksums[packet] = ~crc;
}
