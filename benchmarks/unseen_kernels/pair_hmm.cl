// Likelihood that a haplotype gave a read (pair HMM): a read per work-item, a row of states in private arrays.
#define READ 48
kernel void pair_hmm(global const uchar *reads, global const float *errors, constant uchar *haplotype,
                     global float *likelihood, int haplotype_length, int count)
{
    int r = get_global_id(0);
    if (r >= count)
        return;
    float match[READ + 1], insert[READ + 1], delete[READ + 1];
    for (int i = 0; i <= READ; i++)
        match[i] = insert[i] = delete[i] = 0.0f;
    float sum = 0.0f;
    for (int h = 0; h < haplotype_length; h++) {
        float m = 0.0f, n = 0.0f, d = 1.0f / haplotype_length;
        delete[0] = d;
        for (int i = 1; i <= READ; i++) {
            float e = errors[(i - 1) * count + r];
            float same = reads[(i - 1) * count + r] == haplotype[h] ? 1 - e : e / 3;
            float here = same * (0.9f * m + 0.1f * (n + d));
            m = match[i];
            n = insert[i];
            d = delete[i];
            match[i] = here;
            insert[i] = 0.05f * match[i - 1] + 0.1f * insert[i - 1];
            delete[i] = 0.05f * m + 0.1f * d;
        }
        sum += match[READ] + insert[READ];
    }
    likelihood[r] = log10(fmax(sum, 1e-37f));
}
