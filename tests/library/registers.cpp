// Registers: loads, stores, the numbers of lanes.
#include "expect.h"

#include <nsc/attributes.h>
#include <nsc/registers.h>

using namespace nsc;

template <class T>
static void expect_lanes() {
    EXPECT(sizeof(Vec<T>) == register_bytes);
    EXPECT(lanes<T> * sizeof(T) == register_bytes);
    const Vec<T> row = all(T(7));
    for (int64_t k = 0; k < lanes<T>; ++k) EXPECT(row[k] == T(7));
}

TEST(a_register_has_as_many_lanes_as_numbers_fit) {
    expect_lanes<float>();
    expect_lanes<double>();
    expect_lanes<int8_t>();
    expect_lanes<uint16_t>();
    expect_lanes<int64_t>();
}

TEST(a_load_of_few_values_leaves_zero_in_the_other_lanes) {
    float from[lanes<float>];
    for (int64_t k = 0; k < lanes<float>; ++k) from[k] = float(k + 1);
    for (int64_t count = 0; count <= lanes<float>; ++count) {
        const Vec<float> row = load(from, count);
        for (int64_t k = 0; k < lanes<float>; ++k) EXPECT(row[k] == (k < count ? from[k] : 0));
    }
}

TEST(a_store_of_few_values_leaves_the_memory_behind_them) {
    for (int64_t count = 0; count <= lanes<float>; ++count) {
        float to[lanes<float> + 1];
        for (float &each : to) each = -1;
        store(to, all(5.0f), count);
        for (int64_t k = 0; k <= lanes<float>; ++k) EXPECT(to[k] == (k < count ? 5 : -1));
    }
}

TEST(loads_and_stores_take_any_address) {
    char bytes[2 * register_bytes + 1] = {};
    double *unaligned = reinterpret_cast<double *>(bytes + 1);
    store(unaligned, all(3.0));
    EXPECT(same_bits(load(unaligned), all(3.0)));
    EXPECT(bytes[0] == 0 && bytes[register_bytes + 1] == 0);
}

template <int... places>
static bool are(Places<places...>, int count) {
    int at = 0;
    return ((places == at++) && ...) && at == count;
}

TEST(places_count_from_0) {
    EXPECT(are(PlacesTo<4>::list(), 4));
    EXPECT(are(PlacesTo<0>::list(), 0));
}

TEST(fetching_ahead_changes_nothing) {
    int values[40] = {1, 2, 3};
    const int before[40] = {1, 2, 3};
    fetch_ahead<false>(values, sizeof values);
    fetch_ahead<true>(values, sizeof values);
    touch_ahead(values, sizeof values);
    EXPECT(same_bits(values, before));
}

// A step may stand in a loop that is unrolled over the lanes of a register.
NSC_STEP static int twice(int value) { return 2 * value; }
NSC_NOINLINE static int thrice(int value) { return 3 * value; }
NSC_FUNCTION int negated(int value) { return -value; }
NSC_TABLE int table[] = {4, 5};

TEST(attributes_declare_functions_tables_and_loops) {
    const auto sum = [](int a, int b) NSC_INLINE { return a + b; };
    int total = 0;
    NSC_UNROLL
    for (int64_t k = 0; k < lanes<int>; ++k) total = sum(total, table[k % 2]);
    EXPECT(total == 9 * lanes<int> / 2);
    EXPECT(twice(3) + thrice(5) + negated(1) == 20);
}
