// Operands of a call, and what it gives by the definitions, in double.
#pragma once

#include "networks.h"

#include <nsc/relaxed/call.h>

// The result of a routing for one sample, from P and a payload of `columns` columns, or ranks.
template <class Network>
struct Definition {
    static constexpr int wires = Network::wires;
    nsc::Routing routing;
    int columns;
    const double *payload;
    const int64_t *ranks;

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
    double loss(const double (*P)[wires]) const {
        double sum = 0;
        for (int column = 0; column < wires; ++column)
            for (int row = 0; row < wires; ++row) {
                const bool is_true = ranks[column] == row;
                if (routing == nsc::cross_entropy_routing)
                    sum -= is_true ? cut_log(P[row][column]) / wires : 0;
                else
                    sum -= cut_log(is_true ? P[row][column] : 1 - P[row][column]) / wires / wires;
            }
        return sum;
    }
};

// A call of a few samples. Gradients are those of the sum of all results times numbers, of a loss
// itself.
template <class Network, class real>
struct Operands {
    static constexpr int wires = Network::wires, most = 10, most_columns = 40;
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
    }
    template <class P>
    nsc::Call<P, real> call(const P &plan) const {
        const void *of = has_columns(routing) ? static_cast<const void *>(payload)
                         : has_ranks(routing) ? row_ranks
                                              : ranks;
        const int64_t stride = has_columns(routing) ? wires * columns : columns;
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
            for (int i = 0; payload_grad && i < wires * columns; ++i)
                expect_slope(payload_grad[b * wires * columns + i], one_payload[i]);
            const Plain<Network> plain(one, steep);
            if (losses)
                EXPECT_NEAR(losses[b], of.of(plain.P, 0), 9 * nearly<real> * of.of(plain.P, 0));
        }
    }
    // Makes one sample's operands those of sample b.
    void take(int64_t b) {
        for (int wire = 0; wire < wires; ++wire) one[wire] = x[b * wires + wire];
        for (int i = 0; i < wires * columns; ++i) one_payload[i] = payload[b * wires * columns + i];
        steep = steepness[b];
    }
    Definition<Network> definition(int64_t b) const {
        return {routing, columns, one_payload, ranks_of(b)};
    }
    nsc::Routing routing;
    int64_t batch;
    int columns;
    bool of_values;
    real x[most * wires], steepness[most], values_grad[most * wires];
    real payload[most * wires * most_columns], routed_grad[most * wires * most_columns];
    int64_t ranks[most * wires], row_ranks[most * most_columns];
    double one[wires], one_payload[wires * most_columns], steep;
};

// A pool that runs a range in pieces, the last one first.
inline void last_first(int64_t begin, int64_t end, int64_t, nsc::Body body, void *context) {
    for (int64_t at = end; at > begin; at -= 2) body(at - 2 > begin ? at - 2 : begin, at, context);
}
