kernel void wc(global const char *t, global const int *off, global int *c)
{
    int i = get_global_id(0);
    int n = 0;
    char pr = ' ';
    for (int k = off[i]; k < off[i + 1]; k++) {
        char x = t[k];
        if (x != ' ' && pr == ' ')
            n++;
        pr = x;
    }
    c[i] = n;
}
