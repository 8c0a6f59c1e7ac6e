// The opcodes of PTX that run inside of a thread, by their names. Those that wait for other threads
// are in machine.cpp.
//
// Where PTX leaves a rounding out it means the nearest even, and C++ is compiled without
// contraction, so that what is fused is what PTX says.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <type_traits>

#include "memory.h"

namespace ptx {

using Handler = Then (*)(Memory &, Thread &, const Instruction &);

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// At least twice as wide.
template <class T>
using Wide =
    std::conditional_t<(sizeof(T) < 8), std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>;

// Words that are too narrow for C++ to leave alone are widened, and no overflow is one that C++
// forbids.
template <class T>
using Modular = std::conditional_t<(sizeof(T) < sizeof(uint32_t)), uint32_t, Unsigned<T>>;

// Of an operation of <functional>.
template <class Operation, class T>
T computed(T a, T b) {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, bool>)
        return T(Operation()(a, b));
    else
        return T(Operation()(Modular<T>(a), Modular<T>(b)));
}

template <class T>
Wide<T> multiplied_wide(T a, T b) {
    return Wide<T>(a) * Wide<T>(b);
}

template <class T>
T multiplied_high(T a, T b) {
    return T((Wide<T>(a) * Wide<T>(b)) >> (8 * sizeof(T)));
}

// PTX leaves a division by zero open; all bits are set here, as on devices. The lowest integer over
// -1 is itself.
template <class T>
T divided(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        return a / b;
    } else {
        if (b == 0) return T(-1);
        if (std::is_signed_v<T> && b == T(-1)) return computed<std::minus<>>(T(0), a);
        return T(a / b);
    }
}

template <class T>
T remainder(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == T(-1)) return 0;
    return T(a % b);
}

template <class T>
T smaller(T a, T b) {
    return b < a ? b : a;
}

template <class T>
T larger(T a, T b) {
    return a < b ? b : a;
}

template <class T>
T negated(T a) {
    if constexpr (std::is_floating_point_v<T>)
        return -a;
    else
        return computed<std::minus<>>(T(0), a);
}

template <class T>
T fused(T a, T b, T c) {
    return std::fma(a, b, c);
}

template <class T>
T multiplied_and_added(T a, T b, T c) {
    return computed<std::plus<>>(computed<std::multiplies<>>(a, b), c);
}

template <class T>
T reciprocal(T a) {
    return 1 / a;
}

template <class T>
T complement(T a) {
    if constexpr (std::is_same_v<T, bool>)
        return !a;
    else
        return T(~a);
}

// A shift by more than all bits.
template <class T>
T shifted_left(T a, uint32_t by) {
    return by >= 8 * sizeof(T) ? T(0) : T(Modular<T>(a) << by);
}

template <class T>
T shifted_right(T a, uint32_t by) {
    constexpr uint32_t bits = 8 * sizeof(T);
    if (by >= bits) return std::is_signed_v<T> ? T(a >> (bits - 1)) : T(0);
    return T(a >> by);
}

// The bits from `from` on, `length` of them, are those of a; the others those of b.
template <class T>
T with_bits(T a, T b, uint32_t from, uint32_t length) {
    constexpr uint32_t bits = 8 * sizeof(T);
    from &= 255, length &= 255;
    if (from >= bits || !length) return b;
    const T mask = shifted_left(length >= bits ? T(~T(0)) : T((T(1) << length) - 1), from);
    return T((b & ~mask) | (shifted_left(a, from) & mask));
}

// Rounded to zero; integers from numbers out of range are the nearest ones, from NaN 0.
template <class To, class From>
To converted(From value) {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        if (value != value) return 0;
        const From whole = std::trunc(value);
        if (whole >= From(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
        if (whole <= From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
        return To(whole);
    } else {
        return To(value);
    }
}

template <class Comparison, bool if_unordered, class T>
bool compared(T a, T b) {
    return a != a || b != b ? if_unordered : Comparison()(a, b);
}

// Of numbers that are numbers.
struct Always {
    template <class T>
    bool operator()(T, T) const {
        return true;
    }
};

// An opcode whose result is a function of its operands. The types of the operands are those of its
// parameters.
template <auto function>
struct OfFunction;

template <class Result, class... Operands, Result (*function)(Operands...)>
struct OfFunction<function> {
    static Then run(Memory &, Thread &thread, const Instruction &at) {
        return apply(thread, at, std::index_sequence_for<Operands...>());
    }
    template <size_t... places>
    static Then apply(Thread &thread, const Instruction &at, std::index_sequence<places...>) {
        set(thread, at.operands[0], function(get<Operands>(thread, at.operands[1 + places])...));
        return Then::goes_on;
    }
};

template <class T>
Then moved(Memory &, Thread &thread, const Instruction &at) {
    set(thread, at.operands[0], get<T>(thread, at.operands[1]));
    return Then::goes_on;
}

template <class T>
Then selected(Memory &, Thread &thread, const Instruction &at) {
    const bool is_first = get<bool>(thread, at.operands[3]);
    set(thread, at.operands[0], get<T>(thread, at.operands[is_first ? 1 : 2]));
    return Then::goes_on;
}

template <class T>
Then loaded(Memory &memory, Thread &thread, const Instruction &at) {
    memory.load<T>(thread, at);
    return Then::goes_on;
}

template <class T>
Then stored(Memory &memory, Thread &thread, const Instruction &at) {
    memory.store<T>(thread, at);
    return Then::goes_on;
}

template <class T>
Then exchanged(Memory &memory, Thread &thread, const Instruction &at) {
    memory.exchange<T>(thread, at);
    return Then::goes_on;
}

// A word from its parts, the lowest first, and the parts of a word.
template <class Whole, class Part>
Then packed(Memory &, Thread &thread, const Instruction &at) {
    constexpr int count = sizeof(Whole) / sizeof(Part);
    Whole whole = 0;
    for (int i = 0; i < count; ++i)
        whole |= Whole(get<Part>(thread, at.operands[1 + i])) << 8 * sizeof(Part) * i;
    set(thread, at.operands[0], whole);
    return Then::goes_on;
}

template <class Whole, class Part>
Then unpacked(Memory &, Thread &thread, const Instruction &at) {
    constexpr int count = sizeof(Whole) / sizeof(Part);
    const Whole whole = get<Whole>(thread, at.operands[count]);
    for (int i = 0; i < count; ++i)
        set(thread, at.operands[i], Part(whole >> 8 * sizeof(Part) * i));
    return Then::goes_on;
}

inline Then branched(Memory &, Thread &thread, const Instruction &at) {
    thread.place = at.immediate;
    return Then::goes_on;
}
inline Then left(Memory &, Thread &, const Instruction &) { return Then::leaves; }

using Table = std::map<std::string, Handler>;

// Apart, as there are hundreds.
[[gnu::noinline]] inline void add_handler(Table &table, const std::string &name, Handler handler) {
    table[name] = handler;
}

template <auto function>
[[gnu::noinline]] void add(Table &table, const std::string &name) {
    add_handler(table, name, OfFunction<function>::run);
}

template <class To, class From>
void add_conversion(Table &table, const std::string &to, const std::string &from) {
    constexpr bool to_real = std::is_floating_point_v<To>,
                   from_real = std::is_floating_point_v<From>;
    const char *rounding = from_real && !to_real                                  ? ".rzi"
                           : to_real && (!from_real || sizeof(To) < sizeof(From)) ? ".rn"
                                                                                  : "";
    add<converted<To, From>>(table, "cvt" + (rounding + ("." + to + "." + from)));
}

template <class T>
void add_conversions_to(Table &table, const std::string &to) {
    add_conversion<T, uint8_t>(table, to, "u8"), add_conversion<T, int8_t>(table, to, "s8");
    add_conversion<T, uint16_t>(table, to, "u16"), add_conversion<T, int16_t>(table, to, "s16");
    add_conversion<T, uint32_t>(table, to, "u32"), add_conversion<T, int32_t>(table, to, "s32");
    add_conversion<T, uint64_t>(table, to, "u64"), add_conversion<T, int64_t>(table, to, "s64");
    add_conversion<T, float>(table, to, "f32"), add_conversion<T, double>(table, to, "f64");
}

template <class Comparison, class T>
void add_comparison(Table &table, const std::string &name, const std::string &type) {
    add<compared<Comparison, false, T>>(table, "setp." + name + "." + type);
    if constexpr (std::is_floating_point_v<T>)
        add<compared<Comparison, true, T>>(table, "setp." + name + "u." + type);
}

template <class T>
void add_comparisons(Table &table, const std::string &type) {
    add_comparison<std::equal_to<>, T>(table, "eq", type);
    add_comparison<std::not_equal_to<>, T>(table, "ne", type);
    add_comparison<std::less<>, T>(table, "lt", type);
    add_comparison<std::less_equal<>, T>(table, "le", type);
    add_comparison<std::greater<>, T>(table, "gt", type);
    add_comparison<std::greater_equal<>, T>(table, "ge", type);
    add_comparison<Always, T>(table, "num", type);
}

// What every type has.
template <class T>
void add_type(Table &table, const std::string &type) {
    table["ld." + type] = loaded<T>, table["st." + type] = stored<T>;
    table["mov." + type] = moved<T>, table["selp." + type] = selected<T>;
}

template <class T>
void add_integer(Table &table, const std::string &type) {
    const std::string end = "." + type;
    add<computed<std::plus<>, T>>(table, "add" + end);
    add<computed<std::minus<>, T>>(table, "sub" + end);
    add<computed<std::multiplies<>, T>>(table, "mul.lo" + end);
    add<multiplied_high<T>>(table, "mul.hi" + end);
    add<multiplied_and_added<T>>(table, "mad.lo" + end);
    add<divided<T>>(table, "div" + end), add<remainder<T>>(table, "rem" + end);
    add<smaller<T>>(table, "min" + end), add<larger<T>>(table, "max" + end);
    add<shifted_right<T>>(table, "shr" + end);
    if constexpr (sizeof(T) < 8) add<multiplied_wide<T>>(table, "mul.wide" + end);
    if constexpr (std::is_signed_v<T>) add<negated<T>>(table, "neg" + end);
    add_comparisons<T>(table, type);
    add_conversions_to<T>(table, type);
    add_type<T>(table, type);
}

template <class T>
void add_real(Table &table, const std::string &type) {
    const std::string end = "." + type;
    for (const char *rounding : {"", ".rn"}) {
        add<computed<std::plus<>, T>>(table, "add" + (rounding + end));
        add<computed<std::minus<>, T>>(table, "sub" + (rounding + end));
        add<computed<std::multiplies<>, T>>(table, "mul" + (rounding + end));
    }
    add<fused<T>>(table, "fma.rn" + end), add<divided<T>>(table, "div.rn" + end);
    add<reciprocal<T>>(table, "rcp.rn" + end), add<negated<T>>(table, "neg" + end);
    add_comparisons<T>(table, type);
    add_conversions_to<T>(table, type);
    add_type<T>(table, type);
}

template <class T>
void add_bits(Table &table, const std::string &type) {
    const std::string end = "." + type;
    add<computed<std::bit_and<>, T>>(table, "and" + end);
    add<computed<std::bit_or<>, T>>(table, "or" + end);
    add<computed<std::bit_xor<>, T>>(table, "xor" + end);
    add<complement<T>>(table, "not" + end);
    if constexpr (std::is_same_v<T, bool>) {
        table["mov.pred"] = moved<bool>;
    } else {
        add<shifted_left<T>>(table, "shl" + end), add<shifted_right<T>>(table, "shr" + end);
        add_comparison<std::equal_to<>, T>(table, "eq", type);
        add_comparison<std::not_equal_to<>, T>(table, "ne", type);
        if constexpr (sizeof(T) > 2) add<with_bits<T>>(table, "bfi" + end);
        add_type<T>(table, type);
    }
}

inline Table opcodes() {
    Table table;
    add_type<uint8_t>(table, "b8"), add_type<uint8_t>(table, "u8"), add_type<int8_t>(table, "s8");
    add_integer<uint16_t>(table, "u16"), add_integer<int16_t>(table, "s16");
    add_integer<uint32_t>(table, "u32"), add_integer<int32_t>(table, "s32");
    add_integer<uint64_t>(table, "u64"), add_integer<int64_t>(table, "s64");
    add_real<float>(table, "f32"), add_real<double>(table, "f64");
    add_bits<bool>(table, "pred"), add_bits<uint16_t>(table, "b16");
    add_bits<uint32_t>(table, "b32"), add_bits<uint64_t>(table, "b64");
    add_conversions_to<uint8_t>(table, "u8"), add_conversions_to<int8_t>(table, "s8");
    table["atom.exch.b32"] = exchanged<uint32_t>;
    table["pack.b64.b32"] = packed<uint64_t, uint32_t>,
    table["unpack.b64.b32"] = unpacked<uint64_t, uint32_t>;
    table["unpack.b32.b16"] = unpacked<uint32_t, uint16_t>;
    // Global memory has the addresses of this process, which are the generic ones.
    table["cvta.to.global.u64"] = moved<uint64_t>;
    table["bra"] = table["bra.uni"] = branched;
    table["ret"] = left;
    return table;
}

}  // namespace ptx
