/* OPERATIONS CPU FOLDER [CAP]: create a file, write it in 2 KiB pieces, close, rename, unlink.
 * Sizes: lognormal, p50 5.6 KiB, p90 35 KiB, never above CAP (1 MiB): the inverse of its distribution function at the
 * multiples of the golden ratio, modulo 1, which any number of files spreads evenly. Their mean goes to stderr, in bytes;
 * that of the distribution is 15.4 KiB. */
#include "peer.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

/* The z below which a share u of the normal distribution lies. */
static double normal_at(double u) {
    double low = -10, high = 10;
    for (int i = 0; i < 50; i++) {
        double mid = (low + high) / 2;
        *(erfc(-mid / sqrt(2)) / 2 < u ? &low : &high) = mid;
    }
    return low;
}

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), warm = 64;
    if (argc < 4 || chdir(argv[3])) die("folder");
    double cap = argc > 4 ? atof(argv[4]) : 1 << 20, sigma = log(35 / 5.6) / normal_at(0.9), sum = 0;
    uint32_t *sizes = malloc((warm + ops) * sizeof *sizes);
    if (!sizes) die("memory");
    for (uint64_t i = 0; i < warm + ops; i++) {
        double u = fmod(0.5 + 0.6180339887498949 * (double)i, 1), size = 5.6 * 1024 * exp(sigma * normal_at(u));
        sizes[i] = (uint32_t)fmax(1, round(fmin(size, cap)));
        if (i >= warm) sum += sizes[i];
    }
    static char piece[2048];
    memset(piece, 'x', sizeof piece);
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        int fd = open("new", O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd < 0) die("open");
        for (size_t left = sizes[i], n; left; left -= n) {
            n = left < sizeof piece ? left : sizeof piece;
            if (write(fd, piece, n) != (ssize_t)n) die("write");
        }
        if (close(fd) || rename("new", "file") || unlink("file")) die("close, rename, unlink");
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    fprintf(stderr, "mean %.0f bytes\n", sum / (double)ops);
    return 0;
}
