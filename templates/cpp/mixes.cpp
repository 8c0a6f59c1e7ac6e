// --------------------------------------------------------------------------------- routing a block

// The weights of comparator c, the same in every lane. Both arrays are reached through one address, which leaves a
// register for others.
template <class real>
NSC_INLINE inline Mix<Vec<real>> mix_at(const real *keep, int32_t c) {
    return {broadcast(keep[c]), broadcast(keep[c + slots])};
}

// Runs the listed codelets, in order, on a block; `reversed` runs their comparators backwards. With
// `kept`, stores there what each of them loads, and returns its end.
template <class real>
Vec<real> *route_forward(Vec<real> *block, const int32_t *list, int64_t count, const real *keep, bool reversed,
                         Vec<real> *kept) {
    for (int64_t i = 0; i < count; ++i) {
        const Codelet codelet = codelets[list[i]];
        const real *weights = keep + codelet.slot;
        const auto rows = rows_of(codelet, block);
        const auto step = [weights](int32_t c, Vec<real> &a, Vec<real> &b, auto... half) NSC_INLINE { mix(a, b, mix_at(weights, c), half...); };
        if (!kept) {
            run_shape(codelet.shape, reversed, rows, step);
            continue;
        }
        run_shape(codelet.shape, reversed, Keeping<Vec<real>, 1, const uint16_t *>{rows, kept}, step);
        kept += shapes[codelet.shape].wires;
    }
    return kept;
}

// Takes the gradient of a routed block back to the payload, in place in `grad`, and adds the gradients
// of the weights to `weight_grad`. `kept` is the end that route_forward returned.
template <class real>
void route_backward(Vec<real> *grad, const int32_t *list, int64_t count, Vec<real> *kept, Weights<real> w,
                    bool reversed, real *weight_grad) {
    while (count > 0) {
        const Codelet codelet = codelets[list[--count]];
        const Shape shape = shapes[codelet.shape];
        const real *forward = w.forward.keep + codelet.slot, *backward = w.backward.keep + codelet.slot;
        // Differences of the payload in front of each comparator, then times those of the gradient behind it.
        Vec<real> products[longest_codelet], *product = products;
        kept -= shape.wires;
        run_shape(codelet.shape, reversed, Kept<Vec<real>, 1>{kept}, [=](int32_t c, Vec<real> &a, Vec<real> &b, auto... half) NSC_INLINE {
            product[c] = difference(a, b, half...);
            mix(a, b, mix_at(forward, c), half...);
        });
        run_shape(codelet.shape, !reversed, rows_of(codelet, grad), [=](int32_t c, Vec<real> &a, Vec<real> &b, auto... half) NSC_INLINE {
            product[c] *= difference(a, b, half...);
            mix(a, b, mix_at(backward, c), half...);
        });
        for (int32_t c = 0; c < shape.comparators; c += lanes<real>) {
            for (int32_t rest = shape.comparators; rest < c + lanes<real>; ++rest) product[rest] = Vec<real>{};
            real *to = weight_grad + codelet.slot + c;
            store(to, load(to) + row_sums<real>(product + c));
        }
    }
}
