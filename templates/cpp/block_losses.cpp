// The rest of each column's large entry: the sum of those that are not large, in a fixed order.
template <class real>
Vec<real> rests_of_columns(const Vec<real> *block) {
    Vec<real> sums[4] = {};
    for (int64_t row = 0; row < wires; ++row) sums[row % 4] += block[row] > real(0.75) * unit<real> ? Vec<real>{} : block[row];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class real>
inline Probability<real> probability(real p, real rest_of_column) {
    return {p, is_large(p) ? rest_of_column : unit<real> - p};
}

// The loss of the columns first ... first + width - 1 of P, which are in the block.
template <class real>
double block_loss(const Vec<real> *block, Routing routing, const int64_t *target, int64_t first, int64_t width) {
    double sum = 0;
    if (routing == cross_entropy) {
        bool large = false;
        for (int64_t k = 0; k < width; ++k) large |= is_large<real>(block[target[first + k]][k]);
        const Vec<real> rests = large ? rests_of_columns<real>(block) : Vec<real>{};
        for (int64_t k = 0; k < width; ++k) sum -= log_of<real>(probability<real>(block[target[first + k]][k], rests[k]));
        return sum / wires;
    }
    const Vec<real> rests = rests_of_columns<real>(block);
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            sum -= log_of<real>(target[first + k] == row ? p : complement(p));
        }
    return sum / wires / wires;
}

// The gradient of that loss.
template <class real>
void block_loss_gradient(const Vec<real> *block, Vec<real> *grad, Routing routing, const int64_t *target,
                         int64_t first, int64_t width) {
    constexpr real share = real(1) / wires;
    memset(grad, 0, sizeof(Vec<real>) * wires);
    if (routing == cross_entropy) {
        for (int64_t k = 0; k < width; ++k) {
            const int64_t row = target[first + k];
            grad[row][k] = -share * slope_of_log<real>(block[row][k]);
        }
        return;
    }
    const Vec<real> rests = rests_of_columns<real>(block);
    for (int64_t row = 0; row < wires; ++row)
        for (int64_t k = 0; k < width; ++k) {
            const Probability<real> p = probability<real>(block[row][k], rests[k]);
            grad[row][k] = share * share * (target[first + k] == row ? -slope_of_log(p.p) : slope_of_log(p.rest));
        }
}
