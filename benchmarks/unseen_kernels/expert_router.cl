/* Mixture of experts: the two greatest of 64 logits of a token and their softmax. */
#define EXPERTS 64
__kernel void route(__global const float *hidden, __global const float *weights, __global int2 *chosen,
                    __global float2 *gates, int width)
{
    float logit[EXPERTS];
    int token = get_global_id(0), a = 0, b = 1;
    for (int e = 0; e < EXPERTS; e++)
        logit[e] = 0.0f;
    for (int k = 0; k < width; k++) {
        float h = hidden[token * width + k];
        for (int e = 0; e < EXPERTS; e++)
            logit[e] += h * weights[k * EXPERTS + e];
    }
    if (logit[b] > logit[a]) { a = 1; b = 0; }
    for (int e = 2; e < EXPERTS; e++) {
        if (logit[e] > logit[a]) { b = a; a = e; }
        else if (logit[e] > logit[b]) b = e;
    }
    float w = 1.0f / (1.0f + exp(logit[b] - logit[a]));
    chosen[token] = (int2)(a, b);
    gates[token] = (float2)(w, 1.0f - w);
}
