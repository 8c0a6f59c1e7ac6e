"""Mutants of kernels: wrong arithmetic in the place of right arithmetic, for each file of a kernel."""

from __future__ import annotations

# File to its mutants. Each is a text that the file has once, in which « and » enclose an
# expression, and the expression that takes its place.
MUTANTS: dict[str, list[tuple[str, str]]] = {
    "library/nsc/relaxed/losses.h": [
        ("return «-log_of<real>(p)»;", "log_of<real>(p)"),
        ("return «-slope_of_log<Relaxation, real>(p.p)»;", "slope_of_log<Relaxation, real>(p.p)"),
        ("log_of<real>(«is_true ? p : complement(p)»);", "p"),
        (": «slope_of_log<Relaxation, real>(p.rest)»;", "-slope_of_log<Relaxation, real>(p.rest)"),
        ("share != 0 ? share * of(«true») : mean;", "false"),
        ("«(1 - share)» * of(false)", "share"),
        ("slope : slope - «Loss::template of<real>(p, false)»;", "0 * p.p"),
        ("of_truth ? item : «item * (1 / Weight(wires))»;", "1.001 * item / Weight(wires)"),
        ("of_truth ? «item» :", "1.001 * item"),
    ],
    "library/nsc/relaxed/targets.h": [
        ("if (rank == ignored) return {0, 0, «0»};", "weight"),
        ("return {int32_t(rank), int32_t(rank), «weight»};", "1 / Log<real>(wires)"),
        ("return {int32_t(share(0, column)), «int32_t(share(1, column))»,", "int32_t(share(0, column))"),
        ("«Log<real>(share(2, column))»};", "1 / Log<real>(wires)"),
        ("«Log<real>(share(wires, column))»};", "1 / Log<real>(wires)"),
        ("return 1 / «Log<real>(last - first + 1)»;", "1"),
        ("return form == of_ranks ? «ranks()[column] != ignored»", "false"),
    ],
    "library/nsc/relaxed/groups.h": [
        ("k * lanes<real>, «group[row * group_blocks + k] * scale», count", "group[row * group_blocks + k]"),
        ("call.ranks_of(sample)[«column + k»] :", "column"),
    ],
    "library/nsc/relaxed/call.h": [
        ("{ return steepness[«sample * steepness_stride»]; }", "0"),
        ("uint8_t((«reaches[word * count + i] & wanted[k]») != 0)", "0"),
    ],
    "library/nsc/relaxed/comparators.h": [
        ("block[at[i].lo] = «low + tail * gap»,", "low"),
        ("block[at[i].hi] = «high - tail * gap»;", "high"),
        (", v = «steepnesses[which] * activation[k]»;", "real(1.01) * steepnesses[which] * activation[k]"),
        ("kept.backward.keep[place] = «swapped ? tail : rest»,", "rest"),
        ("bits_of<real>(«tail - change * slope») &", "tail"),
        ("block[at[i].lo] = «mixed(m, a, b) - shift»;", "mixed(m, a, b)"),
        ("steepness_grad[i] = «through * activation[i]»;", "through"),
        ("gap = «tail == 0 ? Row{} : gap»;", "gap"),
        ("    lo = «a + share * gap»;", "a - share * gap"),
    ],
    "library/nsc/relaxed/plan.h": [
        ("layer_of[lo] = layer_of[hi] = «layer + 1»;", "layer"),
        ("any |= «on[each.rows[row]]»;", "0"),
        ("next->slot = codelet.slot + «done»,", "0"),
        ("if («network.flips[codelet.flips].words[i / 64] >> i % 64 & 1») exchange", "false"),
        ("uint8_t(«reaches ? butterfly.rows[k] : plan.wires»);", "butterfly.rows[k]"),
    ],
    "library/nsc/relaxed/keys_pass.h": [
        ("call.steepness_of(«k < count ? first + k : first»);", "first"),
        ("*to = values + «task.place * plan.wires»;", "0"),
    ],
    "library/nsc/relaxed/layers.h": [
        ("pair[0] = «hi[k] - lo[k]»,", "lo[k]"),
        ("into[k] = «weight_grad[slot]»;", "0"),
    ],
    "library/nsc/relaxed/columns.h": [
        ("(sums[0] + sums[1]) + «(sums[2] + sums[3])»;", "sums[2]"),
        ("is_large<real>(p) ? «rests» :", "2 * rests"),
        ("outside += «is_in ? Vec<real>{} : block[row]»;", "block[row]"),
        ("return weights != 0 ? «weights * slope» :", "slope * real(0.25)"),
        ("return has(row) ? «part» :", "all(real(1))"),
        ("adjacent &= «shares && share_of[k] == share_of[0] + k»;", "shares"),
        ("«negated ? -slope : slope»;", "slope"),
        ("real(«weights[k]» *", "-weights[k]"),
    ],
    "library/nsc/relaxed/butterflies.h": [
        ("if (keeping) kept[c] = «a - b»;", "a"),
        ("products[c] += differences[c] * «(a - b)»;", "b"),
    ],
    "library/nsc/relaxed/narrow_pass.h": [
        ("differences[column * count + c] = «a - b»;", "b - a"),
        ("routed[samples.first + k] = «real(losses[k])»;", "real(losses[k] + 0.001)"),
        ("cone, «w.backward», end", "w.forward"),
        ("differences[column * count + c] * «(a - b)»;", "a"),
    ],
    "library/nsc/threads.h": [("return «total * part / parts»;", "total * part / (parts + 1)")],
    "library/nsc/registers.h": [("memcpy(to, &row, sizeof(T) * «count»);", "count - 1")],
    "library/nsc/relaxed/routing_pass.h": [
        ("has_columns(call.routing) ? «real(1)» :", "real(2)"),
        (
            "routed[first + b] = «sum_of<real>(losses + b * chunks, chunks)»;",
            "losses[b * chunks] + real(0.001)",
        ),
        ("part, «w.backward.keep», end", "w.forward.keep"),
    ],
    "library/nsc/relaxed/block_paths.h": [("sums = (of_zero - of_one) * «from»;", "Row{}")],
    "library/nsc/relaxed/final_merge.h": [
        ("first.slots[plan.merge_slots[i]] += «weight_grads[i]»;", "0"),
        ("++halves, bits |= int64_t(1) << «side»;", "0"),
        ("out == side ? side_unit<real> : «-side_unit<real>»;", "side_unit<real>"),
        ("Row{} : before + «behind[ends.at[k] + 1]»);", "Row{}"),
        ("add_part(grads, of_long(number, false), parts + «tile»);", "0"),
    ],
    "library/nsc/relaxed/merge_columns.h": [
        ("store(grad, load(grad) + «slope[lane] * sums[lane][part]»);", "Row{}"),
        ("if (negates) slope[lane] = «-slope[lane]»;", "slope[lane]"),
    ],
    "library/nsc/relaxed/samples.h": [
        ("+= «(hi - lo)» *", "hi"),
        ("block[wire + k] = tile[«k»];", "0"),
        ("move_gradients<real>(a, b, «shares[c]»);", "Vec<real>{}"),
    ],
    "library/nsc/vectors.h": [
        ("Vec<T> row = all(«value»);", "T(0)"),
        ("&v) + «which * int64_t(sizeof part)»,", "0"),
        ("if («!(i & bit)») exchange_quarters", "false"),
    ],
    "library/nsc/exact/blocks.h": [
        ("Form::enter(tile[k], «first + k», descending", "first"),
        ("const int64_t to = «o * values.wire» + c", "0"),
        ("«block[(c * item_registers + h) * wires + wire]»;", "block[h * wires + wire]"),
    ],
    "library/nsc/exact/groups.h": [("input.x + slab * input.slab + «first * input.sample»,", "0")],
    "library/nsc/exact/indexed_values.h": [
        ("all<Index>(«Index(index)»)};", "Index(0)"),
        ("(Vec<int64_t>)(«y.index < x.index»));", "y.index > x.index"),
    ],
    "library/nsc/exact/indices.h": [
        ("Stored *to = rows + «(p * columns + k) * stride»;", "k * stride"),
    ],
    "library/nsc/exact/kernel.h": [("all<Key>(descending ? «Key(-1)» : Key(0));", "Key(0)")],
    "library/nsc/exact/spans.h": [
        ("offset(int64_t w, int64_t s) const { return «w * wire + s * sample»; }", "w * wire")
    ],
    "library/nsc/exact/tiles.h": [("zip_lower<T>(rows[i], rows[«i + half»])", "i")],
    "library/nsc/exact/values.h": [
        ("items[0] = «Element::key(bits, descending)»;", "bits"),
        ("a = «x < y ? x : y», b", "x"),
    ],
    "library/nsc/elements.h": [
        ("ordered(Vec<Key> bits) { return «bits ^ ((bits >> (8 * sizeof(integer) - 1)) & most)»; }", "bits"),
        ("Vec<Key> key(Vec<Key> bits, Vec<Key> descending) { return «bits ^ descending»; }", "~bits"),
    ],
    "library/nsc/relaxed/functions.h": [
        ("sum = «sum * x + coefficients.at[k]»;", "sum + x"),
        ("return odds / («1 + odds»);", "2 + odds"),
        ("(bits_of<real>(x) >> «root / 2»));", "1"),
        ("return («factor + factor * small_exp_less_1<real>(r)») *", "factor"),
        ("sum_of(Constants<real>::tail(), z) / «(u + 4)»);", "(2 * u + 4)"),
        ("= «(z + z * w * sum_of(Constants<real>::atan(), w))» *", "2 * z"),
        ("s = «(m - 1)» / (m + 1),", "m"),
        ("(log.of_fraction + «log.exponent * C::log2_low» +", "0 * log.exponent"),
        ("log : «logarithm<real>(u)» + rounded_off / u;", "x"),
    ],
    "library/nsc/relaxed/probability.h": [
        (": «logarithm<real>(of.p / unit<real>)»;", "of.p"),
        ("all(real(«lowest_log»))", "lowest_log + 1"),
        ("? Vec<real>{} : «1 / p»;", "2 / p"),
        ("return «1 / (p < least ? all(least) : p)»;", "1 / p"),
    ],
    "library/nsc/relaxed/relaxations.h": [
        ("return «logistic_tail<real>(t)»;", "all(real(0.25))"),
        ("return «keep * swap»;", "2 * keep * swap"),
        ("return «inverse_root<root, real>(size + real(art_epsilon))»;", "power_of<root>(size)"),
        ("* real(art_epsilon) * «power_of<root>(stretch)»;", "stretch"),
    ],
    "library/nsc/relaxed/weights.h": [
        ("return m.keep * a + «m.swap» * b;", "m.keep"),
        ("    hi = «mixed(m, b, a)»;", "mixed(m, a, b)"),
    ],
    "library/nsc/windows/kernel.h": [
        (
            "0; r < image_rows; ++r) strip.rows[r] = lines[line_of(r / step_rows, above + «r % step_rows»)];",
            "0",
        )
    ],
    "library/nsc/windows/modes.h": [
        ("at < length ? at : «2 * length - 2 - at»;", "length - 1"),
        ("return position < 0 ? 0 : «length - 1»;", "0"),
    ],
    "library/nsc/windows/rims.h": [
        ("store(keys + x, «Element::key(load(keys + x), Vec<Key>{})»);", "load(keys + x)"),
        ("keys[x] = row && rim.values[x] >= 0 ? «row[rim.values[x]]» : outside;", "row[0]"),
    ],
    "library/nsc/windows/strips.h": [("const int64_t x = register_at<Key>(«at», width);", "0")],
    "library/nsc/windows/window.h": [
        ("x + lanes<Key> <= width ? x : «width - lanes<Key>»;", "width - lanes<Key> - 1")
    ],
}

# Files without mutants, and why.
WITHOUT = {
    "library/nsc/attributes.h": "says how functions are compiled",
    "library/nsc/deploy/exact.h": "runs without nsc: see tests/deploy",
    "library/nsc/deploy/filters.h": "runs without nsc: see tests/deploy",
    "library/nsc/deploy/kernels.h": "runs without nsc: see tests/deploy",
    "library/nsc/deploy/operators.h": "runs without nsc: see tests/deploy",
    "library/nsc/deploy/relaxed.h": "runs without nsc: see tests/deploy",
    "library/nsc/deploy/tensors.h": "runs without nsc: see tests/deploy",
    "library/nsc/exact/network.h": "names types",
    "library/nsc/integers.h": "names types",
    "library/nsc/memory.h": "gives memory, and computes nothing",
    "library/nsc/numbers.h": "includes others",
    "library/nsc/relaxed/engine.h": "passes arguments on",
    "library/nsc/relaxed/kernel.h": "passes arguments on",
    "library/nsc/relaxed/long_pass.h": "runs from 8,192 wires on: see tests/runtime/test_long.py",
    "library/nsc/relaxed/network.h": "names types",
    "library/nsc/relaxed/parameters.h": "names parameters",
    "library/nsc/relaxed/routings.h": "names routings",
    "library/nsc/search/comparators.h": "is of the search, whose networks are proved anew",
    "library/nsc/search/moves.h": "is of the search, whose networks are proved anew",
    "library/nsc/search/pool.h": "is of the search, whose networks are proved anew",
    "library/nsc/search/problem.h": "is of the search, whose networks are proved anew",
    "library/nsc/search/walk.h": "is of the search, whose networks are proved anew",
    "templates/relaxed/engine.cpp.j2": "names a relaxation",
    "templates/relaxed/interface.h.j2": "declares functions",
    "templates/relaxed/kernel.cpp.j2": "lays out tables",
    "templates/exact/kernel.cpp.j2": "lays out a network",
    "templates/windows/kernel.cpp.j2": "lays out a window",
    "templates/relaxed/relaxation.j2": "names a relaxation",
    "templates/relaxed/module.py.j2": "is a module of Python",
    "templates/windows/filter.py.j2": "is a module of Python",
}
