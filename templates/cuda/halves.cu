// Tells a step which wire of a half comparator is needed behind it. Run forwards, a half comparator
// takes from both wires and gives to the needed one. Run backwards, it takes from the needed one
// and gives to both.
template <bool backwards, int32_t needed>
struct Half {};
using First = Half<false, 1>;
using Second = Half<false, 2>;
using FromFirst = Half<true, 1>;
using FromSecond = Half<true, 2>;
