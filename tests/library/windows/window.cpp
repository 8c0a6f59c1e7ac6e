// Loops over full registers of a row.
#include "../expect.h"

#include <nsc/windows/window.h>

using namespace nsc;

// A stage that says where it ran.
struct Ran {
    static constexpr int64_t reach = 3;
    template <class Strip>
    static void run(const Strip &s, int64_t x) {
        for (int64_t k = 0; k < lanes<typename Strip::Key>; ++k) ++s.times[x + k];
    }
};

struct Times {
    using Key = int16_t;
    int *times;
};

TEST(stages_run_everywhere_in_full_registers) {
    constexpr int64_t width = 3 * lanes<int16_t> + 1;
    int times[width + Ran::reach + 1] = {};
    Lists<Ran, Ran>::make(Times{times}, width);
    for (int64_t x = 0; x < width + Ran::reach; ++x) EXPECT(times[x] == 2 || times[x] == 4);
    EXPECT(times[0] == 2 && times[width + Ran::reach] == 0);
    EXPECT(register_at<int16_t>(-3, width) == 0);
    EXPECT(register_at<int16_t>(1, width) == 1);
    EXPECT(register_at<int16_t>(width - 1, width) == width - lanes<int16_t>);
}
