// Problems with all 0-1 inputs, and the plain way to run comparators.
#pragma once

#include <nsc/search/pool.h>
#include <nsc/search/problem.h>
#include <vector>

// All inputs of a few wires, as rows of a pool, for outputs that carry the rank of their number.
struct Inputs {
    int64_t wires, blocks;
    std::vector<uint8_t> outputs;
    std::vector<nsc::search::Row> rows;

    Inputs(int64_t wires, std::vector<uint8_t> outputs)
        : wires(wires), blocks(((1 << wires) + 511) / 512), outputs(outputs) {
        const int64_t stride = wires + int64_t(outputs.size());
        rows.assign(size_t(blocks * stride), nsc::search::Row{});
        for (int64_t t = 0; t < 512 * blocks; ++t) {
            const int64_t input = t % (1 << wires);
            for (int64_t row = 0; row < stride; ++row) {
                const bool is_one = row < wires ? input >> row & 1
                                                : wires - __builtin_popcountll(uint64_t(input)) <=
                                                      outputs[size_t(row - wires)];
                auto *words = reinterpret_cast<uint64_t *>(&rows[size_t(t / 512 * stride + row)]);
                words[t % 512 / 64] |= uint64_t(is_one) << t % 64;
            }
        }
    }

    nsc::search::Problem problem(
        nsc::search::Objective objective = nsc::search::Objective::size) const {
        return {wires,
                0,
                objective,
                0,
                0,
                0,
                int64_t(outputs.size()),
                blocks,
                nullptr,
                nullptr,
                outputs.data(),
                reinterpret_cast<const uint64_t *>(rows.data())};
    }

    nsc::search::Pool pool() {
        return {wires, int64_t(outputs.size()), blocks, outputs.data(), nullptr, 0, rows.data(), 0};
    }
};

inline nsc::search::Comparators listed(std::initializer_list<nsc::search::Comparator> comparators) {
    nsc::search::Comparators list;
    for (const nsc::search::Comparator c : comparators) list.add(c);
    return list;
}

inline nsc::search::Comparators sorter_of_four() {
    return listed({{0, 2}, {1, 3}, {0, 1}, {2, 3}, {1, 2}});
}
