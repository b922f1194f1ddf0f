// Scores of queries over a cache of keys in pages of 16 tokens, which a table finds.
kernel void paged_scores(global const float4 *queries, global const float4 *pages, global const int *table,
                         global float *scores, int pages_each, int quads)
{
    int token = get_global_id(0), sequence = get_global_id(1);
    int page = table[sequence * pages_each + token / 16];
    global const float4 *key = pages + (page * 16 + token % 16) * quads;
    float sum = 0.0f;
    for (int i = 0; i < quads; i++)
        sum += dot(queries[sequence * quads + i], key[i]);
    scores[sequence * get_global_size(0) + token] = sum;
}
