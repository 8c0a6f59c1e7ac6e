// bitonic_4: differentiable sorting of 4 values.
//
// Made by:    nsc compile bitonic --n 4
// nsc:        0
// Network:    4 wires, 6 comparators, 3 layers, sha256 8c5b7ce991f1137768e4538fd169889811e3286f41185fc788cbf97f84f8059a
// Proof:      sorts every input, by exhaustion: untangled to standard form; all 2^4 0-1 inputs come out sorted
// Relaxation: logistic, ART λ = 0.25
//
// This is the network and its relaxation. What runs them, and is the same for all, is nsc's library of headers.

#include <nsc/relaxed/kernel.h>

namespace {

// See nsc/relaxed/network.h.
struct Network {
    static constexpr int64_t wires = 4;
    static constexpr int64_t comparators = 6;
    static constexpr int64_t layers = 3;
    static constexpr int64_t merge_layers = 0;
    static constexpr int64_t slots = 16;
    static constexpr int64_t longest_codelet = 16;
    static constexpr int64_t codelet_count = 1;
    static constexpr int64_t butterfly_count = 3;

    static constexpr nsc::Codelet codelets[] = {
        {0, 0, 0, 0, 1}, {},
    };

    static constexpr uint16_t spreads[] = {
        0, 1, 2, 3, {},
    };

    static constexpr nsc::Shape shapes[] = {
        {4, 0, 6, 0}, {},
    };

    static constexpr nsc::Pair pairs[] = {
        {0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1}, {2, 3}, {},
    };

    static constexpr nsc::Flips flips[] = {
        {0, 0}, {2, 0}, {},
    };

    static constexpr nsc::ShapeButterfly shape_butterflies[] = {
        {nsc::cross, {0, 1, 2, 3}}, {nsc::single, {0, 1, 0, 0}}, {nsc::single, {2, 3, 0, 0}}, {},
    };
};

// logistic, ART λ = 0.25. See nsc/relaxed/relaxations.h.
using Relaxation = nsc::Relaxation<nsc::logistic, nsc::Root<4>, false>;

nsc::Plan<Network, Relaxation> plan;

}  // namespace

// What this kernel is. The runtime compares it with the manifest, so that a changed manifest cannot make a call
// misread its memory.
NSC_API const char *nsc_facts() { return "{\"abi\": 11, \"kind\": \"relaxed\", \"name\": \"bitonic_4\", \"library\": \"[library]\", \"network\": \"8c5b7ce991f1137768e4538fd169889811e3286f41185fc788cbf97f84f8059a\", \"proof\": \"proved\", \"targets\": [\"cpu\"], \"n\": 4, \"size\": 6, \"depth\": 3, \"selection\": null, \"outputs\": null, \"sigmoid\": \"logistic\", \"art_lambda\": 0.25, \"error_free\": false, \"reals\": {\"float32\": [\"float32\", \"bfloat16\", \"float16\"]}, \"cuda\": {}, \"network.json\": \"e36af305ca221a49831e525e84b2d0b946b7d99fe6e21128b5a0195e5e503e65\", \"proof.json\": \"afe7ae5c6f9874ffc9b7df9879af9883583a7f01d3ad71f578b932c62b4df20e\", \"tables.json\": \"f167ed4e13d7136cdedf7d017cb01819d59662ef3c363c9b5ccbfacd3d27b881\", \"engine_f32.cpp\": \"ffe44f290db330e59efd46da377ad54a5f97b157e46a25a7922cebe4cc791073\"}"; }

NSC_KERNEL(plan)
NSC_KERNEL_OF(plan, float, f32)  // float32
