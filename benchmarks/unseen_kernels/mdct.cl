// Modified discrete cosine transform of overlapping frames, straight from its definition.
kernel void mdct(global const float *pcm, global float *spectrum, int half_frame)
{
    int k = get_global_id(0), frame = get_global_id(1);
    global const float *s = pcm + frame * half_frame;
    float sum = 0, phase = (k + 0.5f) / half_frame, shift = 0.5f + 0.5f * half_frame;
    for (int n = 0; n < 2 * half_frame; n++) {
        float window = native_sin(M_PI_F * (n + 0.5f) / (2 * half_frame));
        sum += window * s[n] * native_cos(M_PI_F * (n + shift) * phase);
    }
    spectrum[frame * half_frame + k] = sum;
}
