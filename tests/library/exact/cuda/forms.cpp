// Forms in CUDA: values alone and with indices.
#define __CUDACC__
#include "../../../cuda/emulation.h"
#include "../../expect.h"

#include <nsc/exact/cuda/forms.h>

using namespace nsc;

template <class Element>
static void test_forms_of() {
    using Key = typename Element::Key;
    for (const Key descending : {Key(0), Key(-1)}) {
        typename Values<Element>::Item a = Values<Element>::enter(Key(7), 0, descending),
                                       b = Values<Element>::enter(Key(5), 1, descending);
        Values<Element>::order(a, b);
        EXPECT(Values<Element>::leave(a, descending) == (descending ? Key(7) : Key(5)));
        EXPECT(Values<Element>::leave(b, descending) == (descending ? Key(5) : Key(7)));
        using Form = IndexedValues<Element>;
        typename Form::Item first = Form::enter(Key(5), 2, descending), second = first;
        first = Form::enter(Key(5), 3, descending);
        Form::order(first, second);
        EXPECT(Form::index(first) == 2 && Form::index(second) == 3);
        EXPECT(Form::leave(first, descending) == Key(5) && !Form::is_shared(first, descending));
        second = Form::enter(Key(7), 1, descending);
        Form::order(first, second);
        EXPECT(Form::index(first) == (descending ? 1 : 2));
    }
}

TEST(equal_values_are_ordered_by_their_indices) {
    test_forms_of<uint8>();
    test_forms_of<int16>();
    test_forms_of<float32>();
    test_forms_of<uint32>();
    test_forms_of<int64>();
    test_forms_of<uint64>();
}

TEST(minus_zero_shares_its_key_with_zero) {
    const int32_t negative_zero = int32_t(uint32_t(1) << 31);
    const auto item = IndexedValues<float32>::enter(negative_zero, 9, 0);
    EXPECT(IndexedValues<float32>::is_shared(item, 0) && IndexedValues<float32>::index(item) == 9);
}
