"""Mutants of kernels: wrong arithmetic in the place of right arithmetic, for each template of a kernel."""

from __future__ import annotations

# File of templates/ to its mutants. Each is a text that the file has once, in which « and » enclose an
# expression, and the expression that takes its place.
MUTANTS: dict[str, list[tuple[str, str]]] = {
    "cpp/binary_cross_entropy.cpp": [
        ("complement(p)) / wires / «wires»;", "1.001 * wires"),
        ("rank[k] == row ? «-slope_of_log(p.p)» :", "slope_of_log(p.p)"),
    ],
    "cpp/blocks.cpp": [
        ("k * lanes<real>, «group[row * side + k] * scale», count", "group[row * side + k]"),
        ("call.ranks_of(sample)[«column + k»] :", "column"),
    ],
    "cpp/call.cpp": [
        ("{ return steepness[«sample * steepness_stride»]; }", "0"),
        ("any |= «reaches[i][word] & wanted[k][word]»;", "0"),
    ],
    "cpp/checker.cpp.j2": [
        ("lo = a & b, hi = «a | b»;", "b"),
        ("const int32_t missing = «wires - rank - ones»;", "wires - rank"),
    ],
    "cpp/codelets.cpp.j2": [("return {block + «codelet.base», spreads", "0")],
    "cpp/comparators.cpp.j2": [
        ("block[at[i].lo] = «low + tail * gap»,", "low"),
        ("block[at[i].hi] = «high - tail * gap»;", "high"),
        (", v = «steepnesses[which] * activation[k]»;", "real(1.01) * steepnesses[which] * activation[k]"),
        ("kept.backward.keep[place] = «turned ? tail : rest»,", "rest"),
        ("bits_of<real>(«tail - change * slope») &", "tail"),
        ("block[at[i].lo] = «mixed(m, a, b) - shift»;", "mixed(m, a, b)"),
        ("steepness_grad[i] = «through * activation[i]»;", "through"),
        ("gap = «tail == 0 ? Row{} : gap»;", "gap"),
        ("    lo = «a + share * gap»;", "a - share * gap"),
    ],
    "cpp/cones.cpp.j2": [
        ("level_of[lo] = level_of[hi] = «level + 1»;", "level"),
        ("any |= «on[each.rows[row]][word]»;", "0"),
        ("next->slot = codelet.slot + «done»,", "0"),
        ("if («is_turned(codelet, i)») exchange", "false"),
    ],
    "cpp/cross_entropy.cpp": [
        ("rests[k])) / «wires»;", "1.001 * wires"),
        ("grad[rank[k]][k] = «-share» * slope_of_log", "share"),
    ],
    "cpp/keys_pass.cpp": [
        ("call.steepness_of(«k < count ? first + k : first»);", "first"),
        ("real *to = values + «task.place * wires»;", "0"),
    ],
    "cpp/levels.cpp.j2": [
        ("by_slot[at[k].slot] = «(hi[k] - lo[k])» *", "lo[k]"),
        ("into[k] = «weight_grad[slot]»;", "0"),
    ],
    "cpp/losses.cpp.j2": [
        ("(sums[0] + sums[1]) + «(sums[2] + sums[3])»;", "sums[2]"),
        ("is_large(p) ? «rest_of_column» :", "2 * rest_of_column"),
    ],
    "cpp/mixes.cpp.j2": [
        ("if (keeping) kept[c] = «a - b»;", "a"),
        ("products[c] += differences[c] * «(a - b)»;", "b"),
    ],
    "cpp/narrow_cones.cpp.j2": [("uint8_t(«reaches ? butterfly.rows[k] : wires»);", "butterfly.rows[k]")],
    "cpp/narrow_pass.cpp": [
        ("differences[column * count + c] = «a - b»;", "b - a"),
        ("routed[samples.first + k] = «real(losses[k])»;", "real(losses[k] + 0.001)"),
        ("cone, «w.backward», end", "w.forward"),
        ("differences[column * count + c] * «(a - b)»;", "a"),
    ],
    "cpp/pool.cpp": [("return «total * piece / pieces»;", "total * piece / (pieces + 1)")],
    "cpp/registers.cpp": [("memcpy(to, &row, sizeof(T) * «count»);", "count - 1")],
    "cpp/routing_pass.cpp.j2": [
        ("has_columns(call.routing) ? «real(1)» :", "real(2)"),
        (
            "routed[first + b] = «sum_of<real>(losses + b * chunks, chunks)»;",
            "losses[b * chunks] + real(0.001)",
        ),
        ("steps, «w.backward.keep», end", "w.forward.keep"),
    ],
    "cpp/samples.cpp": [
        ("+= «(grad[at.hi] - grad[at.lo])» *", "grad[at.hi]"),
        ("block[wire + k] = tile[«k»];", "0"),
    ],
    "cpp/vectors.cpp": [
        ("Vec<T> row = all(«value»);", "T(0)"),
        ("return «__builtin_log(x)»;", "2 * __builtin_log(x)"),
        ("if («!(i & bit)») exchange_quarters", "false"),
    ],
    "exact/call.cpp": [
        ("input.x + slab * input.slab + «first * input.sample»,", "0"),
        ("all<Key>(descending ? «Key(-1)» : Key(0));", "Key(0)"),
    ],
    "exact/forms.cpp": [
        ("items[0] = «Element::key(bits, descending)»;", "bits"),
        ("all<Place>(«Place(place)»)};", "Place(0)"),
        ("(Vec<int64_t>)(«y.place < x.place»));", "y.place > x.place"),
    ],
    "exact/groups.cpp": [
        ("Form::enter(tile[k], «first + k», descending", "first"),
        ("const int64_t to = «o * values.wire» + c", "0"),
    ],
    "exact/kernel.cpp.j2": [("NSC_INLINE { «Form::order(lo, hi)»; }", "Form::order(hi, lo)")],
    "exact/tiles.cpp": [("zip_lower<T>(rows[i], rows[«i + half»])", "i")],
    "shared/codelets.j2": [
        (
            "        auto w{{ wire }} = «rows.load({{ wire }})»;\n//% endfor\n//% for c in shape.back",
            "rows.load(0)",
        )
    ],
    "shared/elements.h": [
        ("ordered(Vec<Key> bits) { return «bits ^ ((bits >> (8 * sizeof(whole) - 1)) & most)»; }", "bits"),
        ("Vec<Key> key(Vec<Key> bits, Vec<Key> descending) { return «bits ^ descending»; }", "~bits"),
    ],
    "shared/functions.j2": [
        ("sum = «sum * x + coefficients.at[k]»;", "sum + x"),
        ("return odds / («1 + odds»);", "2 + odds"),
        ("(bits_of<real>(x) >> «{{ relaxation.root_shift }}»));", "1"),
        ("return («factor + factor * small_exp_less_1<real>(r)») *", "factor"),
        ("polynomial(Constants<real>::tail(), z) / «(u + 4)»);", "(2 * u + 4)"),
        ("= «(z + z * w * polynomial(Constants<real>::atan(), w))» *", "2 * z"),
        ("s = «(m - 1)» / (m + 1),", "m"),
    ],
    "shared/losses.j2": [
        (": «logarithm(Log<real>(of.p / unit<real>))»;", "Log<real>(of.p)"),
        ("Log<real>(«lowest_log») :", "lowest_log + 1"),
        ("? real(0) : «1 / p»;", "2 / p"),
        ("return «1 / (p < least ? least : p)»;", "1 / p"),
    ],
    "shared/mixes.h": [("hi = «mixed(m, b, a)»;", "mixed(m, a, b)")],
    "shared/relaxation.j2": [
        ("return «{{ relaxation.tail }}»;", "all(real(0.25))"),
        ("return «{{ relaxation.slope }}»;", "2 * keep * swap"),
        (
            "return «inverse_power<real>(size + real({{ relaxation.art_epsilon }}))»;",
            "real(1.01) * inverse_power<real>(size + real({{ relaxation.art_epsilon }}))",
        ),
        ("return «{{ relaxation.rest_literal }}» +", "real(2)"),
    ],
    "shared/rows.h": [("Row load(int32_t k) const { return first[«spread[k] * pitch»]; }", "0")],
    "shared/tables.j2": [("return «turns[codelet.turns][comparator / 64] >> comparator % 64 & 1»;", "0")],
    "shared/weights.j2": [("return m.keep * a + «m.swap» * b;", "m.keep")],
    "filter/borders.cpp": [
        ("at < length ? at : «2 * length - 2 - at»;", "length - 1"),
        ("return place < 0 ? 0 : «length - 1»;", "0"),
        ("store(keys + x, «Element::key(load(keys + x), Vec<Key>{})»);", "load(keys + x)"),
    ],
    "filter/call.cpp": [
        (
            "0; r < image_rows; ++r) strip.rows[r] = lines[line_of(r / step_rows, above + «r % step_rows»)];",
            "0",
        )
    ],
    "filter/kernel.cpp.j2": [("const int64_t x = register_at<Key>(«place», places);", "0")],
    "filter/strips.cpp": [("lo = «x < y ? x : y», hi", "x")],
}

# Files of templates/ without mutants, and why.
WITHOUT = {
    "cpp/attributes.h": "says how functions are compiled",
    "cpp/interface.h.j2": "declares functions",
    "cpp/kernel.cpp.j2": "includes the other parts, and passes arguments on",
    "cpp/memory.cpp": "gives memory, and computes nothing",
    "shared/halves.h": "names types",
    "shared/routings.j2": "names routings",
    "shared/wholes.h": "names types",
}
