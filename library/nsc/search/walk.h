// A local search: changes of a network are kept if they cost no more and pass the pool.
#pragma once

#include <nsc/memory.h>
#include <nsc/search/moves.h>
#include <nsc/search/pool.h>

namespace nsc::search {

// Where a search stands: study/search/engine.py has the same fields. A count of -1 stands for no
// list.
struct Standing {
    Comparators current, best, origin;
    uint64_t best_cost;  // of the best since the last start
    int64_t since;       // candidates since it was found
};

struct Walk {
    const Problem &problem;
    Pool pool;
    Random random;
    Comparators candidate, whole;

    Walk(const Problem &stated, Row *rows, uint64_t seed)
        : problem(stated),
          pool{stated.wires,   stated.outputs,      stated.blocks, stated.output_wires,
               stated.behind,  stated.behind_count, rows,          0,
               stated.has_most},
          random{seed} {
        memcpy(static_cast<void *>(rows), stated.rows, bytes_of(stated));
    }

    static size_t bytes_of(const Problem &problem) {
        return sizeof(Row) *
               size_t(problem.blocks * (problem.wires + problem.outputs * (1 + problem.has_most)));
    }

    // A network that passes the pool: each comparator joins two wires that an input which comes out
    // wrong has in the wrong order. Returns whether there is room for one.
    bool start(Comparators &list) {
        Row state[most_wires], behind[most_wires];
        list.count = 0;
        for (int64_t block = 0; block < pool.blocks;) {
            problem.expand(list, whole);
            pool.apply(block, whole, state);
            memcpy(static_cast<void *>(behind), state, sizeof state);
            const int64_t input = pool.wrong(block, behind);
            if (input < 0) {
                ++block;
                continue;
            }
            const auto is_one = [&](int64_t wire) {
                return reinterpret_cast<const uint64_t *>(state + wire)[input / 64] >> input % 64 &
                       1;
            };
            int64_t seen = 0;
            Comparator chosen{};
            for (int64_t lo = 0; lo < problem.wires; ++lo)
                for (int64_t hi = lo + 1; hi < problem.wires; ++hi)
                    if (is_one(lo) && !is_one(hi) && !random.below(++seen)) chosen = joined(lo, hi);
            if (!seen || list.count == most_listed) return false;
            list.add(chosen);
        }
        return true;
    }

    // Returns how many candidates were tried; -1 if there is no network to start from. It starts
    // anew after `patience` candidates without a gain, and may end where the best of all improves.
    int64_t run(Standing &standing, int64_t candidates, int64_t patience, bool stops_at_gain) {
        Comparators &current = standing.current;
        uint64_t best_cost = ~uint64_t(0), step_cost = 0;
        if (standing.best.count >= 0) {
            problem.expand(standing.best, whole);
            best_cost = cost_of(problem, whole);
        }
        if (current.count >= 0) {
            problem.expand(current, whole);
            step_cost = step_cost_of(problem, whole);
        }
        // Takes a list that passes; returns whether it is better than the best.
        const auto step_to = [&](const Comparators &list) {
            current = list;
            remove_idle(problem, current);
            problem.expand(current, whole);
            step_cost = step_cost_of(problem, whole);
            const uint64_t cost = cost_of(problem, whole);
            if (cost < standing.best_cost) {
                standing.best_cost = cost;
                standing.since = 0;
            }
            if (cost >= best_cost) return false;
            best_cost = cost;
            standing.best = current;
            return true;
        };
        for (int64_t tried = 0; tried < candidates; ++tried) {
            if (current.count < 0 || standing.since >= patience) {
                if (standing.origin.count >= 0)
                    candidate = standing.origin;
                else if (!start(candidate))
                    return -1;
                standing.best_cost = ~uint64_t(0);
                step_to(candidate);
            }
            ++standing.since;
            candidate = current;
            do change(problem, random, candidate);
            while (random.below(2));
            problem.expand(candidate, whole);
            if (step_cost_of(problem, whole) > step_cost || !pool.passes(whole)) continue;
            if (step_to(candidate) && stops_at_gain) return tried + 1;
        }
        return candidates;
    }
};

}  // namespace nsc::search

// Tries candidates; returns how many, -1 if no network passes the pool, -2 without memory.
NSC_API int64_t nsc_search(const nsc::search::Problem *problem, nsc::search::Standing *standing,
                           uint64_t seed, int64_t candidates, int64_t patience,
                           int64_t stops_at_gain) {
    const nsc::Memory rows(int64_t(nsc::search::Walk::bytes_of(*problem)));
    if (!rows.start) return -2;
    return nsc::search::Walk(*problem, rows.get<nsc::search::Row>(), seed)
        .run(*standing, candidates, patience, stops_at_gain);
}

// Which of some pairs of a list's comparators, each a pair of places or twice the same, can be
// left out so that the pool passes. Returns 0, or -2 without memory.
NSC_API int64_t nsc_removable(const nsc::search::Problem *problem,
                              const nsc::search::Comparators *list, const int64_t *places,
                              int64_t count, bool *removable) {
    const nsc::Memory rows(int64_t(nsc::search::Walk::bytes_of(*problem)));
    if (!rows.start) return -2;
    nsc::search::Walk walk(*problem, rows.get<nsc::search::Row>(), 0);
    for (int64_t k = 0; k < count; ++k) {
        const int64_t first = places[2 * k], second = places[2 * k + 1];
        walk.candidate = *list;
        walk.candidate.remove(second);
        if (first != second) walk.candidate.remove(first);
        problem->expand(walk.candidate, walk.whole);
        removable[k] = walk.pool.passes(walk.whole);
    }
    return 0;
}
