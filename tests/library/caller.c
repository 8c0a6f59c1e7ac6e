// Calls functions of a library with arguments that standard input describes, and writes what they
// leave. A description is words of eight bytes: for each call its name (a length and characters),
// and arguments. An argument is 0 and a number; 1, a length and bytes; 2 for what the call before
// returned; or 3, a number of arguments and these, for a structure of words. Behind the last call
// all bytes are written, in their order.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { most = 24 };
static struct {
    void *start;
    size_t size;
} kept[256];
static int count;
static int64_t returned;

static void bytes(void *start, size_t size) {
    if (fread(start, 1, size, stdin) != size) exit(3);
}

static int64_t word(void) {
    int64_t value;
    bytes(&value, sizeof value);
    return value;
}

static int64_t argument(void) {
    const int64_t kind = word();
    if (kind == 2) return returned;
    const int64_t size = word();
    if (kind == 0) return size;
    if (kind == 3) {
        int64_t *words = malloc(8 * size);
        for (int64_t k = 0; k < size; ++k) words[k] = argument();
        return (int64_t)(intptr_t)words;
    }
    // The allocator of the library may align no better.
    void *start = malloc(size + 1);
    bytes(start, size);
    kept[count].start = start, kept[count++].size = size;
    return (int64_t)(intptr_t)start;
}

int main(int arguments, char **words) {
    void *library = dlopen(words[arguments - 1], RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
    for (int64_t calls = word(); calls > 0; --calls) {
        char name[64] = "";
        bytes(name, word());
        int64_t a[most] = {0};
        const int64_t given = word();
        for (int64_t k = 0; k < given; ++k) a[k] = argument();
        int64_t (*call)() = (int64_t (*)())dlsym(library, name);
        if (!call) return fprintf(stderr, "no %s\n", name), 2;
        returned =
            call(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
                 a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23]);
    }
    fwrite(&returned, 4, 1, stdout);
    for (int k = 0; k < count; ++k) fwrite(kept[k].start, 1, kept[k].size, stdout);
    return 0;
}
