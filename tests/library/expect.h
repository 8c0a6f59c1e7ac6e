// What unit tests of the library are written with. A file of tests is a program:
//
//     TEST(name_says_what_holds) { EXPECT(1 + 1 == 2); }
//
// It prints each expectation that does not hold, with its place, and returns 1 if there is one.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <initializer_list>

struct Test {
    Test(const char *name, void (*run)()) : name(name), run(run) {
        *end = this;
        end = &next;
    }
    const char *name;
    void (*run)();
    Test *next = nullptr;
    static inline Test *first = nullptr, **end = &first, *running = nullptr;
    static inline int failed = 0;
};

#define TEST(name)                              \
    static void name();                         \
    static const Test test_##name{#name, name}; \
    static void name()

inline void expect(bool holds, const char *file, int line, const char *text) {
    if (holds) return;
    ++Test::failed;
    printf("%s:%d: %s: %s does not hold\n", file, line, Test::running->name, text);
}

inline void expect_near(double found, double expected, double tolerance, const char *file, int line,
                        const char *text) {
    if (fabs(found - expected) <= tolerance || found == expected) return;
    ++Test::failed;
    printf("%s:%d: %s: %s is %.17g, not %.17g +- %.2g\n", file, line, Test::running->name, text,
           found, expected, tolerance);
}

#define EXPECT(...) expect((__VA_ARGS__), __FILE__, __LINE__, #__VA_ARGS__)
// NaN is near nothing, and an infinity near itself.
#define EXPECT_NEAR(found, expected, tolerance) \
    expect_near(double(found), double(expected), double(tolerance), __FILE__, __LINE__, #found)

// Whether two numbers, or arrays, have the same bits.
template <class T>
bool same_bits(const T &a, const T &b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
bool is_aligned(const T *start, uintptr_t bytes) {
    return reinterpret_cast<uintptr_t>(start) % bytes == 0;
}

int main() {
    if (!Test::first) return printf("no test\n"), 1;
    for (Test::running = Test::first; Test::running; Test::running = Test::running->next)
        Test::running->run();
    return Test::failed > 0;
}
