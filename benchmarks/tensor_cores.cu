
// ---------------------------------------------------------------------------------- tensor cores
//
// P and its gradient by matrix products: an experiment, appended to the text of a kernel by tensor_cores.py. A codelet
// is a 16 x 16 matrix for each sample, made once and applied to all columns of P on the tensor cores. Numbers go there
// in two parts of TF32, high and low; of the four products of parts all but low times low are summed.
//
// Of the kernel's text it uses wires, slots, unit, codelet_count, codelets, shapes, weights_of, MixesOf, mix, difference,
// with_code_of and folded.

namespace {

// Places of a codelet; narrower ones are padded with a wire of zeros. Columns of P that lie in shared memory.
constexpr int32_t places = 16, columns_at_once = 32;
constexpr int32_t matrix_size = places * places;
constexpr int32_t most_threads = 512, matrix_threads = 128;  // of a block

// Stands for 1 in a matrix, so that products of two small weights stay normal numbers. Times `unit` it is finite.
constexpr float matrix_unit = 0x1p54f;

struct alignas(16) Four {
    float at[4];
};
struct alignas(16) FourRows {
    int32_t of[2][2];  // [h][e]
};

// Where a matrix has an entry, so that a thread's entries for a product lie together: with row = 8 t + g and
// column = 8 h + 2 c + e these are number 2 t + e of pack h of lane 4 g + c.
__device__ inline int32_t place_in_matrix(int32_t row, int32_t column) {
    const int32_t t = row / 8, g = row % 8, h = column / 8, c = column % 8 / 2, e = column % 2;
    return ((h * 32 + 4 * g + c) * 4) + 2 * t + e;
}

// ---------------------------------------------------------------------------- products of parts

// Factors of a product of 16 x 8 and 8 x 8 numbers: this lane's entries.
struct Left {
    uint32_t high[4], low[4];
};

struct Right {
    uint32_t high[2], low[2];
};

// The tensor core ignores the last 13 bits of what it takes; that cuts the low part.
template <class Factor>
__device__ __forceinline__ void put(Factor &factor, int32_t i, float value) {
    factor.high[i] = (uint32_t(__float_as_int(value)) + 0x1000u) & 0xffffe000u;
    factor.low[i] = uint32_t(__float_as_int(value - __int_as_float(int32_t(factor.high[i]))));
}

// Adds a product of TF32 numbers.
__device__ __forceinline__ void add_product(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if defined(__CUDA_ARCH__)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    mma_m16n8k8_tf32(sum, a, b);
#endif
}

// The sum of some products, small ones first: the tensor core cuts its sums.
template <int32_t count>
__device__ __forceinline__ void sum_products(float (&sum)[4], const Left (&left)[count], const Right (&right)[count]) {
    NSC_UNROLL
    for (int32_t i = 0; i < 4; ++i) sum[i] = 0;
    NSC_UNROLL
    for (int32_t k = 0; k < count; ++k) {
        add_product(sum, left[k].low, right[k].high);
        add_product(sum, left[k].high, right[k].low);
    }
    NSC_UNROLL
    for (int32_t k = 0; k < count; ++k) add_product(sum, left[k].high, right[k].high);
}

// ------------------------------------------------------------------------------------- matrices

// Calls use(sample, codelet's number, column) for this thread's column of a matrix: 16 threads have one.
template <class Use>
__device__ __forceinline__ void for_column_of_matrix(int64_t batch, Use use) {
    const int64_t matrix = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / places;
    if (matrix < batch * codelet_count)
        use(matrix / codelet_count, int32_t(matrix % codelet_count), int32_t(threadIdx.x) % places);
}

// A column of the unit matrix, and of what a codelet makes of it.
struct UnitColumn {
    using real = float;
    __device__ __forceinline__ float load(int32_t k) const { return k == column ? one : 0.0f; }
    __device__ __forceinline__ void store(int32_t k, float value) const { made[k] = value; }
    int32_t column;
    float one, *made;
};

// A column of the sum of some chunks' matrices; what becomes of it is not wanted.
struct SummedColumn {
    using real = float;
    __device__ __forceinline__ float load(int32_t k) const {
        float sum = 0;
#pragma unroll 1
        for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += matrix[chunk * codelet_count * matrix_size + place_in_matrix(k, column)];
        return sum;
    }
    __device__ __forceinline__ void store(int32_t, float) const {}
    int32_t column;
    int64_t chunks;
    const float *matrix;
};

// --------------------------------------------------------------------------------------- tiles

// Tables of the network. Rows of a tile begin at a multiple of 32 whose low bits say how its columns are exchanged, so that
// threads of a warp meet different banks: row r has its column k at rows[r] ^ k. Row `wires` is the wire of zeros.
struct Tables {
    const int32_t *rows;          // [wires + 1]
    const int32_t *codelet_rows;  // [codelet_count][16], the rows of places 8 h + 2 c + e at 4 c + 2 h + e
    const int32_t *listed;        // [tiles][codelet_count], codelets that the columns of a tile reach
    const int32_t *level_ends;    // [tiles][levels], where those of each level end
    int64_t levels;
};

// Some columns of a sample, and this thread in the block that has them.
struct Columns {
    __device__ explicit Columns(Tables tables)
        : tables(tables), lane(int32_t(threadIdx.x) % 32), warp(int32_t(threadIdx.x) / 32), warps(int32_t(blockDim.x) / 32),
          tile(reinterpret_cast<float *>(shared_memory)) {
        if (warp == 0) tile[tables.rows[wires] ^ lane] = 0;
    }
    static constexpr int64_t count = (wires + columns_at_once - 1) / columns_at_once;  // in a sample

    // The column of P that this thread loads and stores; the last tile may have fewer.
    __device__ int64_t column(int64_t number) const { return number * columns_at_once + lane; }

    // Calls visit(row, its entry in this thread's column) for this thread's rows.
    template <class Visit>
    __device__ __forceinline__ void for_each_row(Visit visit) const {
        for (int32_t row = warp; row < wires; row += warps) visit(row, tile[tables.rows[row] ^ lane]);
        __syncthreads();
    }
    __device__ void load_unit_matrix(int64_t number, float one) const {
        for_each_row([&](int32_t row, float &at) { at = row == column(number) ? one : 0.0f; });
    }
    // Calls visit(codelet, its place in the list) for this warp's codelets of each level in turn.
    template <class Visit>
    __device__ __forceinline__ void for_each_codelet(int64_t number, bool backwards, Visit visit) const {
        const int32_t *list = tables.listed + number * codelet_count, *ends = tables.level_ends + number * tables.levels;
        for (int32_t l = 0; l < int32_t(tables.levels); ++l) {
            const int32_t level = backwards ? int32_t(tables.levels) - 1 - l : l, begin = level ? ends[level - 1] : 0;
            for (int32_t i = begin + warp; i < ends[level]; i += warps) visit(list[i], i);
            __syncthreads();
        }
    }
    Tables tables;
    int32_t lane, warp, warps;
    float *tile;
};

// A thread's part of the rows of a codelet: columns 4 g to 4 g + 3 of the wires 8 h + 2 c + e. Each thread stores where it
// loaded.
struct Part {
    __device__ Part(const Columns &columns, int32_t codelet) : tile(columns.tile), lane(columns.lane) {
        rows = reinterpret_cast<const FourRows *>(columns.tables.codelet_rows)[codelet * 4 + lane % 4];
        NSC_UNROLL
        for (int32_t i = 0; i < 4; ++i) x[i / 2][i % 2] = *at(i / 2, i % 2);
    }
    // Keeps what was loaded: 32 columns of each place.
    __device__ __forceinline__ void keep(float *kept) const {
        NSC_UNROLL
        for (int32_t i = 0; i < 4; ++i) {
            const int32_t place = 8 * (i / 2) + 2 * (lane % 4) + i % 2;
            reinterpret_cast<Four *>(kept + place * columns_at_once)[lane / 4] = x[i / 2][i % 2];
        }
    }
    // Multiplies a matrix with what was loaded: the transposed product, of columns by wires.
    __device__ __forceinline__ void multiply(const float *matrix) {
        Left left[2][2];
        Right right[2][2];
        NSC_UNROLL
        for (int32_t h = 0; h < 2; ++h) {
            const Four entries = reinterpret_cast<const Four *>(matrix)[h * 32 + lane];
            NSC_UNROLL
            for (int32_t i = 0; i < 4; ++i) {
                put(right[i / 2][h], i % 2, entries.at[i]);
                NSC_UNROLL
                for (int32_t e = 0; e < 2; ++e) put(left[i / 2][h], 2 * e + i % 2, x[h][e].at[i]);
            }
        }
        NSC_UNROLL
        for (int32_t u = 0; u < 2; ++u) {
            NSC_UNROLL
            for (int32_t t = 0; t < 2; ++t) {
                float sum[4];
                sum_products(sum, left[u], right[t]);
                NSC_UNROLL
                for (int32_t i = 0; i < 4; ++i) x[t][i % 2].at[2 * u + i / 2] = sum[i] * (1 / matrix_unit);
            }
        }
    }
    __device__ __forceinline__ void store() const {
        NSC_UNROLL
        for (int32_t i = 0; i < 4; ++i)
            if (rows.of[i / 2][i % 2] < wires * columns_at_once) *at(i / 2, i % 2) = x[i / 2][i % 2];
    }
    __device__ __forceinline__ Four *at(int32_t h, int32_t e) const { return reinterpret_cast<Four *>(tile + (rows.of[h][e] ^ lane / 4 * 4)); }
    float *tile;
    int32_t lane;
    FourRows rows;
    Four x[2][2];
};

// Adds to the gradient of a codelet's matrix: the rows of the tile, which are the gradient behind it, times what it loaded.
__device__ __forceinline__ void add_matrix_gradient(const Columns &columns, int32_t codelet, const float *kept, float *gradient) {
    const int32_t g = columns.lane / 4, c = columns.lane % 4;
    Left left[4];
    Right right[2][4];
    NSC_UNROLL
    for (int32_t r = 0; r < 2; ++r) {
        const int32_t row = columns.tables.codelet_rows[codelet * places + g / 2 * 4 + 2 * r + g % 2];
        NSC_UNROLL
        for (int32_t i = 0; i < 2; ++i) {
            const Four behind = *reinterpret_cast<const Four *>(columns.tile + (row ^ (16 * i + 4 * c)));
            const Four before = reinterpret_cast<const Four *>(kept + (g + 8 * r) * columns_at_once)[4 * i + c];
            NSC_UNROLL
            for (int32_t s = 0; s < 4; ++s) {
                put(left[s], 2 * i + r, behind.at[s]);
                put(right[r][s], i, before.at[s]);
            }
        }
    }
    NSC_UNROLL
    for (int32_t t = 0; t < 2; ++t) {
        float sum[4];
        sum_products(sum, left, right[t]);
        Four &at = reinterpret_cast<Four *>(gradient)[t * 32 + columns.lane];
        Four total = at;
        NSC_UNROLL
        for (int32_t i = 0; i < 4; ++i) total.at[i] += sum[i];
        at = total;
    }
}

}  // namespace

// ----------------------------------------------------------------------------------- the kernels

// The matrix of each codelet and its transpose: [batch][codelet_count][2][16 * 16].
extern "C" __global__ void __launch_bounds__(matrix_threads) nsc_tensor_matrices(int64_t batch, const float *weights, float *matrices) {
    for_column_of_matrix(batch, [&](int64_t sample, int32_t number, int32_t column) {
        const Codelet codelet = codelets[number];
        float made[places] = {}, *matrix = matrices + (sample * codelet_count + number) * 2 * matrix_size;
        with_code_of(codelet.shape, [&](auto code) {
            const MixesOf<float, decltype(code)> mixes(weights_of(weights, sample).forward, codelet.slot);
            code.run(UnitColumn{column, matrix_unit, made}, [&](int32_t c, float &a, float &b, auto... half) { mix(a, b, mixes[c], half...); });
        });
        NSC_UNROLL
        for (int32_t row = 0; row < places; ++row) {
            const bool is_there = row < shapes[codelet.shape].wires && column < shapes[codelet.shape].wires;
            matrix[place_in_matrix(row, column)] = matrix[matrix_size + place_in_matrix(column, row)] = is_there ? made[row] : 0.0f;
        }
    });
}

// P: [batch][wires][wires].
extern "C" __global__ void __launch_bounds__(most_threads) nsc_tensor_forward(
    int64_t batch, int64_t chunks, const int32_t *rows, const int32_t *codelet_rows, const int32_t *listed, const int32_t *level_ends,
    int64_t levels, const float *matrices, float *routed) {
    const Columns columns({rows, codelet_rows, listed, level_ends, levels});
    for (int64_t task = blockIdx.x; task < batch * chunks; task += gridDim.x) {
        const int64_t sample = task / chunks, chunk = task % chunks;
        for (int64_t number = Columns::count * chunk / chunks; number < Columns::count * (chunk + 1) / chunks; ++number) {
            const int64_t column = columns.column(number);
            columns.load_unit_matrix(number, unit<float>);
            columns.for_each_codelet(number, false, [&](int32_t codelet, int32_t) {
                Part part(columns, codelet);
                part.multiply(matrices + (sample * codelet_count + codelet) * 2 * matrix_size);
                part.store();
            });
            columns.for_each_row([&](int32_t row, float &at) {
                if (column < wires) routed[(sample * wires + row) * wires + column] = at * (1 / unit<float>);
            });
        }
    }
}

// From the gradient of P to those of the matrices: [batch][chunks][codelet_count][16 * 16], which begin as 0. kept: for each
// block, 16 * 32 numbers for each codelet.
extern "C" __global__ void __launch_bounds__(most_threads) nsc_tensor_backward(
    int64_t batch, int64_t chunks, const int32_t *rows, const int32_t *codelet_rows, const int32_t *listed, const int32_t *level_ends,
    int64_t levels, const float *matrices, const float *routed_grad, float *matrix_grads, float *kept) {
    const Columns columns({rows, codelet_rows, listed, level_ends, levels});
    constexpr int32_t kept_size = places * columns_at_once;
    kept += int64_t(blockIdx.x) * codelet_count * kept_size;
    for (int64_t task = blockIdx.x; task < batch * chunks; task += gridDim.x) {
        const int64_t sample = task / chunks, chunk = task % chunks;
        for (int64_t number = Columns::count * chunk / chunks; number < Columns::count * (chunk + 1) / chunks; ++number) {
            const int64_t column = columns.column(number);
            columns.load_unit_matrix(number, 1);
            columns.for_each_codelet(number, false, [&](int32_t codelet, int32_t i) {
                Part part(columns, codelet);
                part.keep(kept + i * kept_size);
                part.multiply(matrices + (sample * codelet_count + codelet) * 2 * matrix_size);
                part.store();
            });
            columns.for_each_row([&](int32_t row, float &at) {
                at = column < wires ? routed_grad[(sample * wires + row) * wires + column] : 0.0f;
            });
            columns.for_each_codelet(number, true, [&](int32_t codelet, int32_t i) {
                add_matrix_gradient(columns, codelet, kept + i * kept_size, matrix_grads + (task * codelet_count + codelet) * matrix_size);
                Part part(columns, codelet);
                part.multiply(matrices + ((sample * codelet_count + codelet) * 2 + 1) * matrix_size);
                __syncwarp();
                part.store();
            });
        }
    }
}

// From the gradients of the matrices to those of the weights: [batch][slots].
extern "C" __global__ void __launch_bounds__(matrix_threads) nsc_tensor_weights(
    int64_t batch, int64_t chunks, const float *weights, const float *matrix_grads, float *weight_grads) {
    for_column_of_matrix(batch, [&](int64_t sample, int32_t number, int32_t column) {
        const Codelet codelet = codelets[number];
        const uint32_t mask = 0xffffu << int32_t(threadIdx.x) % 32 / places * places;
        with_code_of(codelet.shape, [&](auto code) {
            using Code = decltype(code);
            const MixesOf<float, Code> mixes(weights_of(weights, sample).backward, codelet.slot);
            float product[Code::length], made[places];
            code.run(UnitColumn{column, 1.0f, made}, [&](int32_t c, float &a, float &b, auto... half) {
                product[c] = difference(a, b, half...);
                mix(a, b, mixes[c], half...);
            });
            const float *matrix = matrix_grads + (sample * chunks * codelet_count + number) * matrix_size;
            code.run_backwards(SummedColumn{column, chunks, matrix}, [&](int32_t c, float &a, float &b, auto... half) {
                product[c] *= difference(a, b, half...);
                mix(a, b, mixes[c], half...);
            });
            NSC_UNROLL
            for (int32_t first = 0; first < Code::length; first += places) {
                float numbers[places];
                NSC_UNROLL
                for (int32_t k = 0; k < places; ++k) numbers[k] = first + k < Code::length ? product[first + k < Code::length ? first + k : 0] : 0.0f;
                const float sum = folded<places>(numbers, column, mask);
                if (first + column < shapes[codelet.shape].comparators) weight_grads[sample * slots + codelet.slot + first + column] = sum;
            }
        });
    });
}
