// Groups of columns: between memory and registers, and payloads.
#include "calls.h"

#include <nsc/relaxed/groups.h>

using namespace nsc;

constexpr int wires = 40;

struct OfWires {
    static constexpr int64_t wires = ::wires;
};

template <class real>
struct Group {
    static constexpr int64_t columns = group_blocks * lanes<real>;
    Group() {
        for (int64_t i = 0; i < wires * columns; ++i) at(i / columns, i % columns) = real(i + 1);
    }
    real &at(int64_t row, int64_t k) { return reinterpret_cast<real *>(rows)[row * columns + k]; }
    Vec<real> rows[wires * group_blocks];
};

template <class real>
static void expect_moves(int64_t width) {
    constexpr int64_t pitch = Group<real>::columns + 2;
    Group<real> group, again;
    real memory[wires * pitch];
    for (real &each : memory) each = -1;
    store_group<real>(OfWires(), group.rows, memory, pitch, width, real(0.5));
    load_group<real>(OfWires(), again.rows, memory, pitch, width);
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < pitch; ++k) {
            EXPECT(memory[row * pitch + k] == (k < width ? group.at(row, k) / 2 : -1));
            if (k < width) EXPECT(again.at(row, k) == group.at(row, k) / 2);
            // The rest of a register is zero; registers behind it are left.
            const int64_t end = (width + lanes<real> - 1) / lanes<real> * lanes<real>;
            if (width <= k && k < Group<real>::columns)
                EXPECT(again.at(row, k) == (k < end ? 0 : group.at(row, k)));
        }
}

TEST(a_group_of_any_width_is_stored_and_loaded) {
    for (int64_t width = 1; width <= Group<float>::columns; width += 5) expect_moves<float>(width);
    expect_moves<float>(Group<float>::columns);
    for (int64_t width = 1; width <= Group<double>::columns; ++width) expect_moves<double>(width);
}

TEST(registers_of_a_row_and_their_values) {
    for (int64_t width = 0; width <= Group<float>::columns; ++width) {
        int64_t total = 0, next = 0;
        for_registers<float>(width, [&](int64_t k, int64_t count) {
            EXPECT(k == next++ && 0 < count && count <= lanes<float>);
            total += count;
        });
        EXPECT(total == width);
        int64_t seen = 0;
        with_width<float>(width, [&](int64_t of) { seen += of; });
        EXPECT(seen == width);
    }
}

// Payloads of two samples of four wires.
template <class real>
static void expect_payloads() {
    static Plan<Bitonic, Logistic> plan = {};
    constexpr int64_t of_payload = 40, most = group_blocks * lanes<real>;
    const real steepness[] = {1};
    real payload[2 * 4 * of_payload];
    int64_t ranks[2 * of_payload];
    for (int i = 0; i < 2 * 4 * of_payload; ++i) payload[i] = real(i);
    for (int i = 0; i < 2 * of_payload; ++i) ranks[i] = i * 3 % 4;
    Vec<real> rows[4 * group_blocks];
    const real *found = reinterpret_cast<const real *>(rows);
    using OfCall = Call<Plan<Bitonic, Logistic>, real>;
    for (int64_t first : {int64_t(0), group_blocks}) {
        const int64_t at = first * lanes<real>,
                      width = of_payload - at < most ? of_payload - at : most;
        for (int64_t stride : {int64_t(0), 4 * of_payload}) {
            const OfCall call = {plan, route,   2,      nullptr,   steepness,
                                 0,    payload, stride, of_payload};
            load_payload(call, rows, 1, first, width, real(7));
            for (int64_t row = 0; row < 4; ++row)
                for (int64_t k = 0; k < width; ++k)
                    EXPECT(found[row * most + k] == payload[stride + row * of_payload + at + k]);
        }
        const OfCall call = {plan, nsc::rows, 2,          nullptr,   steepness,
                             0,    ranks,     of_payload, of_payload};
        load_payload(call, rows, 1, first, width, real(7));
        for (int64_t row = 0; row < 4; ++row)
            for (int64_t k = 0; k < most; ++k)
                EXPECT(found[row * most + k] ==
                       (k < width && ranks[of_payload + at + k] == row ? 7 : 0));
    }
    const OfCall call = {plan, permutation, 2, nullptr, steepness, 0, nullptr, 0, 0};
    load_payload(call, rows, 1, 0, 4, real(7));
    for (int64_t row = 0; row < 4; ++row)
        for (int64_t k = 0; k < most; ++k) EXPECT(found[row * most + k] == (k == row ? 7 : 0));
}

TEST(payloads_are_columns_units_of_ranks_or_the_unit_matrix) {
    expect_payloads<float>();
    expect_payloads<double>();
}
