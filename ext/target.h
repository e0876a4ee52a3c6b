/* The exit status of the program that spawn kernels execute: no errno is as high, so nothing else is taken for it. */
#define TARGET_STATUS 200
