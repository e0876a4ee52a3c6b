/* OPERATIONS CPU[,CPU..] NS: lock_mutex with one thread on every CPU that is named. */
#include "lock_mutex.c"
