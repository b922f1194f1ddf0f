// Polyphase decimation of 16 bit stereo sound: a sample that stays per work-item, taps in constant memory.
kernel void fir_decimate(global const short2 *in, global short2 *out, constant float *taps,
                         int n_taps, int factor, int n_out)
{
    int o = get_global_id(0);
    if (o < n_out) {
        global const short2 *s = in + o * factor;
        float l = 0, r = 0;
        for (int t = 0; t < n_taps; t++) {
            l = mad(taps[t], (float)s[t].x, l);
            r = mad(taps[t], (float)s[t].y, r);
        }
        out[o] = convert_short2_sat_rte((float2)(l, r));
    }
}
