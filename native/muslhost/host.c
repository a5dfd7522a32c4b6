/* The program: muslhost LIBRARY OPTIONS MILLISECONDS, where the time is that of each work. */
#include <stdio.h>
#include <stdlib.h>

#include "host.h"

int main(int count, char **arguments)
{
    if (count != 4) {
        fprintf(stderr, "usage: %s LIBRARY OPTIONS MILLISECONDS\n", arguments[0]);
        return 2;
    }
    if (vm_start(arguments[1], arguments[2]) != 0)
        return 1;
    int result = works_run(strtoul(arguments[3], NULL, 10));
    vm_end();
    return result;
}
