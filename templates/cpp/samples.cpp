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

// Runs a codelet on a block in place. What it keeps begins at its first slot.
template <class real, bool careful, class Kept>
inline void compare_codelet(int64_t codelet, Vec<real> *block, Vec<real> steepness, Kept kept) {
    for (int32_t p = first_piece[codelet]; p < first_piece[codelet + 1]; ++p) {
        const Piece piece = codelet_pieces[p];
        compare<real, careful, 1>(piece.count, in_codelets + piece.first, block, &steepness, kept);
    }
}

// The same backwards on gradients, given those of its weights.
template <class real>
inline void compare_codelet_backward(int64_t codelet, Vec<real> *grad, const Vec<real> *weight_grad, Vec<real> steepness,
                                     Weights<Vec<real>> w, Vec<real> *steepness_parts) {
    for (int32_t p = first_piece[codelet + 1] - 1; p >= first_piece[codelet]; --p) {
        const Piece piece = codelet_pieces[p];
        const Comparator *at = in_codelets + piece.first;
        Vec<real> steepness_grad[at_a_time];
        compare_backward<real>(piece.count, at, grad, weight_grad, steepness, w, steepness_parts ? steepness_grad : nullptr);
        for (int32_t i = piece.count - 1; steepness_parts && i >= 0; --i) steepness_parts[at[i].slot % slot_alignment] += steepness_grad[i];
    }
}

// The same for gradients of the values alone, given the derivatives.
template <class real>
inline void derive_backward(Vec<real> *grad, Derivatives<Vec<real>> d, Vec<real> *steepness_parts) {
    for (int64_t c = codelet_count - 1; c >= 0; --c) {
        const Codelet codelet = codelets[c];
        const Vec<real> *shares = d.share + codelet.slot;
        if (!steepness_parts) {
            run_shape_backwards(codelet.shape, rows_of(codelet, grad), [shares](int32_t k, Vec<real> &a, Vec<real> &b, auto...) NSC_INLINE {
                move_gradients<real>(a, b, shares[k]);
            });
            continue;
        }
        for (int32_t k = shapes[codelet.shape].comparators - 1; k >= 0; --k) {
            const Comparator at = in_codelets[codelet_pieces[first_piece[c]].first + k];
            steepness_parts[k % slot_alignment] += (grad[at.hi] - grad[at.lo]) * d.steepness[codelet.slot + k];
            move_gradients<real>(grad[at.lo], grad[at.hi], shares[k]);
        }
    }
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
