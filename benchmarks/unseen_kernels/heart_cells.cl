/* Cells of heart muscle (Hodgkin-Huxley currents): 20 steps of the gates of each. */
#define GATE(x, a, b) x += dt * ((a) * (1 - (x)) - (b) * (x))
__kernel void beat(__global float *voltage, __global float *m_gate, __global float *h_gate,
                   __global float *n_gate, float current, float dt, int steps)
{
    size_t c = get_global_id(0);
    float v = voltage[c], m = m_gate[c], h = h_gate[c], n = n_gate[c];
    for (int s = 0; s < steps; s++) {
        float u = v + 40.0f, w = v + 55.0f;
        GATE(m, fabs(u) < 1e-3f ? 1.0f : 0.1f * u / (1 - exp(-u / 10)), 4 * exp(-(v + 65) / 18));
        GATE(h, 0.07f * exp(-(v + 65) / 20), 1 / (1 + exp(-(v + 35) / 10)));
        GATE(n, fabs(w) < 1e-3f ? 0.1f : 0.01f * w / (1 - exp(-w / 10)), 0.125f * exp(-(v + 65) / 80));
        float ionic = 120 * m * m * m * h * (v - 50) + 36 * n * n * n * n * (v + 77) + 0.3f * (v + 54.4f);
        v += dt * (current - ionic);
    }
    voltage[c] = v;
    m_gate[c] = m;
    h_gate[c] = h;
    n_gate[c] = n;
}
