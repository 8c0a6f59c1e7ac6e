// The opcodes of PTX that run inside of a thread, by their names. Those that wait for other threads
// are in machine.cpp.
//
// Where PTX leaves a rounding out it means the nearest even, and C++ is compiled without
// contraction, so that what is fused is what PTX says.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <type_traits>

#include "memory.h"

namespace ptx {

using Handler = Then (*)(Memory &, Thread &, const Instruction &);

template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Twice as wide.
template <class T>
struct WideOf;
template <>
struct WideOf<uint16_t> {
    using type = uint32_t;
};
template <>
struct WideOf<int16_t> {
    using type = int32_t;
};
template <>
struct WideOf<uint32_t> {
    using type = uint64_t;
};
template <>
struct WideOf<int32_t> {
    using type = int64_t;
};
template <>
struct WideOf<uint64_t> {
    using type = unsigned __int128;
};
template <>
struct WideOf<int64_t> {
    using type = __int128;
};
template <class T>
using Wide = typename WideOf<T>::type;

// Arithmetic on words that are too narrow for C++ to leave alone, and without overflow that C++
// forbids.
template <class T>
using Modular = std::conditional_t<(sizeof(T) < sizeof(uint32_t)), uint32_t, Unsigned<T>>;

template <class T>
T added(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
        return a + b;
    else
        return T(Modular<T>(a) + Modular<T>(b));
}

template <class T>
T subtracted(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
        return a - b;
    else
        return T(Modular<T>(a) - Modular<T>(b));
}

template <class T>
T multiplied(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
        return a * b;
    else
        return T(Modular<T>(a) * Modular<T>(b));
}

template <class T>
Wide<T> multiplied_wide(T a, T b) {
    return Wide<T>(a) * Wide<T>(b);
}

template <class T>
Wide<T> multiplied_wide_and_added(T a, T b, Wide<T> c) {
    return added(multiplied_wide(a, b), c);
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
        if (std::is_signed_v<T> && b == T(-1)) return subtracted(T(0), a);
        return T(a / b);
    }
}

template <class T>
T remainder(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == T(-1)) return 0;
    return T(a % b);
}

// Of a NaN and a number the number; -0 is less than 0.
template <class T>
T smaller(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (a != a) return b;
        if (b != b) return a;
        if (a == b) return std::signbit(a) ? a : b;
    }
    return b < a ? b : a;
}

template <class T>
T larger(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (a != a) return b;
        if (b != b) return a;
        if (a == b) return std::signbit(a) ? b : a;
    }
    return a < b ? b : a;
}

template <class T>
T negated(T a) {
    if constexpr (std::is_floating_point_v<T>)
        return -a;
    else
        return subtracted(T(0), a);
}

template <class T>
T absolute(T a) {
    if constexpr (std::is_floating_point_v<T>)
        return std::fabs(a);
    else
        return a < 0 ? negated(a) : a;
}

template <class T>
T fused(T a, T b, T c) {
    return std::fma(a, b, c);
}

template <class T>
T multiplied_and_added(T a, T b, T c) {
    return added(multiplied(a, b), c);
}

template <class T>
T reciprocal(T a) {
    return 1 / a;
}

template <class T>
T square_root(T a) {
    return std::sqrt(a);
}

template <class T>
T both(T a, T b) {
    return T(a & b);
}
template <class T>
T either(T a, T b) {
    return T(a | b);
}
template <class T>
T unlike(T a, T b) {
    return T(a ^ b);
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

template <class T>
T bits_of(T a, uint32_t from, uint32_t length) {
    constexpr uint32_t bits = 8 * sizeof(T);
    from &= 255, length &= 255;
    if (!length) return 0;
    const uint32_t last = std::min(from + length, bits) - 1;
    const T shifted = shifted_right(a, from);
    if (length >= bits) return shifted;
    const T mask = T((Unsigned<T>(1) << length) - 1);
    const bool is_negative = std::is_signed_v<T> && (a >> last & 1);
    return is_negative ? T(shifted | ~mask) : T(shifted & mask);
}

inline uint32_t permuted(uint32_t a, uint32_t b, uint32_t selectors) {
    const uint64_t bytes = uint64_t(b) << 32 | a;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
        const uint32_t selector = selectors >> 4 * i & 15,
                       byte = uint32_t(bytes >> 8 * (selector & 7) & 255);
        const uint32_t chosen = selector & 8 ? (byte & 128 ? 255 : 0) : byte;
        result |= chosen << 8 * i;
    }
    return result;
}

// Each bit by the table, whose place is the bits of a, b and c.
inline uint32_t looked_up(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t result = 0;
    for (uint32_t place = 0; place < 8; ++place)
        if (table >> place & 1)
            result |= (place & 4 ? a : ~a) & (place & 2 ? b : ~b) & (place & 1 ? c : ~c);
    return result;
}

inline uint32_t funnelled_left(uint32_t low, uint32_t high, uint32_t by) {
    return uint32_t((uint64_t(high) << 32 | low) << (by & 31) >> 32);
}
inline uint32_t funnelled_right(uint32_t low, uint32_t high, uint32_t by) {
    return uint32_t((uint64_t(high) << 32 | low) >> (by & 31));
}
inline uint32_t clamped_left(uint32_t low, uint32_t high, uint32_t by) {
    return by >= 32 ? low : funnelled_left(low, high, by);
}
inline uint32_t clamped_right(uint32_t low, uint32_t high, uint32_t by) {
    return by >= 32 ? high : funnelled_right(low, high, by);
}

template <class T>
uint32_t ones(T a) {
    return uint32_t(__builtin_popcountll(a));
}
template <class T>
uint32_t leading_zeros(T a) {
    constexpr uint32_t bits = 8 * sizeof(T);
    return a ? uint32_t(__builtin_clzll(a)) - (64 - bits) : bits;
}

enum class Rounding { none, nearest, zero, down, up };

template <Rounding rounding, class T>
T rounded(T value) {
    switch (rounding) {
        case Rounding::nearest: return std::nearbyint(value);
        case Rounding::zero: return std::trunc(value);
        case Rounding::down: return std::floor(value);
        case Rounding::up: return std::ceil(value);
        case Rounding::none: break;
    }
    return value;
}

// Integers from numbers out of range are the nearest ones; from NaN 0.
template <class To, class From, Rounding rounding>
To converted(From value) {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        if (value != value) return 0;
        const From whole = rounded<rounding>(value);
        if (whole >= From(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
        if (whole <= From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
        return To(whole);
    } else if constexpr (std::is_floating_point_v<From>) {
        return To(rounded<rounding>(value));
    } else {
        return To(value);
    }
}

enum class Comparison { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <Comparison comparison, class T>
bool compared(T a, T b) {
    const bool is_unordered = a != a || b != b;
    switch (comparison) {
        case Comparison::eq: return a == b;
        case Comparison::ne: return !is_unordered && a != b;
        case Comparison::lt: return a < b;
        case Comparison::le: return a <= b;
        case Comparison::gt: return a > b;
        case Comparison::ge: return a >= b;
        case Comparison::equ: return is_unordered || a == b;
        case Comparison::neu: return is_unordered || a != b;
        case Comparison::ltu: return is_unordered || a < b;
        case Comparison::leu: return is_unordered || a <= b;
        case Comparison::gtu: return is_unordered || a > b;
        case Comparison::geu: return is_unordered || a >= b;
        case Comparison::num: return !is_unordered;
        case Comparison::nan: return is_unordered;
    }
    return false;
}

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

// Generic addresses of memory that is the block's or the thread's own.
inline Then shared_to_generic(Memory &memory, Thread &thread, const Instruction &at) {
    const auto start = reinterpret_cast<uint64_t>(memory.shared_start());
    set(thread, at.operands[0], get<uint64_t>(thread, at.operands[1]) + start);
    return Then::goes_on;
}
inline Then generic_to_shared(Memory &memory, Thread &thread, const Instruction &at) {
    const auto start = reinterpret_cast<uint64_t>(memory.shared_start());
    set(thread, at.operands[0], get<uint64_t>(thread, at.operands[1]) - start);
    return Then::goes_on;
}
inline Then local_to_generic(Memory &, Thread &thread, const Instruction &at) {
    const auto start = reinterpret_cast<uint64_t>(thread.local_memory);
    set(thread, at.operands[0], get<uint64_t>(thread, at.operands[1]) + start);
    return Then::goes_on;
}
inline Then generic_to_local(Memory &, Thread &thread, const Instruction &at) {
    const auto start = reinterpret_cast<uint64_t>(thread.local_memory);
    set(thread, at.operands[0], get<uint64_t>(thread, at.operands[1]) - start);
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
void add_conversions(Table &table, const std::string &to, const std::string &from) {
    const std::string types = "." + to + "." + from;
    constexpr bool to_real = std::is_floating_point_v<To>,
                   from_real = std::is_floating_point_v<From>;
    if constexpr (!from_real) {
        add<converted<To, From, Rounding::none>>(table, (to_real ? "cvt.rn" : "cvt") + types);
    } else {
        if constexpr (to_real && !std::is_same_v<To, From>) {
            constexpr bool narrows = sizeof(To) < sizeof(From);
            add<converted<To, From, Rounding::none>>(table, (narrows ? "cvt.rn" : "cvt") + types);
        } else {
            add<converted<To, From, Rounding::nearest>>(table, "cvt.rni" + types);
            add<converted<To, From, Rounding::zero>>(table, "cvt.rzi" + types);
            add<converted<To, From, Rounding::down>>(table, "cvt.rmi" + types);
            add<converted<To, From, Rounding::up>>(table, "cvt.rpi" + types);
        }
    }
}

template <class T>
void add_conversions_to(Table &table, const std::string &to) {
    add_conversions<T, uint8_t>(table, to, "u8"), add_conversions<T, int8_t>(table, to, "s8");
    add_conversions<T, uint16_t>(table, to, "u16"), add_conversions<T, int16_t>(table, to, "s16");
    add_conversions<T, uint32_t>(table, to, "u32"), add_conversions<T, int32_t>(table, to, "s32");
    add_conversions<T, uint64_t>(table, to, "u64"), add_conversions<T, int64_t>(table, to, "s64");
    add_conversions<T, float>(table, to, "f32"), add_conversions<T, double>(table, to, "f64");
}

template <Comparison comparison, class T>
void add_comparison(Table &table, const std::string &name, const std::string &type) {
    add<compared<comparison, T>>(table, "setp." + name + "." + type);
}

template <class T>
void add_comparisons(Table &table, const std::string &type) {
    add_comparison<Comparison::eq, T>(table, "eq", type),
        add_comparison<Comparison::ne, T>(table, "ne", type);
    add_comparison<Comparison::lt, T>(table, "lt", type),
        add_comparison<Comparison::le, T>(table, "le", type);
    add_comparison<Comparison::gt, T>(table, "gt", type),
        add_comparison<Comparison::ge, T>(table, "ge", type);
    if constexpr (std::is_floating_point_v<T>) {
        add_comparison<Comparison::equ, T>(table, "equ", type);
        add_comparison<Comparison::neu, T>(table, "neu", type);
        add_comparison<Comparison::ltu, T>(table, "ltu", type);
        add_comparison<Comparison::leu, T>(table, "leu", type);
        add_comparison<Comparison::gtu, T>(table, "gtu", type);
        add_comparison<Comparison::geu, T>(table, "geu", type);
        add_comparison<Comparison::num, T>(table, "num", type);
        add_comparison<Comparison::nan, T>(table, "nan", type);
    } else if constexpr (!std::is_signed_v<T>) {
        add_comparison<Comparison::lt, T>(table, "lo", type),
            add_comparison<Comparison::le, T>(table, "ls", type);
        add_comparison<Comparison::gt, T>(table, "hi", type),
            add_comparison<Comparison::ge, T>(table, "hs", type);
    }
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
    add<added<T>>(table, "add" + end), add<subtracted<T>>(table, "sub" + end);
    add<multiplied<T>>(table, "mul.lo" + end), add<multiplied_high<T>>(table, "mul.hi" + end);
    add<multiplied_and_added<T>>(table, "mad.lo" + end);
    add<divided<T>>(table, "div" + end), add<remainder<T>>(table, "rem" + end);
    add<smaller<T>>(table, "min" + end), add<larger<T>>(table, "max" + end);
    add<shifted_right<T>>(table, "shr" + end);
    if constexpr (sizeof(T) < 8) {
        add<multiplied_wide<T>>(table, "mul.wide" + end);
        add<multiplied_wide_and_added<T>>(table, "mad.wide" + end);
    }
    if constexpr (std::is_signed_v<T>)
        add<negated<T>>(table, "neg" + end), add<absolute<T>>(table, "abs" + end);
    if constexpr (sizeof(T) > 2) add<bits_of<T>>(table, "bfe" + end);
    add_comparisons<T>(table, type);
    add_conversions_to<T>(table, type);
    add_type<T>(table, type);
}

template <class T>
void add_real(Table &table, const std::string &type) {
    const std::string end = "." + type;
    for (const char *rounding : {"", ".rn"}) {
        add<added<T>>(table, "add" + (rounding + end)),
            add<subtracted<T>>(table, "sub" + (rounding + end));
        add<multiplied<T>>(table, "mul" + (rounding + end));
    }
    add<fused<T>>(table, "fma.rn" + end), add<divided<T>>(table, "div.rn" + end);
    add<reciprocal<T>>(table, "rcp.rn" + end), add<square_root<T>>(table, "sqrt.rn" + end);
    add<negated<T>>(table, "neg" + end), add<absolute<T>>(table, "abs" + end);
    add<smaller<T>>(table, "min" + end), add<larger<T>>(table, "max" + end);
    add_comparisons<T>(table, type);
    add_conversions_to<T>(table, type);
    add_type<T>(table, type);
}

template <class T>
void add_bits(Table &table, const std::string &type) {
    const std::string end = "." + type;
    add<both<T>>(table, "and" + end), add<either<T>>(table, "or" + end),
        add<unlike<T>>(table, "xor" + end);
    add<complement<T>>(table, "not" + end);
    if constexpr (std::is_same_v<T, bool>) {
        table["mov.pred"] = moved<bool>;
    } else {
        add<shifted_left<T>>(table, "shl" + end), add<shifted_right<T>>(table, "shr" + end);
        add_comparison<Comparison::eq, T>(table, "eq", type),
            add_comparison<Comparison::ne, T>(table, "ne", type);
        if constexpr (sizeof(T) > 2) {
            add<with_bits<T>>(table, "bfi" + end);
            add<ones<T>>(table, "popc" + end), add<leading_zeros<T>>(table, "clz" + end);
        }
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
    add<permuted>(table, "prmt.b32"), add<looked_up>(table, "lop3.b32");
    add<funnelled_left>(table, "shf.l.wrap.b32"), add<funnelled_right>(table, "shf.r.wrap.b32");
    add<clamped_left>(table, "shf.l.clamp.b32"), add<clamped_right>(table, "shf.r.clamp.b32");
    table["atom.exch.b32"] = exchanged<uint32_t>, table["atom.exch.b64"] = exchanged<uint64_t>;
    table["pack.b64.b32"] = packed<uint64_t, uint32_t>,
    table["unpack.b64.b32"] = unpacked<uint64_t, uint32_t>;
    table["pack.b64.b16"] = packed<uint64_t, uint16_t>,
    table["unpack.b64.b16"] = unpacked<uint64_t, uint16_t>;
    table["pack.b32.b16"] = packed<uint32_t, uint16_t>,
    table["unpack.b32.b16"] = unpacked<uint32_t, uint16_t>;
    // Global memory has the addresses of this process, which are the generic ones.
    for (const char *name : {"cvta.global.u64", "cvta.to.global.u64"})
        table[name] = moved<uint64_t>;
    table["cvta.shared.u64"] = shared_to_generic, table["cvta.to.shared.u64"] = generic_to_shared;
    table["cvta.local.u64"] = local_to_generic, table["cvta.to.local.u64"] = generic_to_local;
    table["bra"] = table["bra.uni"] = branched;
    table["ret"] = table["exit"] = left;
    return table;
}

}  // namespace ptx
