/* OPERATIONS CPU FOLDER [STRATA]: create a file, write it in 2 KiB pieces, close, rename, unlink.
 * Sizes: lognormal, p50 5.6 KiB, p90 35 KiB, at most 1 MiB: one from the middle of each of STRATA equally likely parts (a
 * power of two, 4096 unless told), in an order that mixes small and large. Their mean in bytes goes to stderr: 15878 of
 * 4096 parts, 15002 of 64; that of the distribution is 15868. */
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
    uint64_t ops = number(argc, argv, 1), strata = argc > 4 ? number(argc, argv, 4) : 4096, warm = 64;
    if (argc < 4 || chdir(argv[3])) die("folder");
    double sigma = log(35 / 5.6) / normal_at(0.9), sum = 0;
    uint32_t *sizes = malloc(strata * sizeof *sizes);
    if (!sizes) die("memory");
    for (uint64_t i = 0; i < strata; i++) {
        uint64_t part = i * ((uint64_t)(0.618 * (double)strata) | 1) % strata; /* odd: each part comes once */
        double size = 5.6 * 1024 * exp(sigma * normal_at(((double)part + 0.5) / (double)strata));
        sizes[i] = (uint32_t)fmin(round(size), 1 << 20);
        sum += sizes[i];
    }
    static char piece[2048];
    memset(piece, 'x', sizeof piece);
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < warm + ops; i++) {
        if (i == warm) began = now_ns();
        int fd = open("new", O_WRONLY | O_CREAT | O_EXCL, 0644);
        if (fd < 0) die("open");
        for (size_t left = sizes[i % strata], n; left; left -= n) {
            n = left < sizeof piece ? left : sizeof piece;
            if (write(fd, piece, n) != (ssize_t)n) die("write");
        }
        if (close(fd) || rename("new", "file") || unlink("file")) die("close, rename, unlink");
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    fprintf(stderr, "mean %.0f bytes\n", sum / (double)strata);
    return 0;
}
