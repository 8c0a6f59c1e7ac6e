"""Check a certificate of nsc: python check_certificate.py CERTIFICATE [NETWORK].

The page Certificates defines the format, and says why each rule is sound; docstrings name its sections.
Prints `accepted: ...` (exit code 0) or `rejected: ...` (1), or says why it cannot tell (2).
"""

import re
import sys
from array import array
from bisect import bisect_left
from pathlib import Path
from struct import iter_unpack

LINE = (  # any line of a certificate; N is a number, P one that is not 0
    "nsc-certificate 1|wires N|layer( N:N)+|presorted N( N)+|ranks N( N)+|set N N( N)+|behind( N:N)+|proof "
    "(exhaustion|primitive|merges|patterns|clauses)|merge (bitonic|odd-even) (none|above|below) N N|inside N|"
    "join N N|(-?P )*0|end"
)
GRAMMAR = re.compile(LINE.replace("N", "(0|P)").replace("P", "[1-9][0-9]{0,17}").replace("(", "(?:").encode())
BITS = [bytes(v >> i & 1 for v in range(256)) for i in range(8)]  # to translate bytes to their bit i
PIECE, LARGE = 1 << 22, 1 << 28  # bytes that are worked on at a time; pairs of patterns of one join
Component = tuple[dict[int, bytes], int, "array[int]"]  # bits of wires, number of inputs, numbers of zeros


class Certificate:
    """A network, its claims, and links (The text, Sets, Comparators that do not matter, Merges)."""

    def __init__(self, text: bytes) -> None:
        self.lines, self.at, self.layers, self.runs = [*text.split(b"\n"), b""], 0, array("i"), []
        self.read("nsc-certificate")
        self.n = n = self.read("wires")[0]
        self.demand(1 <= n <= 1 << 20, "not 1 ... 1048576 wires")
        while self.word() == "layer":
            ends = self.read("layer")
            self.demand(max(ends) < n and len(set(ends)) == len(ends), "a wire is too large or stands twice")
            self.layers.extend(ends)
        self.depth = self.at - 2
        while self.word() == "presorted":
            self.runs.append(self.read("presorted"))
        free = set(range(n)).difference(*self.runs)
        self.demand(len(free) + sum(map(len, self.runs)) == n, "a presorted wire is too large or twice there")
        self.runs += [[wire] for wire in sorted(free)]
        self.claims, wires, ranks, set_of = 0, list[int](), list[int](), dict[int, int]()
        while self.claims == 0 or self.word() in ("ranks", "set"):
            word, self.claims = "set" if self.word() == "set" else "ranks", self.claims + 1
            first, *new = self.read(word)
            wires += new
            ranks += range(first, first + len(new))
            set_of |= {wire: self.claims for wire in new if word == "set"}
        once = len(set(wires)) == len(set(ranks)) == len(wires)
        self.demand(once and max(wires + ranks) < n, "a wire or rank claimed is too large or stands twice")
        self.wanted = sorted({*ranks, *(r + 1 for r in ranks), 2 * n})  # (Z) is about these numbers of zeros
        ends = self.read("behind") if self.word() == "behind" else []
        for a, b in zip(ends[::2], ends[1::2], strict=True):
            self.demand(a != b and set_of.get(a, 0) == set_of.get(b), f"{a}:{b} is not within a set")
        both = self.layers + array("i", ends)
        self.lo, self.hi, self.size = both[::2], both[1::2], len(both) // 2
        self.after_lo, self.after_hi = array("i", bytes(4 * self.size)), array("i", bytes(4 * self.size))
        rank = dict(zip(wires, ranks, strict=True))
        self.rank, wanted = [rank.get(w, -1) for w in range(n)], bytearray(w in rank for w in range(n))
        self.head = head = list(range(self.size, self.size + n))  # `size` and more: no next comparator
        for c, a, b in zip(range(self.size - 1, -1, -1), reversed(self.lo), reversed(self.hi), strict=True):
            if wanted[a] or wanted[b]:
                wanted[a] = wanted[b] = 1
                self.after_lo[c], self.after_hi[c] = head[a], head[b]
                head[a] = head[b] = c
        self.read("proof")
        self.method = self.lines[self.at - 1].split()[1].decode()

    def demand(self, holds: bool, reason: str) -> None:
        """Reject the certificate unless a rule holds."""
        if not holds:
            raise ValueError(f"line {self.at}: {reason}")

    def word(self) -> str:
        """Return the first word of the next line."""
        return self.lines[self.at].split(b" ", 1)[0].decode("latin-1")

    def read(self, word: str) -> list[int]:
        """Return the numbers of the next line, which begins with this word, or is a clause if it is empty."""
        found, self.at = self.word(), self.at + 1
        self.demand(found == word or (not word and found[-1:].isdigit()), f"no `{word or '0'}` line")
        self.demand(GRAMMAR.fullmatch(self.lines[self.at - 1]) is not None, "not as the format has it")
        return list(map(int, re.findall(rb"-?[0-9]+", self.lines[self.at - 1])))

    def is_next(self, c: int) -> bool:
        """Return whether a comparator is the next one of both its wires (Merges)."""
        return c < self.size and self.head[self.lo[c]] == self.head[self.hi[c]] == c

    def take(self, c: int) -> tuple[int, int]:
        """Take a comparator; return LO and HI (Merges)."""
        self.demand(self.is_next(c), f"comparator {c} is not the next one of both its wires")
        a, b = self.lo[c], self.hi[c]
        self.head[a], self.head[b] = self.after_lo[c], self.after_hi[c]
        return a, b


def primitive(cert: Certificate) -> None:
    """Run a network of neighbours on the reversed input (Primitive)."""
    line, ranked = list(range(cert.n))[::-1], [w for w in range(cert.n) if cert.rank[w] >= 0]
    outermost = ranked[-1] < len(ranked) or ranked[0] >= cert.n - len(ranked)
    cert.demand(outermost and len(cert.runs) == cert.n, "other wires have ranks, or some are presorted")
    for c in filter(cert.is_next, range(cert.size)):
        a, b = cert.take(c)
        cert.demand(b == a + 1, f"the wires of comparator {c} are no neighbours")
        line[a : b + 1] = sorted(line[a : b + 1])
    cert.demand(all(line[w] == w == cert.rank[w] for w in ranked), "the reversed input comes out wrong")


def merges(cert: Certificate) -> None:
    """Follow the steps of a proof by merges (Merges). An infinite entry of a list is -1."""
    head, lo, hi, after_lo, after_hi = cert.head, cert.lo, cert.hi, cert.after_lo, cert.after_hi
    runs = {min(run): run for run in cert.runs}
    spot = {wire: (key, k) for key, run in runs.items() for k, wire in enumerate(run)}

    def compare(xs: list[int], ys: list[int]) -> list[int]:
        result = list[int]()  # minimum, maximum, minimum, maximum, ...
        for x, y in zip(xs, ys, strict=False):
            if x < 0 or y < 0:
                low, high = (-1, max(x, y))[:: -1 if b"above" in line else 1]
            else:
                c = head[x]
                cert.demand(c == head[y], "the next comparators of two wires to compare are different")
                low, high = lo[c], hi[c]
                head[low], head[high] = after_lo[c], after_hi[c]
            result += low, high
        return result

    def bitonic(a: list[int], b: list[int]) -> list[int]:
        half, s = len(a), a + b[::-1]
        cert.demand(half == len(b) and half & (half - 1) == 0, "the lengths are not the same power of two")
        for _ in range(half.bit_length()):  # places i and half + i become 2i and 2i + 1: in the end as before
            s = compare(s[:half], s[half:])
        return s

    def odd_even(a: list[int], b: list[int]) -> list[int]:
        if not a or not b:
            return a + b
        if len(a) == len(b) == 1:
            return compare(a, b)
        v, w = odd_even(a[::2], b[::2]), odd_even(a[1::2], b[1::2])
        return v[:1] + compare(w, v[1:]) + v[len(w) + 1 :] + w[len(v) - 1 :]

    def inside(c: int) -> None:
        a, b = cert.take(c)
        (p, i), (q, j) = spot[a], spot[b]
        cert.demand(p == q, f"the wires of comparator {c} are in different runs")
        if i > j:
            runs[p][i], runs[p][j], spot[a], spot[b] = b, a, (p, j), (p, i)

    while cert.word() != "end":
        if cert.word() == "inside":
            inside(*cert.read("inside"))
            continue
        (p, q), line = cert.read("merge"), cert.lines[cert.at - 1]
        cert.demand(p != q and p in runs and q in runs, "these are not the names of two runs")
        a, b = runs.pop(p), runs.pop(q)
        for run in (a, b) if b"none" not in line else ():
            at = len(run) if b"above" in line else 0
            run[at:at] = [-1] * ((1 << (max(len(a), len(b)) - 1).bit_length()) - len(run))
        merged = bitonic(a, b) if b"bitonic" in line else odd_even(a, b)
        runs[min(p, q)] = run = [wire for wire in merged if wire >= 0]
        spot.update((wire, (min(p, q), k)) for k, wire in enumerate(run))
    for c in filter(cert.is_next, range(cert.size)):
        inside(c)
    right = len(runs) == 1 and all(cert.rank[wire] in (-1, k) for k, wire in enumerate(runs[0]))
    cert.demand(right, "in the end there are several runs, or a wire has not its rank")


def settle(cert: Certificate, of: dict[int, Component], a: Component, b: Component) -> int:
    """Join two components, settle the new one, return the number of its patterns (join, rules 1 to 4)."""
    a, b = (a, b) if len(a[2]) >= len(b[2]) else (b, a)
    wires, m, taken = [*a[0], *b[0]], a[1] + b[1], list[tuple[int, int]]()
    ready, own, rest = {cert.head[wire] for wire in wires}, set(wires), cert.n - m
    while ready:
        if cert.is_next(c := ready.pop()) and cert.lo[c] in own and cert.hi[c] in own:
            taken.append(cert.take(c))
            ready.update(cert.head[wire] for wire in taken[-1])
    left = [wire for wire in wires if cert.head[wire] < cert.size or cert.rank[wire] >= 0]
    width, length, rows, wanted = -(-len(left) // 8), -(-len(left) // 8) + 4, set[bytes](), cert.wanted
    tails = {array("I", [z]).tobytes(): z for z in range(m + 1) if wanted[bisect_left(wanted, z)] <= z + rest}
    step, block = max(1, PIECE // (len(a[2]) * (len(wires) + 50))), (bytes(len(a[2])), b"\1" * len(a[2]))
    plus = {y: array("I", [x + y for x in a[2]]).tobytes() for y in set(b[2])}
    # A wire has a byte, 0 or 1, for each pattern. A row is one pattern: a bit for each wire, then its zeros.
    for i in range(0, len(b[2]), step):
        zeros = array("I", b"".join([plus[y] for y in b[2][i : i + step]]))
        value = {w: int.from_bytes(v * len(b[2][i : i + step]), "little") for w, v in a[0].items()}
        parts = ((w, b"".join([block[bit] for bit in v[i : i + step]])) for w, v in b[0].items())
        value |= {w: int.from_bytes(part, "little") for w, part in parts}
        for x, y in taken:
            value[x], value[y] = value[x] & value[y], value[x] | value[y]
        octets = (sum(value[w] << j for j, w in enumerate(left[k : k + 8])) for k in range(0, len(left), 8))
        columns, text = [o.to_bytes(len(zeros), "little") for o in octets], bytearray(len(zeros) * length)
        for k, column in enumerate(columns + [zeros.tobytes()[k::4] for k in range(4)]):
            text[k::length] = column
        rows |= {row for (row,) in set(iter_unpack(f"{length}s", text)) if row[width:] in tails}
    whole, zeros = b"".join(rows), array("I", [tails[row[width:]] for row in rows])
    values = {w: whole[i >> 3 :: length].translate(BITS[i & 7]) for i, w in enumerate(left)}
    for wire, bits in values.items() if all(cert.head[wire] >= cert.size for wire in left) else ():
        r = cert.rank[wire]
        right = all(z + rest <= r if bit else z > r for bit, z in zip(bits, zeros, strict=True))
        cert.demand(right, f"wire {wire} is wrong in a pattern")
    of.update(dict.fromkeys(left, (values, m, zeros)))
    return len(rows)


def patterns(cert: Certificate) -> None:
    """Follow the steps of a proof by patterns, or find some for exhaustion (Patterns, Exhaustion)."""
    of, lo, hi = dict[int, Component](), cert.lo, cert.hi
    for run in cert.runs:
        bits = {wire: b"\1" * (i + 1) + bytes(len(run) - i) for i, wire in enumerate(run)}
        settle(cert, of, (bits, len(run), array("I", range(len(run) + 1))), ({}, 0, array("I", [0])))
    while pairs := {c: len(of[lo[c]][2]) * len(of[hi[c]][2]) for c in set(cert.head) if cert.is_next(c)}:
        c, count = cert.read("join") if cert.method == "patterns" else (min(pairs, key=pairs.__getitem__), -1)
        cert.demand(c in pairs, f"comparator {c} is not next on two wires of two components")
        if pairs[c] > LARGE:
            raise MemoryError(f"{pairs[c]} patterns are too many for this program")
        found = settle(cert, of, of[lo[c]], of[hi[c]])
        cert.demand(count in (found, -1), f"{found} patterns are left, not {count}")


def clauses(cert: Certificate) -> None:
    """Follow the steps of a DRUP proof; the first two literals of a clause are watched (Clauses)."""
    cert.demand(min(cert.rank) >= 0, "a wire has no rank")
    literal, top = list(range(1, cert.n + 1)), cert.n
    formula = [[-(run[k] + 1), run[k + 1] + 1] for run in cert.runs for k in range(len(run) - 1)]
    for lo, hi in zip(cert.lo, cert.hi, strict=True):
        a, b, u, v = literal[lo], literal[hi], top + 1, top + 2
        formula += [-u, a], [-u, b], [u, -a, -b], [-v, -a], [-v, -b], [v, a, b]
        literal[lo], literal[hi], top = u, -v, v
    outputs = [x for _, x in sorted(zip(cert.rank, literal, strict=True))]
    unordered = list(range(top + 1, top + cert.n))
    for e, a, b in zip(unordered, outputs, outputs[1:], strict=False):
        formula += [-e, a], [-e, -b], [e, -a, b]
    value = [0] * (2 * (top + cert.n) - 1)  # of literal x at place x: 1 true, -1 false
    watch = [list[list[int]]() for _ in value]

    def propagate(queue: list[int], trail: list[int]) -> bool:
        for x in queue:
            if value[x] < 0:
                return True
            if value[x]:
                continue
            value[x], value[-x] = 1, -1
            trail.append(x)
            seen, watch[-x] = watch[-x], (keep := [])
            for clause in seen:
                if clause[0] == -x:
                    clause[0], clause[1] = clause[1], -x
                for k in range(2, len(clause)) if value[clause[0]] <= 0 else ():
                    if value[y := clause[k]] >= 0:
                        clause[1], clause[k] = y, -x
                        watch[y].append(clause)
                        break
                else:
                    queue.append(clause[0])
                    keep.append(clause)
        return False

    def add(clause: list[int]) -> bool:
        clause = [x for x in dict.fromkeys(clause) if value[x] >= 0]
        for x in clause[:2] if len(clause) > 1 else ():
            watch[x].append(clause)
        return not clause or (len(clause) == 1 and propagate(clause, []))

    refuted, clause = any(add(clause) for clause in [*formula, unordered]), [0]
    while clause:
        clause, trail = cert.read("")[:-1], list[int]()
        cert.demand(all(2 * abs(x) < len(value) for x in clause), "there is no such variable")
        cert.demand(refuted or propagate([-x for x in clause], trail), "not implied by unit propagation")
        for x in trail:
            value[x] = value[-x] = 0
        refuted = refuted or add(clause)


def main(paths: list[str]) -> int:
    """Check the files of a command line; return the exit code."""
    try:
        texts = [Path(path).read_bytes() for path in paths or ["CERTIFICATE"]]
        cert = Certificate(texts[0])
        {f.__name__: f for f in (primitive, merges, clauses)}.get(cert.method, patterns)(cert)
        cert.read("end")
        cert.demand(cert.lines[cert.at :] == [b"", b""], "not one newline, and nothing else, behind `end`")
        for text in texts[1:]:
            ends = array("i", (int(m[0]) if len(m[0]) < 10 else -1 for m in re.finditer(rb"[0-9]+", text)))
            cert.demand(ends == cert.layers, "the network is another one")
    except ValueError as reason:
        print("rejected:", reason)
        return 1
    except (OSError, MemoryError) as reason:
        print(reason, file=sys.stderr)
        return 2
    counts = {"wire": cert.n, "comparator": len(cert.layers) // 2, "layer": cert.depth, "claim": cert.claims}
    wires, *two, claims = (f"{count} {noun}{'s' * (count != 1)}" for noun, count in counts.items())
    print(f"accepted: {wires}, {', '.join(two)}: {claims}, by {cert.method}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
