// Deployed operators: what they ask of tensors, which kernel they find, and how they are registered
// once.
#include "expect.h"

#include <nsc/deploy/exact.h>
#include <nsc/deploy/filters.h>
#include <nsc/deploy/kernels.h>
#include <nsc/deploy/operators.h>
#include <nsc/deploy/relaxed.h>
#include <nsc/deploy/tensors.h>

using namespace nsc::deploy;
using nsc::Status;

// Whole numbers from 0 on.
static Tensor counted(const Shape &shape, ScalarType type = ScalarType::Float) {
    const Tensor x = torch::stable::empty(shape, ScalarType::Double);
    for (int64_t k = 0; k < x.numel(); ++k) static_cast<double *>(address(x))[k] = double(k);
    return torch::stable::to(x, type);
}

template <class T>
static T value_at(const Tensor &x, int64_t k) {
    return static_cast<const T *>(address(x))[k];
}

// What a call is refused for; "" if it is not.
template <class Run>
static std::string refusal(Run run) {
    try {
        run();
    } catch (const std::runtime_error &error) {
        return error.what();
    }
    return "";
}

static bool has(const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
}

TEST(shapes_read_as_in_python) {
    EXPECT(text_of({}) == "()");
    EXPECT(text_of({3}) == "(3,)");
    EXPECT(text_of({2, 0}) == "(2, 0)");
    EXPECT(product({2, 3, 5}, 1, 3) == 15);
    EXPECT(product({2, 3}, 2, 2) == 1);
}

TEST(a_tensor_of_another_shape_or_type_is_refused) {
    const Tensor x = counted({2, 3});
    EXPECT(refusal([&] { check_tensor("op", "x", x, {2, 3}, ScalarType::Float); }) == "");
    EXPECT(refusal([&] { check_tensor("op", "x", x, {3, 2}, ScalarType::Float); }) ==
           "op: x must be float32 (3, 2), got float32 (2, 3)");
    EXPECT(refusal([&] { check_tensor("op", "x", x, {2, 3}, ScalarType::Long); }) ==
           "op: x must be int64 (2, 3), got float32 (2, 3)");
    EXPECT(refusal([&] { check_tensor("op", "x", {}, {1}, ScalarType::BFloat16); }) ==
           "op: x must be bfloat16 (1,), got none");
}

TEST(samples_may_share_dense_columns) {
    const Tensor x = counted({4, 3, 2});
    EXPECT(samples_are_dense(x));
    EXPECT(samples_are_dense(torch::stable::narrow(const_cast<Tensor &>(x), 0, 1, 2)));
    EXPECT(!samples_are_dense(moved(x, 1, 2)));
    EXPECT(value_at<float>(dense_of(moved(x, 1, 2)), 1) == 2);
}

TEST(windows_are_folded_as_python_folds_them) {
    const Folded flat({3, 5}, {0, -1}), column({1, 9, 1, 1}, {0, 4, 0, 0}),
        solid({2, 3, 4}, {0, 0, 0}), behind({3, 5, 1}, {0, 0, 0});
    EXPECT(flat.behind == 0 && !flat.has_planes && flat.before[1] == 1 && flat.before[2] == 1);
    EXPECT(column.behind == 2 && column.is_column && column.before[0] == 0 &&
           column.before[1] == 8);
    EXPECT(solid.behind == 0 && solid.has_planes && solid.before[0] == 1 && solid.before[2] == 2);
    EXPECT(behind.behind == 1 && !behind.is_column && behind.before[1] == 1 &&
           behind.before[2] == 2);
}

TEST(what_stands_outside_has_the_bits_of_its_type) {
    EXPECT(value_at<float>(outside_of(counted({1}), 0.1, 7), 0) == 0.1f);
    EXPECT(value_at<uint16_t>(outside_of(counted({1}, ScalarType::BFloat16), 1.5, 7), 0) == 0x3fc0);
    const Tensor whole = outside_of(counted({1}, ScalarType::Long), 0.1, (int64_t(1) << 62) + 1);
    EXPECT(value_at<int64_t>(whole, 0) == (int64_t(1) << 62) + 1);
    EXPECT(value_at<uint8_t>(outside_of(counted({1}, ScalarType::Byte), 0.1, 255), 0) == 255);
}

// A kernel of two wires whose values are x times the steepness, and whose status is that of a
// sample.
static int32_t scaled(int32_t routing, int64_t batch, const float *x, const float *steepness,
                      int64_t stride, const void *, int64_t, int64_t, float *values, float *routed,
                      void *) {
    for (int64_t k = 0; k < 2 * batch; ++k) values[k] = x[k] * steepness[k / 2 * stride];
    if ((routing == nsc::none) != !routed) return nsc::out_of_memory;
    return batch && steepness[0] < 0 ? nsc::bad_steepness : nsc::ok;
}
static int32_t prepared = 0;
static int32_t prepare() { return ++prepared, nsc::ok; }
static Status reversed(const void *x, const Lying &lying, void *values, void *, int32_t, bool,
                       void *) {
    for (int64_t s = 0; s < lying.samples; ++s)
        for (int64_t w = 0; w < 2; ++w)
            static_cast<float *>(values)[s * 2 + w] =
                static_cast<const float *>(x)[s * lying.sample + (1 - w) * lying.wire];
    return nsc::ok;
}
static const ExactSort sorts[13] = {nullptr, reversed};
static const int64_t places[] = {1, 0};
static Kernel two = {"two-1",           "two", prepare, 2,      0, false, places,
                     {scaled, nullptr}, {},    sorts,   nullptr};
static Kernel last = {"last-1",          "last", prepare, 2,      1, false, places,
                      {scaled, nullptr}, {},     nullptr, nullptr};
static Filter middle = {"1x3x3:4", "middle", 1, 3, 3, nullptr, nullptr};
static const Deployed deployed[] = {Deployed(two), Deployed(last), Deployed(middle)};

TEST(kernels_are_found_by_their_names) {
    EXPECT(&find_kernel("two-1") == &two && &find_kernel("last-1") == &last && prepared == 2);
    EXPECT(&find_filter("1x3x3:4") == &middle && &find_filter("1x3x3:4@some") == &middle);
    EXPECT(has(refusal([] { find_kernel("two"); }), "kernel two is not known in this process"));
    EXPECT(has(refusal([] { find_kernel("two"); }), "loaded: last-1, two-1"));
    EXPECT(has(refusal([] { find_filter("1x3x3:5@some"); }), "filter 1x3x3:5 is not known"));
}

TEST(a_second_library_joins_the_list_of_the_first) {
    Listed *const first = listed;
    listed = nullptr;
    EXPECT(find_list() == first);
    listed = first;
}

TEST(torch_calls_the_operators) {
    using torch::stable::detail::from;
    std::array<StableIValue, 4> stack = {from(counted({3, 2})), from(int64_t(1)), from(false),
                                         from(std::string("two-1"))};
    call_torch("nsc::exact_values", "", stack);
    const Tensor values = torch::stable::detail::to<Tensor>(stack[0]);
    EXPECT(value_at<float>(values, 0) == 1 && value_at<float>(values, 1) == 0 &&
           value_at<float>(values, 5) == 4);
}

TEST(a_relaxed_call_takes_its_operands_as_they_lie) {
    const Tensor x = counted({3, 2}), one = counted({2});
    const Tensor shared = torch::stable::narrow(const_cast<Tensor &>(one), 0, 1, 1);
    const auto [values, routed] = relax(x, counted({3}), {}, "none", "two-1");
    EXPECT(value_at<float>(values, 1) == 0 && value_at<float>(values, 3) == 3 &&
           value_at<float>(values, 5) == 10);
    EXPECT(shape_of(routed) == Shape({3, 0}));
    EXPECT(std::get<1>(relax(x, counted({3}), {}, "permutation", "two-1")).numel() == 12);
    EXPECT(value_at<float>(
               std::get<0>(relax(moved(counted({2, 3}), 0, 1), counted({3}), {}, "none", "two-1")),
               3) == 4);
    const auto refused = [&](const char *routing, const char *spec) {
        return refusal([&] { relax(x, counted({3}), {}, routing, spec); });
    };
    EXPECT(
        has(refused("some", "two-1"), "two: no routing 'some'; known: none, permutation, route"));
    EXPECT(has(refused("permutation", "last-1"),
               "last: no routing 'permutation'; known: none, route, rows"));
    EXPECT(has(refused("route", "two-1"), "payload must be float32 (3, 2, 0), got none"));
    const Tensor wide = counted({3, 2}, ScalarType::Double);
    EXPECT(refusal([&] { relax(wide, counted({3}), {}, "none", "two-1"); }) ==
           "two: no kernel for float64, only for float32");
    const Tensor wrong = counted({1});
    static_cast<float *>(address(wrong))[0] = -1;
    EXPECT(refusal([&] { relax(counted({1, 2}), wrong, {}, "none", "two-1"); }) ==
           "two.none: steepness must be finite and above 0 in every sample");
}

TEST(torch_sorts_what_no_kernel_does) {
    const auto [values, indices] = exact_sort(counted({3, 2}), -1, false, true, "last-1");
    EXPECT(shape_of(values) == Shape({3, 1}) && value_at<float>(values, 2) == 5);
    EXPECT(indices.scalar_type() == ScalarType::Int && value_at<int32_t>(indices, 0) == 1);
    const Tensor whole = exact_values(counted({2, 3}, ScalarType::Short), 0, true, "two-1");
    EXPECT(value_at<int16_t>(whole, 0) == 3 && value_at<int16_t>(whole, 3) == 0);
    EXPECT(has(refusal([] { exact_values(counted({3}), 0, false, "two-1"); }),
               "two.exact_values: x must have 2 values along dim 0, got shape (3,)"));
    EXPECT(has(refusal([] { exact_values(counted({2}), 1, false, "two-1"); }),
               "dim must be in -1 ... 0, got 1"));
}
