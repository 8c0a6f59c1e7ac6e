// Values alone: their order, and their way back.
#include "../expect.h"

#include <nsc/exact/values.h>

using namespace nsc;

TEST(values_have_the_order_of_their_keys) {
    using Form = Values<float32>;
    const float x[] = {1.5f, -0.0f, 0.0f, -__builtin_inff(), 3e-45f, -__builtin_nanf("")};
    const int order[] = {3, 1, 2, 4, 0, 5};  // NaN is more than all numbers, whatever its sign
    for (const int32_t descending : {0, -1}) {
        Vec<int32_t> items[6];
        for (int k = 0; k < 6; ++k) {
            int32_t bits;
            memcpy(&bits, x + k, sizeof bits);
            Form::enter(all(bits), k, all(descending), items + k, nullptr);
        }
        for (int k = 0; k < 5; ++k) {
            Vec<int32_t> a = items[order[k]], b = items[order[k + 1]];
            const int32_t less = descending ? b[0] : a[0], more = descending ? a[0] : b[0];
            EXPECT(less < more);
            Form::order(b, a);
            EXPECT(b[0] == less && a[0] == more);
        }
        for (int k = 0; k < 5; ++k) {
            int32_t bits;
            memcpy(&bits, x + k, sizeof bits);
            EXPECT(Form::leave(items + k, all(descending), nullptr)[0] == bits);
        }
    }
}
