// Operands of a call, and what it gives by the definitions, in double.
#pragma once

#include "networks.h"

#include <nsc/relaxed/call.h>

// The result of a routing for one sample, from P and a payload of `columns` columns, ranks, or the
// reals of a target.
template <class Network>
struct Definition {
    static constexpr int wires = Network::wires;
    nsc::Routing routing;
    int columns;
    const double *payload;
    const int64_t *ranks;
    const double *target;

    int count() const { return is_loss(routing) ? 1 : routing == nsc::none ? 0 : wires * columns; }
    double of(const double (*P)[wires], int place) const {
        if (is_loss(routing)) return loss(P);
        const int row = place / columns, column = place % columns;
        double sum = 0;
        switch (routing) {
            case nsc::permutation: return P[row][column];
            case nsc::rows: return P[ranks[column]][row];
            case nsc::route:
                for (int i = 0; i < wires; ++i) sum += P[row][i] * payload[i * columns + column];
                return sum;
            default:
                for (int i = 0; i < wires; ++i) sum += P[i][row] * payload[i * columns + column];
                return sum;
        }
    }
    static double cut_log(double p) { return p > exp(-80.0) ? log(p) : -80; }
    // What a column counts, and whether it may have a rank.
    double weight(int column) const {
        if (form_of(routing) == nsc::of_intervals) return target[2 * wires + column];
        if (form_of(routing) == nsc::of_shares) return target[wires * wires + column];
        int count = 0;
        for (int i = 0; i < wires; ++i) count += ranks[i] != nsc::ignored;
        return ranks[column] == nsc::ignored ? 0 : 1.0 / count;
    }
    bool is_in(int row, int column) const {
        if (form_of(routing) == nsc::of_ranks) return ranks[column] == row;
        return target[column] <= row && row <= target[wires + column];
    }
    double loss(const double (*P)[wires]) const {
        const bool by_row = routing >= nsc::binary_cross_entropy_routing,
                   of_shares = form_of(routing) == nsc::of_shares;
        double sum = 0;
        for (int column = 0; column < wires; ++column) {
            double mass = 0, entries = 0;
            int ranks_in = 0;
            for (int row = 0; row < wires; ++row)
                if (is_in(row, column)) mass += P[row][column], ++ranks_in;
            for (int row = 0; row < wires; ++row) {
                const double p = P[row][column], share = of_shares ? target[row * wires + column]
                                                         : is_in(row, column) ? 1.0 / ranks_in
                                                                              : 0;
                entries -= share * cut_log(p) + (by_row ? (1 - share) * cut_log(1 - p) : 0);
            }
            if (by_row) entries /= wires;
            sum += weight(column) * (by_row || of_shares ? entries : -cut_log(mass));
        }
        return sum;
    }
};

// A call of a few samples. Gradients are those of the sum of all results times numbers, of a loss
// itself.
template <class Network, class real>
struct Operands {
    static constexpr int wires = Network::wires, most = 10, most_columns = 20;
    Operands(nsc::Routing routing, int64_t batch, int columns = 0, bool of_values = true)
        : routing(routing),
          batch(batch),
          columns(nsc::routes_identity(routing) ? wires : columns),
          of_values(of_values) {
        for (int i = 0; i < most * wires; ++i) {
            x[i] = real(number(i));
            values_grad[i] = of_values ? real(number(i + 333)) : 0;
            ranks[i] = (i / wires + 3 * (i % wires)) % wires;
        }
        for (int b = 0; b < most; ++b) steepness[b] = real(3 + b / 4.0);
        for (int i = 0; i < most * wires * most_columns; ++i)
            payload[i] = real(number(i + 77)), routed_grad[i] = real(number(i + 5000));
        for (int i = 0; i < most * most_columns; ++i) row_ranks[i] = i * 3 % wires;
        if (!is_loss(routing)) return;
        for (int b = 1; b < most; b += 2) ranks[b * wires + 2] = nsc::ignored;
        for (int b = 0; b < most; ++b)
            for (int64_t i = 0; i < numbers; ++i) {
                const int64_t row = i / wires, column = i % wires, first = (b + column) % wires;
                const real any = real(0.5 + number(b * numbers + i) / 4);  // in 0 ... 1
                const bool is_interval = form_of(routing) == nsc::of_intervals;
                real &at = target[b * numbers + i];
                at = !is_interval || row > 1 ? any : real(row ? wires - 1 - first % 2 : first / 2);
                const bool is_weight = row == (is_interval ? 2 : wires);
                if (is_weight && column == b % wires) at = 0;  // an item that does not count
            }
    }
    template <class P>
    nsc::Call<P, real> call(const P &plan) const {
        const bool of_reals = is_loss(routing) && form_of(routing) != nsc::of_ranks;
        const void *of = has_columns(routing) ? static_cast<const void *>(payload)
                         : has_ranks(routing) ? row_ranks
                         : of_reals           ? static_cast<const void *>(target)
                                              : ranks;
        const int64_t stride = has_columns(routing) ? wires * columns
                               : of_reals           ? numbers
                                                    : columns;
        return {plan, routing, batch, x, steepness, 1, of, stride, columns};
    }
    const int64_t *ranks_of(int64_t b) const {
        return has_ranks(routing) ? row_ranks + b * columns : ranks + b * wires;
    }
    void expect_forward(const real *values, const real *routed) {
        for (int64_t b = 0; b < batch; ++b) {
            take(b);
            const Plain<Network> plain(one, steep);
            for (int wire = 0; wire < wires; ++wire)
                EXPECT_NEAR(values[b * wires + wire], plain.values[wire], nearly<real>);
            const Definition<Network> of = definition(b);
            for (int i = 0; i < of.count(); ++i) {
                const double expected = of.of(plain.P, i);
                EXPECT_NEAR(routed[b * of.count() + i], expected,
                            9 * nearly<real> * (1 + fabs(expected)));
            }
        }
    }
    void expect_backward(const real *x_grad, const real *steepness_grad, const real *payload_grad,
                         const real *losses) {
        for (int64_t b = 0; b < batch; ++b) {
            take(b);
            const Definition<Network> of = definition(b);
            const auto total = [&] {
                const Plain<Network> plain(one, steep);
                double sum = 0;
                for (int wire = 0; wire < wires; ++wire)
                    sum += values_grad[b * wires + wire] * plain.values[wire];
                for (int i = 0; i < of.count(); ++i)
                    sum += is_loss(routing) ? of.of(plain.P, i)
                                            : routed_grad[b * of.count() + i] * of.of(plain.P, i);
                return sum;
            };
            const auto expect_slope = [&](real found, double &at) {
                const double slope = derivative(at, total);
                EXPECT_NEAR(found, slope, nearly_slope<real> * (1 + fabs(slope)));
            };
            for (int wire = 0; wire < wires; ++wire)
                expect_slope(x_grad[b * wires + wire], one[wire]);
            if (steepness_grad) expect_slope(steepness_grad[b], steep);
            const bool of_shares = has_shares(routing);
            for (int i = 0; payload_grad && !of_shares && i < wires * columns; ++i)
                expect_slope(payload_grad[b * wires * columns + i], one_payload[i]);
            for (int i = 0; payload_grad && of_shares && i < wires * wires; ++i)
                expect_slope(payload_grad[b * numbers + i], one_target[i]);
            for (int i = wires * wires; payload_grad && of_shares && i < numbers; ++i)
                EXPECT(payload_grad[b * numbers + i] == 0);
            const Plain<Network> plain(one, steep);
            if (losses)
                EXPECT_NEAR(losses[b], of.of(plain.P, 0), 9 * nearly<real> * of.of(plain.P, 0));
        }
    }
    // Makes one sample's operands those of sample b.
    void take(int64_t b) {
        for (int wire = 0; wire < wires; ++wire) one[wire] = x[b * wires + wire];
        for (int i = 0; i < wires * columns; ++i) one_payload[i] = payload[b * wires * columns + i];
        for (int i = 0; i < numbers; ++i) one_target[i] = target[b * numbers + i];
        steep = steepness[b];
    }
    Definition<Network> definition(int64_t b) const {
        return {routing, columns, one_payload, ranks_of(b), one_target};
    }
    // Of a target of reals; of shares, the most.
    static constexpr int64_t most_numbers = (wires + 1) * wires;
    nsc::Routing routing;
    int64_t batch;
    int columns;
    bool of_values;
    int64_t numbers =
        is_loss(routing) && form_of(routing) == nsc::of_intervals ? 3 * wires : most_numbers;
    real x[most * wires], steepness[most], values_grad[most * wires];
    real payload[most * wires * most_columns], routed_grad[most * wires * most_columns];
    int64_t ranks[most * wires], row_ranks[most * most_columns];
    real target[most * most_numbers];
    double one[wires], one_payload[wires * most_columns], one_target[most_numbers], steep;
};

// A pool that runs a range in pieces, the last one first.
inline void last_first(int64_t begin, int64_t end, int64_t, nsc::Body body, void *context) {
    for (int64_t at = end; at > begin; at -= 2) body(at - 2 > begin ? at - 2 : begin, at, context);
}
