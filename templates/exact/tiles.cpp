// ---------------------------------------------------------------------------------------- tiles

// A register is pieces of 16 bytes, each of piece<T> values. A tile is piece<T> columns of as many
// rows as a register has values: lane p * piece<T> + k is row p * piece<T> + k. So a transpose
// moves values inside their pieces only.
template <class T>
constexpr int piece = 16 / int(sizeof(T));

// Interleaves the lower halves, or the higher, of the pieces of p and q.
template <class T, bool higher, int... places>
NSC_STEP Vec<T> zip(Vec<T> p, Vec<T> q, Places<places...>) {
    constexpr int half = piece<T> / 2;
    return __builtin_shufflevector(p, q,
                                   (places / piece<T> * piece<T> + higher * half +
                                    places % piece<T> / 2 + places % 2 * int(lanes<T>))...);
}

template <class T>
NSC_STEP Vec<T> zip_lower(Vec<T> p, Vec<T> q) {
    return zip<T, false>(p, q, typename PlacesTo<lanes<T>>::list());
}

template <class T>
NSC_STEP Vec<T> zip_higher(Vec<T> p, Vec<T> q) {
    return zip<T, true>(p, q, typename PlacesTo<lanes<T>>::list());
}

// The first, or the second, of each pair that zip_lower and zip_higher made.
template <class T, bool second, int... places>
NSC_STEP Vec<T> unzip(Vec<T> lower, Vec<T> higher, Places<places...>) {
    constexpr int half = piece<T> / 2;
    return __builtin_shufflevector(lower, higher,
                                   (places / piece<T> * piece<T> + 2 * (places % half) + second +
                                    (places % piece<T> < half ? 0 : int(lanes<T>)))...);
}

template <class T>
NSC_STEP Vec<T> unzip_firsts(Vec<T> lower, Vec<T> higher) {
    return unzip<T, false>(lower, higher, typename PlacesTo<lanes<T>>::list());
}

template <class T>
NSC_STEP Vec<T> unzip_seconds(Vec<T> lower, Vec<T> higher) {
    return unzip<T, true>(lower, higher, typename PlacesTo<lanes<T>>::list());
}

// Transposes the pieces of piece<T> registers.
template <class T, int stage = piece<T>>
NSC_STEP void transpose_pieces(Vec<T> *rows) {
    if constexpr (stage > 1) {
        constexpr int half = piece<T> / 2;
        Vec<T> next[piece<T>];
        NSC_UNROLL
        for (int i = 0; i < half; ++i)
            next[2 * i] = zip_lower<T>(rows[i], rows[i + half]),
                     next[2 * i + 1] = zip_higher<T>(rows[i], rows[i + half]);
        NSC_UNROLL
        for (int i = 0; i < piece<T>; ++i) rows[i] = next[i];
        transpose_pieces<T, stage / 2>(rows);
    }
}

template <class T, int bytes>
struct PartOf {
    typedef T type __attribute__((vector_size(bytes)));
};

// Part of a register, of `bytes`.
template <class T, int bytes>
using Part = typename PartOf<T, bytes>::type;

template <class T, int bytes, int... places>
NSC_STEP Part<T, 2 * bytes> joined(Part<T, bytes> first, Part<T, bytes> second, Places<places...>) {
    return __builtin_shufflevector(first, second, places...);
}

template <class T, int bytes, int from, int... places>
NSC_STEP Part<T, bytes> half_of(Part<T, 2 * bytes> whole, Places<places...>) {
    return __builtin_shufflevector(whole, whole, (from + places)...);
}

// Between the first `width` values of rows, `stride` apart, and the pieces of a register.
template <class T, int width, int bytes = int(register_bytes)>
NSC_STEP Part<T, bytes> load_pieces(const T *rows, int64_t stride) {
    constexpr int half = bytes / 2;
    if constexpr (bytes == 16) {
        Part<T, bytes> row{};
        memcpy(&row, rows, sizeof(T) * width);
        return row;
    } else {
        return joined<T, half>(
            load_pieces<T, width, half>(rows, stride),
            load_pieces<T, width, half>(rows + half / 16 * piece<T> * stride, stride),
            typename PlacesTo<bytes / int(sizeof(T))>::list());
    }
}

template <class T, int width, int bytes = int(register_bytes)>
NSC_STEP void store_pieces(Part<T, bytes> pieces, T *rows, int64_t stride) {
    constexpr int half = bytes / 2, count = half / int(sizeof(T));
    if constexpr (bytes == 16) {
        memcpy(rows, &pieces, sizeof(T) * width);
    } else {
        store_pieces<T, width, half>(half_of<T, half, 0>(pieces, typename PlacesTo<count>::list()),
                                     rows, stride);
        store_pieces<T, width, half>(
            half_of<T, half, count>(pieces, typename PlacesTo<count>::list()),
            rows + half / 16 * piece<T> * stride, stride);
    }
}

// Between rows in memory, `stride` values apart, and a tile of their first `width` columns.
template <class T, int width = piece<T>>
NSC_STEP void load_tile(const T *rows, int64_t stride, Vec<T> *tile) {
    NSC_UNROLL
    for (int k = 0; k < piece<T>; ++k) tile[k] = load_pieces<T, width>(rows + k * stride, stride);
    transpose_pieces<T>(tile);
}

template <class T, int width = piece<T>>
NSC_STEP void store_tile(Vec<T> *tile, T *rows, int64_t stride) {
    transpose_pieces<T>(tile);
    NSC_UNROLL
    for (int k = 0; k < piece<T>; ++k) store_pieces<T, width>(tile[k], rows + k * stride, stride);
}
