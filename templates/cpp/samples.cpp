// --------------------------------------------------------------------------- a lane is a sample

// Between `count` samples of `wires` values each and rows of one value of each.
template <class real>
void load_samples(const real *from, int64_t count, Vec<real> *block) {
    for (int64_t wire = 0; wire < wires; wire += lanes<real>) {
        const int64_t width = wires - wire < lanes<real> ? wires - wire : lanes<real>;
        Vec<real> tile[lanes<real>];
        for (int64_t k = 0; k < lanes<real>; ++k) tile[k] = k < count ? load(from + k * wires + wire, width) : Vec<real>{};
        transpose<real>(tile);
        for (int64_t k = 0; k < width; ++k) block[wire + k] = tile[k];
    }
}

template <class real>
void store_samples(real *to, int64_t count, const Vec<real> *block) {
    for (int64_t wire = 0; wire < wires; wire += lanes<real>) {
        const int64_t width = wires - wire < lanes<real> ? wires - wire : lanes<real>;
        Vec<real> tile[lanes<real>];
        for (int64_t k = 0; k < lanes<real>; ++k) tile[k] = k < width ? block[wire + k] : Vec<real>{};
        transpose<real>(tile);
        for (int64_t k = 0; k < count; ++k) store(to + k * wires + wire, tile[k], width);
    }
}

// Calls run(first, count) for pieces of a shape's comparators that do not depend on each other.
template <class Run>
inline void in_pieces(Shape shape, bool backwards, Run run) {
    const Pair *pairs = shape_pairs + shape.first_pair;
    uint32_t busy = 0;
    int32_t first = 0, count = 0;
    for (int32_t i = 0; i < shape.comparators; ++i) {
        const int32_t c = backwards ? shape.comparators - 1 - i : i;
        const uint32_t both = uint32_t(1) << pairs[c].a | uint32_t(1) << pairs[c].b;
        if (busy & both || count == at_a_time) {
            run(backwards ? first - count + 1 : first, count);
            busy = 0, count = 0;
        }
        if (!count) first = c;
        busy |= both, ++count;
    }
    if (count) run(backwards ? first - count + 1 : first, count);
}

template <class real>
inline Ends<real> ends_of(Codelet codelet, int32_t first, int32_t count, Vec<real> *block) {
    const Pair *pairs = shape_pairs + shapes[codelet.shape].first_pair + first;
    const uint16_t *spread = spreads + codelet.spread;
    Ends<real> at;
    for (int32_t i = 0; i < count; ++i) {
        at.lo[i] = block + codelet.base + spread[pairs[i].a], at.hi[i] = block + codelet.base + spread[pairs[i].b];
        if (is_turned(codelet, first + i)) exchange(at.lo[i], at.hi[i]);
    }
    return at;
}

// Runs a codelet on a block in place. Its weights go to w, which begins at its first slot, unless w is null.
template <class real>
inline void compare_codelet(Codelet codelet, Vec<real> *block, Vec<real> steepness, Weights<Vec<real>> w) {
    in_pieces(shapes[codelet.shape], false, [&](int32_t first, int32_t count) {
        Vec<real> unwanted[arrays * at_a_time];
        compare<real>(count, ends_of<real>(codelet, first, count, block), steepness, w.gap ? w.from(first) : weights_at(unwanted, at_a_time));
    });
}

template <class real>
inline void compare_codelet_backward(Codelet codelet, Vec<real> *grad, const Vec<real> *weight_grad, Vec<real> steepness,
                                     Weights<Vec<real>> w, Vec<real> *steepness_parts) {
    in_pieces(shapes[codelet.shape], true, [&](int32_t first, int32_t count) {
        Vec<real> steepness_grad[at_a_time];
        compare_backward<real>(count, ends_of<real>(codelet, first, count, grad), weight_grad ? weight_grad + first : nullptr,
                               steepness, w.from(first), steepness_grad);
        for (int32_t i = count - 1; i >= 0; --i) steepness_parts[(first + i) % slot_alignment] += steepness_grad[i];
    });
}

// Between the slots of `count` samples, `stride` apart, and rows of one slot of each. Weights begin at
// multiples of slot_alignment, which is a multiple of lanes.
template <class real>
inline void gather_slots(const real *from, int64_t stride, int64_t count, int64_t slot_count, Vec<real> *rows) {
    for (int64_t s = 0; s < slot_count; s += lanes<real>) {
        Vec<real> *tile = rows + s;
        for (int64_t k = 0; k < lanes<real>; ++k) tile[k] = k < count ? load(from + k * stride + s) : Vec<real>{};
        transpose<real>(tile);
    }
}

template <class real>
inline void scatter_slots(real *to, int64_t stride, int64_t count, int64_t slot_count, Vec<real> *rows) {
    for (int64_t s = 0; s < slot_count; s += lanes<real>) {
        Vec<real> *tile = rows + s;
        transpose<real>(tile);
        for (int64_t k = 0; k < count; ++k) store(to + k * stride + s, tile[k]);
    }
}
