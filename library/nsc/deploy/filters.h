// Filtering of a deployed program: nsc::filter, on processors.
#pragma once

#include <nsc/deploy/exact.h>
#include <nsc/windows/kernel.h>

#pragma GCC visibility push(hidden)
namespace nsc::deploy {

constexpr const char *mode_names[] = {"reflect", "nearest", "mirror", "constant", "wrap"};

template <class Window, class Element>
Status filter_as(const void *x, const int64_t *lengths, const int64_t *strides,
                 const int64_t *before, void *values, int32_t mode, const void *outside,
                 void *pool) {
    using Key = typename Element::Key;
    const Images<Key> images =
        images_of<Key>(Window::channels, x, lengths, strides, before, mode, outside, 0, 1, nullptr);
    return filter_all<Window, Values<Element>>(images, static_cast<Key *>(values),
                                               reinterpret_cast<ParallelFor>(pool));
}

// The function of a window for an element, if it is one of the compiled ones.
template <class Window, class Element, class... Compiled>
constexpr FilterFunction filter_for() {
    if constexpr ((std::is_same_v<Element, Compiled> || ...)) return filter_as<Window, Element>;
    return nullptr;
}

template <class Window, class... Compiled>
constexpr FilterFunction filters[] = {
#define NSC_FILTER_FOR(type, element) filter_for<Window, element, Compiled...>(),
    NSC_ELEMENTS(NSC_FILTER_FOR)
#undef NSC_FILTER_FOR
};

// How images are filtered.
struct FilterCall {
    const Filter &filter;
    FilterFunction run;
    int32_t mode;
    Tensor outside;  // one value
};

// A window as a kernel has it, as nsc.contract.folding says: which sizes are its planes, rows
// and columns, and how many axes lie behind them.
struct Folded {
    Folded(const Shape &sizes, const Shape &origin) {
        const int64_t count = int64_t(sizes.size());
        int64_t first = 0, last = count;
        while (first < count - 1 && sizes[first] == 1) ++first;
        while (last > first + 1 && sizes[last - 1] == 1) --last;
        behind = count - last;
        is_column = behind > 0 && last - first == 1;
        for (int64_t axis = last - 1, place = 2 - is_column; axis >= first; --axis, --place) {
            has_planes = place == 0;
            before[place] = sizes[axis] / 2 + origin[axis];
        }
    }
    int64_t behind, before[3] = {};
    bool is_column, has_planes = false;
};

// Filters dense images.
inline Tensor filtered(const FilterCall &call, const Tensor &x, const Shape &sizes,
                       const Shape &origin) {
    const Folded folded(sizes, origin);
    const int64_t axes = x.dim();
    if (folded.behind && !folded.is_column) {
        // Values behind the window's axes are filtered each for itself: they become images.
        Tensor images = x;
        for (int64_t k = 0; k < folded.behind; ++k) images = moved(images, axes - 1, 0);
        const auto inner = [&](const Shape &all) {
            return Shape(all.begin(), all.end() - folded.behind);
        };
        Tensor back = filtered(call, dense_of(images), inner(sizes), inner(origin));
        for (int64_t k = 0; k < folded.behind; ++k) back = moved(back, 0, axes - 1);
        return dense_of(back);
    }
    const Shape shape = shape_of(x);
    int64_t lengths[4] = {1, 1, 1, 1};
    int64_t place = 3;
    if (folded.is_column) lengths[place--] = product(shape, axes - folded.behind, axes);
    for (int64_t axis = axes - folded.behind - 1; axis >= 0; --axis) {
        lengths[place] *= shape[axis];
        const int64_t last = folded.has_planes ? 1 : 2;
        place = place > last ? place - 1 : 0;
    }
    const int64_t strides[3] = {lengths[1] * lengths[2] * lengths[3], lengths[2] * lengths[3],
                                lengths[3]};
    const Tensor values = new_tensor(x, shape);
    if (values.numel() && call.run(address(x), lengths, strides, folded.before, address(values),
                                   call.mode, address(call.outside), torch_threads()) != ok)
        refuse(std::string(call.filter.name) + ": not enough memory for a strip of an image");
    return values;
}

// The value outside of images of a type: a float's or another's.
inline Tensor outside_of(const Tensor &x, double cval, int64_t whole_cval) {
    const ScalarType type = x.scalar_type();
    const bool is_float = type == ScalarType::Double || type == ScalarType::Float ||
                          type == ScalarType::BFloat16 || type == ScalarType::Half;
    const Tensor wide = new_tensor(x, {1}, is_float ? ScalarType::Double : ScalarType::Long);
    if (is_float)
        *static_cast<double *>(address(wide)) = cval;
    else
        *static_cast<int64_t *>(address(wide)) = whole_cval;
    return torch::stable::to(wide, type);
}

inline int32_t mode_of(const Filter &filter, const std::string &name) {
    std::string known;
    int32_t number = 0;
    for (const char *each : mode_names) {
        if (name == each) return number;
        known += (number++ ? ", " : "") + std::string(each);
    }
    refuse(std::string(filter.name) + ": mode must be one of " + known + ", got '" + name + "'");
}

inline Tensor filter(Tensor x, std::string key, std::string mode, double cval, int64_t whole_cval,
                     std::vector<int64_t> origin) {
    const Filter &found = find_filter(key);
    const FilterFunction run = found.functions[element_of(found.name, x.scalar_type())];
    if (!run)
        refuse(std::string(found.name) + ": it is not deployed for " + name_of(x.scalar_type()));
    Shape sizes = {found.rows, found.columns};
    if (found.planes > 1) sizes.insert(sizes.begin(), found.planes);
    const int64_t axes = int64_t(sizes.size());
    if (x.dim() < axes || int64_t(origin.size()) != axes)
        refuse(std::string(found.name) + ": x must have " + std::to_string(axes) +
               " axes or more, and origin a number for each of them, got shape " +
               text_of(shape_of(x)));
    const FilterCall call = {found, run, mode_of(found, mode), outside_of(x, cval, whole_cval)};
    const int64_t last = x.dim() - 1, channel = last - axes;
    // As in channels_last, where results lie as x does.
    if (channel >= 0 && !x.is_contiguous()) {
        const Tensor behind = moved(x, channel, last);
        if (behind.is_contiguous()) {
            sizes.push_back(1), origin.push_back(0);
            return moved(filtered(call, behind, sizes, origin), last, channel);
        }
    }
    return filtered(call, dense_of(x), sizes, origin);
}

}  // namespace nsc::deploy
#pragma GCC visibility pop
