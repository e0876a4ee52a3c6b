/* OPERATIONS CPU FOLDER PERCENT: fstatat() by path in a tree of 400 files in 40 folders; PERCENT of the names are not there. */
#include "files.h"

#define FILES 400

int main(int argc, char **argv) {
    uint64_t ops = number(argc, argv, 1), misses = FILES * number(argc, argv, 4) / 100, seen = 0, missed = 0;
    static char paths[FILES][64];
    enter(argc, argv);
    make_tree("tree", FILES, 0, paths);
    int *order = shuffled(FILES);
    for (uint64_t i = 0; i < misses; i++) *strrchr(paths[i * 7 % FILES], 'c') = 'h';
    int here = open(".", O_RDONLY | O_DIRECTORY);
    if (here < 0) die("open");
    pin(argv[2], 0);
    double began = 0;
    for (uint64_t i = 0; i < FILES + ops; i++) {
        struct stat st;
        if (i == FILES) began = now_ns();
        if (fstatat(here, paths[order[i % FILES]], &st, AT_SYMLINK_NOFOLLOW) == 0) seen++;
        else missed++;
    }
    printf("%.4f\n", (now_ns() - began) / (double)ops);
    if (seen < missed || (misses != 0) != (missed != 0)) die("count");
    leave();
    return 0;
}
