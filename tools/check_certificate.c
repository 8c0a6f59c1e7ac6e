/* Checks a certificate of a sorting network: ./check CERTIFICATE [NETWORK]. Uses no code of nsc.
 * The page "Certificates" defines the format and the rules; the comments here cite it.
 * Exits with 0 (accepted), 1 (rejected) or 2 (no such file, no memory, too large an exhaustion). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define BIT(i) (1ull << ((i) % 64))
#define NONE UINT32_MAX /* no wire, rank, comparator or set */
#define reject(...) (printf("rejected: line %u: ", line), printf(__VA_ARGS__), puts(""), exit(1))
#define stop(...) (fprintf(stderr, "check: " __VA_ARGS__), fputs("\n", stderr), exit(2))
typedef uint32_t u32;
typedef uint64_t u64;
static const u32 ABOVE = NONE - 1, BELOW = NONE - 2; /* infinite entries of merges */
static const char *at, *to; /* what is left of the text; and of the network to compare to */
static u32 line = 1, n, size, total, layers, claims, method; /* total: size, and those behind */
static struct comparator {
    u32 lo, hi, after_lo, after_hi; /* after: the next comparator on this wire */
} *net;
static u32 *head, *rank, *wire_of, *set_of, *follower; /* head: the next comparator of a wire */
static char *inner; /* presorted: a wire follows another one; follower: the one that follows it */

static void *grow(void *old, u64 bytes) {
    return (old = realloc(old, bytes + 1)) ? old : (stop("too little memory"), old);
}
static void *make(u64 count, u64 each) { return memset(grow(NULL, count * each), 0, count * each); }
static u32 *nones(u64 count) { return memset(make(count, 4), 255, 4 * count); }
static const char *read_file(const char *path, u64 *length) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    u64 room = *length = 0;
    while (file && *length == room && room <= INT32_MAX)
        text = grow(text, room += 1 << 24),
        *length += fread(text + *length, 1, room - *length, file);
    if (!file || ferror(file) || room > INT32_MAX) stop("cannot read all of %s", path);
    fclose(file), text[*length] = 0; /* no rule takes this byte, so none reads past the end */
    return text;
}
static int word(const char *expected) {
    u64 length = strlen(expected), same = !strncmp(at, expected, length);
    if (same) at += length, line += *expected == '\n';
    return (int)same;
}
static void need(const char *expected) {
    if (!word(expected)) reject("'%s' is missing", *expected == '\n' ? "newline" : expected);
}
static u32 number(const char *before, u32 below) {
    u64 value = 0;
    const char *start = (need(before), at);
    while (*at >= '0' && *at <= '9' && value < below) value = 10 * value + (u64)(*at++ - '0');
    if (at == start || (*start == '0' && at - start > 1)) reject("a number is missing");
    if (value >= below) reject("a number is not below %u", below);
    return (u32)value;
}
static void comparator(u32 layer) { /* layer: NONE behind the network */
    u32 lo = number(" ", n), hi = number(":", n), *set = set_of;
    if (lo == hi || set[lo] == layer || set[hi] == layer || (layer == NONE && set[lo] != set[hi]))
        reject("comparator %u:%u has one wire, shares a wire, or leaves a set", lo, hi);
    if (layer != NONE) set[lo] = set[hi] = layer; /* until the claims come */
    net[total++] = (struct comparator){lo, hi, NONE, NONE};
}
static void read_network(void) {
    u64 colons = 0;
    need("nsc-certificate 1"), need("\n"), n = number("wires ", 1048577), need("\n");
    if (!n) reject("there are no wires");
    for (const char *c = at; *c; c++) colons += *c == ':';
    net = make(colons, sizeof *net), head = nones(n), rank = nones(n), set_of = nones(n);
    wire_of = nones(n + 2ull) + 1, follower = nones(n), inner = make(n, 1);
    for (; word("layer"); layers++, need("\n"))
        for (comparator(layers); *at == ' ';) comparator(layers);
    for (size = total; word("presorted"); need("\n"))
        for (u32 last = NONE, w, count = 0; count < 2 || *at == ' '; count++, last = w) {
            if (w = number(" ", n), set_of[w] == layers) reject("wire %u is presorted twice", w);
            if (set_of[w] = layers, count) follower[last] = w, inner[w] = 1;
        }
    memset(set_of, 255, 4ull * n);
    for (u32 set; set = word("set") ? claims : NONE, set != NONE || word("ranks"); need("\n")) {
        u32 first = number(" ", n), r = first, w;
        for (; r == first || *at == ' '; set_of[w] = set, wire_of[r] = w, rank[w] = r++)
            if (w = number(" ", n), r >= n || wire_of[r] != NONE || rank[w] != NONE)
                reject("wire %u or rank %u is claimed twice, or there is no such rank", w, r);
        if (claims++, set != NONE && r - first < 2) reject("a set has one wire");
    }
    if (!claims) reject("there is no claim");
    if (!word("behind")) return;
    for (comparator(NONE); *at == ' ';) comparator(NONE);
    need("\n");
}
/* Comparators that do not matter: head and after skip them, so they never are a wire's next one. */
static void link_network(void) {
    char *wanted = make(n, 1);
    for (u32 w = 0; w < n; w++) wanted[w] = rank[w] != NONE;
    for (struct comparator *c = net + total; c-- > net;)
        if (wanted[c->lo] || wanted[c->hi])
            wanted[c->lo] = wanted[c->hi] = 1, c->after_lo = head[c->lo], c->after_hi = head[c->hi],
            head[c->lo] = head[c->hi] = (u32)(c - net);
    free(wanted);
}
static int is_next(u32 c) { return c != NONE && head[net[c].lo] == c && head[net[c].hi] == c; }
static void take(u32 c) { head[net[c].lo] = net[c].after_lo, head[net[c].hi] = net[c].after_hi; }
static void compare_network(const char *path) {
    u64 length, numbers = 0, v, i;
    for (const char *end = (to = read_file(path, &length)) + length; to < end; to++) {
        if (*to < '0' || *to > '9') continue;
        for (v = 0; *to >= '0' && *to <= '9'; to++) v = v < n ? 10 * v + (u64)*to - '0' : n;
        if (i = numbers++ / 2, i >= size || v != (numbers % 2 ? net[i].lo : net[i].hi))
            reject("comparator %u differs from %s", (u32)i, path);
    }
    if (numbers != 2ull * size) reject("%s has fewer comparators", path);
}
static u32 *name, *place, *ring, *area; /* of a wire: its run, its place, another wire there */
static void primitive(void) {
    u32 low = 0, high = 0, ranked = 0, w, *value = area = make(n, 4);
    for (w = 0; w < n; w++) value[w] = n - 1 - w, ranked += rank[w] != NONE;
    for (u32 i = 0, x; i < total; i++) {
        if (!is_next(i)) continue;
        if (w = net[i].lo, net[i].hi != w + 1) reject("comparator %u is not of neighbours", i);
        if (take(i), x = value[w], x > value[w + 1]) value[w] = value[w + 1], value[w + 1] = x;
    }
    while (low < n && rank[low] == low) low++;
    while (high < n && rank[n - 1 - high] == n - 1 - high) high++;
    if (low != ranked && high != ranked) reject("the ranks are not the first or the last wires");
    for (w = 0; w < n; w++)
        if (inner[w] || (rank[w] != NONE && value[w] != w)) reject("wire %u gets %u", w, value[w]);
}
static void compare(u32 *p, u32 *q) { /* leaves the minimum in *p and the maximum in *q */
    u32 x = *p, y = *q;
    if (x == ABOVE || y == BELOW) *p = y, *q = x;
    if (x >= BELOW || y >= BELOW) return;
    if (head[x] == NONE || head[x] != head[y]) reject("%u and %u are not compared next", x, y);
    *p = net[head[x]].lo, *q = net[head[x]].hi, take(head[x]);
}
/* Merges na entries of one list and nb of the other, every step-th one. Halves na and nb. */
static void odd_even(u32 *list[2], u32 first, u32 step, u32 na, u32 nb, u32 *out, u32 *v) {
    u32 i, even = (na + 1) / 2 + (nb + 1) / 2, odd = na / 2 + nb / 2, *w = v + even;
    if (!na || !nb || na + nb == 2) {
        for (i = 0; i < na; i++) *out++ = list[0][first + i * step];
        for (i = 0; i < nb; i++) *out++ = list[1][first + i * step];
        if (na && nb) compare(out - 2, out - 1);
        return;
    }
    odd_even(list, first, 2 * step, (na + 1) / 2, (nb + 1) / 2, v, out);
    odd_even(list, first + step, 2 * step, na / 2, nb / 2, w, out + even);
    for (*out++ = *v++, even--; odd && even; odd--, even--, out += 2)
        out[0] = *w++, out[1] = *v++, compare(out, out + 1);
    memcpy(out, v, 4ull * even), memcpy(out + even, w, 4ull * odd);
}
static void inside(u32 c) {
    u32 p = place[net[c].lo], q = place[net[c].hi];
    take(c), place[net[c].lo] = p < q ? p : q, place[net[c].hi] = p < q ? q : p;
}
static void merge(u32 *list[2], u32 *out, u32 *spare) {
    u32 bitonic = word("bitonic") || (need("odd-even"), 0), run[2], count[2], k = 1, i, w, h;
    u32 fill = word(" above") ? ABOVE : word(" below") ? BELOW : (need(" none"), NONE);
    run[0] = number(" ", n), run[1] = number(" ", n);
    for (i = 0; i < 2; i++) {
        if (w = run[i], name[w] != w || run[0] == run[1]) reject("%u is no run, or twice", w);
        for (count[i] = 0; w != run[i] || !count[i]; w = ring[w]) list[i][place[w]] = w, count[i]++;
        while (k < count[i]) k *= 2;
    }
    for (i = 0; i < 2 && fill != NONE; count[i++] = k) {
        if (fill == BELOW) memmove(list[i] + k - count[i], list[i], 4ull * count[i]);
        for (h = count[i]; h < k; h++) list[i][fill == BELOW ? h - count[i] : h] = fill;
    }
    if (!bitonic) odd_even(list, 0, 1, count[0], count[1], out, spare);
    if (bitonic && (count[0] != k || count[1] != k)) reject("the lengths are not one power of two");
    for (i = 0; bitonic && i < k; i++) out[i] = list[0][i], out[k + i] = list[1][k - 1 - i];
    for (h = bitonic ? k : 0; h; h /= 2)
        for (i = 0; i < 2 * k; i++)
            if (!(i & h)) compare(out + i, out + i + h);
    for (i = k = 0; i < count[0] + count[1]; i++)
        if (w = out[i], w < BELOW) name[w] = run[run[0] > run[1]], place[w] = k++;
    w = ring[run[0]], ring[run[0]] = ring[run[1]], ring[run[1]] = w, need("\n");
}
static void merges(void) {
    u32 w, v, c, least; /* lists of less than 2 n, 2 n, 4 n and 4 n entries */
    area = make(n, 48), name = nones(n), place = make(n, 4), ring = nones(n);
    for (w = 0; w < n; w++) {
        for (least = v = inner[w] ? NONE : w, c = 0; v != NONE; v = follower[v])
            place[v] = c++, least = v < least ? v : least,
            ring[v] = follower[v] == NONE ? w : follower[v];
        for (v = inner[w] ? NONE : w; v != NONE; v = follower[v]) name[v] = least;
    }
    for (;; inside(c), need("\n")) {
        while (word("merge ")) merge((u32 *[2]){area, area + 2 * n}, area + 4 * n, area + 8 * n);
        if (!word("inside")) break;
        if (c = number(" ", total), !is_next(c)) reject("comparator %u is not next", c);
        if (name[net[c].lo] != name[net[c].hi]) reject("comparator %u is of two runs", c);
    }
    for (c = 0; c < total; c++)
        if (is_next(c)) inside(c);
    for (w = 0; w < n; w++)
        if (name[w] || (rank[w] != NONE && rank[w] != place[w]))
            reject("wire %u has rank %u of run %u", w, place[w], name[w]);
}

typedef struct { /* patterns in the order of their zeros; for each wire a row of blocks words */
    u32 wires, inputs, *wire, *zeros;
    u64 count, blocks, *rows;
} Component;
static u32 *owner, *column, *plan; /* of a wire: component, its row there; comparators to take */
static u32 *within;                /* within[t]: how many numbers of zeros below t matter for (Z) */
static u64 *keys, members, slots;  /* the patterns at work: zeros, then a bit for each wire */
static u32 *table, width;          /* hash table of 1 + the number of a key; words of a key */
static void add(const u64 *key) {
    u64 hash = 0, i = 0, old = members;
    if (2 * members >= slots) {
        if ((slots = slots ? 2 * slots : 16) > NONE) stop("too many patterns");
        free(table), table = make(slots, 4), keys = grow(keys, slots * width * 4);
        for (members = 0; members < old;) add(keys + members * width);
    }
    for (i = 0; i < width; i++) hash = (hash ^ key[i]) * 0x9E3779B97F4A7C15u, hash ^= hash >> 32;
    for (i = hash % slots; table[i]; i = (i + 1) % slots)
        if (!memcmp(keys + (table[i] - 1ull) * width, key, 8ull * width)) return;
    memmove(keys + members * width, key, 8ull * width), table[i] = (u32)++members;
}
static void transpose(u64 *a) { /* Warren, Hacker's Delight, section 7-3 */
    u64 mask = UINT32_MAX, x;
    for (u32 h = 32; h; h /= 2, mask ^= mask << h)
        for (u32 i = 0; i < 64; i = ((i | h) + 1) & ~h)
            x = ((a[i] >> h) ^ a[i | h]) & mask, a[i] ^= x << h, a[i | h] ^= x;
}
static void make_rows(Component *c, u64 count) {
    c->count = count, c->blocks = (count + 63) / 64;
    c->rows = make(c->blocks * c->wires, 8), c->zeros = make(count, 4);
}
static Component ascending(u32 first) { /* a presorted line, a wire, or, of NONE, no wires */
    Component c = {0};
    for (u32 w = first; w != NONE; w = follower[w]) c.inputs = ++c.wires;
    make_rows(&c, c.wires + 1ull), c.wire = make(c.wires, 4);
    for (u32 w = first, i = 0; w != NONE; w = follower[w], i++, c.zeros[i] = i)
        for (u64 z = (c.wire[i] = w, 0); z <= i; z++) c.rows[i * c.blocks + z / 64] |= BIT(z);
    return c;
}
static void slice(Component *c) { /* from the keys */
    u64 *first = make(c->inputs + 2ull, 8), *order = make(members + 63, 8), tile[64], j, k, g;
    make_rows(c, members);
    for (j = 0; j < members; j++) first[keys[j * width] + 1]++;
    for (j = 0; j < c->inputs; j++) first[j + 1] += first[j];
    for (j = 0; j < members * width; j += width)
        k = first[keys[j]]++, order[k] = j, c->zeros[k] = (u32)keys[j];
    for (j = 0; j < members; j += 64)
        for (g = 0; g < c->wires; g += 64) {
            for (k = 0; k < 64; k++) tile[k] = keys[order[j + k] + 1 + g / 64];
            for (transpose(tile), k = g; k < g + 64 && k < c->wires; k++)
                c->rows[k * c->blocks + j / 64] = tile[k - g];
        }
    free(first), free(order);
}
static void compare_rows(u64 *restrict p, u64 *restrict q, u64 length) {
    for (u64 j = 0, x; j < length; j++) x = p[j], p[j] = x & q[j], q[j] |= x;
}
static Component join(Component a, Component b, u32 id) { /* their product, settled */
    u32 wires = a.wires + b.wires, rest = n - a.inputs - b.inputs, open = 0, more = 1, i, x, p, q;
    u64 end = b.blocks, *rows = make(wires * end, 8), tile[64], z, steps = 0, j, k, g;
    Component c = {.inputs = a.inputs + b.inputs, .wire = make(wires, 4)};
    memcpy(c.wire, a.wire, 4ull * a.wires), memcpy(c.wire + a.wires, b.wire, 4ull * b.wires);
    for (i = 0; i < wires; i++) owner[c.wire[i]] = id, column[c.wire[i]] = i;
    while (more) /* rule 1 */
        for (i = more = 0; i < wires; i++)
            while (is_next(x = head[c.wire[i]]) && owner[net[x].lo] == owner[net[x].hi])
                plan[steps++] = x, take(x), more = 1;
    for (i = 0; i < wires; i++) /* rule 2 */
        if (x = c.wire[i], open |= head[x] != NONE, head[x] != NONE || rank[x] != NONE)
            c.wire[c.wires++] = x;
    c.wires = open ? c.wires : 0, width = 1 + (c.wires + 63) / 64, members = slots = 0;
    u64 *found = make(64ull * width, 8);
    for (j = 0; j < a.count; j++) {
        for (i = 0; i < a.wires; i++)
            memset(rows + i * end, a.rows[i * a.blocks + j / 64] & BIT(j) ? 255 : 0, 8 * end);
        memcpy(rows + a.wires * end, b.rows, 8 * end * b.wires);
        for (g = 0; g < steps; g++)
            p = column[net[plan[g]].lo], q = column[net[plan[g]].hi],
            compare_rows(rows + p * end, rows + q * end, end);
        for (k = 0; k < end; k++) {
            u64 here = k + 1 < end ? 64 : b.count - 64 * k, may = 0, must = 0, mask = 0;
            u32 *zeros = b.zeros + 64 * k, others = a.zeros[j], r = 0;
            if (within[zeros[here - 1] + others + rest + 1] == within[zeros[0] + others]) continue;
            for (g = 0; g < c.wires; g += 64) {
                for (i = 0; i < 64; i++)
                    tile[i] = g + i < c.wires ? rows[column[c.wire[g + i]] * end + k] : 0;
                for (transpose(tile), i = 0; i < 64; i++) found[i * width + 1 + g / 64] = tile[i];
            }
            for (i = 0; i < here; i++) /* rule 3; if rule 4 holds, the zeros tell the pattern */
                if (z = zeros[i] + others, within[z + rest + 1] > within[z])
                    mask |= BIT(i), found[i * width] = z, add(found + i * width);
            for (p = q = 0; !open && r < n; r++) { /* rule 4 */
                for (; p < here && zeros[p] + others <= r; p++) may |= BIT(p);
                for (; q < here && zeros[q] + others + rest <= r; q++) must |= BIT(q);
                if (x = wire_of[r], x == NONE || owner[x] != id) continue;
                if (((rows[column[x] * end + k] ^ must) | (may ^ must)) & mask)
                    reject("wire %u does not carry rank %u", x, r);
            }
        }
    }
    slice(&c), free(a.rows), free(a.zeros), free(a.wire), free(b.rows), free(b.zeros), free(b.wire);
    free(rows), free(found), free(keys), free(table), keys = NULL, table = NULL;
    return c;
}
static void join_all(void) { /* by the steps, or, for exhaustion, the least products first */
    static Component *parts;
    int given = (parts = make(n, sizeof *parts), method == 3);
    owner = nones(n), column = make(n, 4), plan = make(total, 4), within = make(n + 2ull, 4);
    for (u32 t = 0; t <= n; t++)
        within[t + 1] = within[t] + (wire_of[t] != NONE || (wire_of - 1)[t] != NONE);
    for (u32 w = 0; w < n; w++)
        if (!inner[w]) parts[w] = join(ascending(NONE), ascending(w), w);
    for (u32 c = NONE, count = 0, w, a, b;; c = NONE) {
        u64 least = 1 << 30, product;
        if (given && word("join")) c = number(" ", total), count = number(" ", NONE);
        for (w = 0; !given && w < n; w++)
            if (is_next(a = head[w]) &&
                (product = parts[owner[net[a].lo]].count * parts[owner[net[a].hi]].count) <= least)
                least = product, c = a;
        if (c == NONE) break;
        if (a = owner[net[c].lo], b = owner[net[c].hi], !is_next(c) || a == b)
            reject("comparator %u is not next, or of one component", c);
        if (parts[a].count > parts[b].count) w = a, a = b, b = w;
        parts[b] = join(parts[a], parts[b], b), product = parts[b].count;
        if (given && (product != count || !word("\n"))) reject("COUNT is %u", (u32)product);
    }
    for (u32 w = 0; w < n; w++)
        if (head[w] != NONE) given ? reject("comparators are left") : stop("this is too large");
}
/* Literals of variable v are 2 v and, negative, 2 v + 1. Each has a list of clauses that have it at
 * place 0 or 1. In the pool, a clause is its links in these two lists, its length, its literals. */
static u32 *pool, *watched, *trail, *literal, *several, assigned, propagated, refuted;
static u64 pooled, room;
static char *truth; /* of a literal: 1 if it is true */
static void assign(u32 literal) { truth[literal] = 1, trail[assigned++] = literal; }
static u32 propagate(void) { /* returns 1 if all literals of a clause are false */
    for (; propagated < assigned; propagated++) {
        u32 literal = trail[propagated] ^ 1, *link = &watched[literal], *c, k, x;
        while (*link) {
            if (c = pool + *link, *c == literal)
                c[0] = c[1], c[1] = literal, x = c[-3], c[-3] = c[-2], c[-2] = x;
            for (k = 2; !truth[*c] && k < c[-1] && truth[c[k] ^ 1];) k++;
            if (k == c[-1] && truth[*c ^ 1]) return 1;
            if (k == c[-1] && !truth[*c]) assign(*c);
            if (truth[*c] && (link = c - 2)) continue;
            c[1] = c[k], c[k] = literal, x = *link, *link = c[-2]; /* watches literal k instead */
            c[-2] = watched[c[1]], watched[c[1]] = x;
        }
    }
    return 0;
}
static void clause(const u32 *literals, u32 count) { /* none of them is true or false yet */
    if (count == 1) assign(literals[0]);
    if (count < 2) refuted |= !count || propagate();
    if (count < 2) return;
    if (pooled + count + 3 > room) pool = grow(pool, 4 * (room = 2 * room + count + 3));
    if (room > NONE) stop("too many clauses");
    u32 *c = pool + (pooled += 3), index = (u32)pooled;
    memcpy(c, literals, 4ull * count), pooled += count, c[-1] = count;
    c[-3] = watched[c[0]], c[-2] = watched[c[1]], watched[c[0]] = watched[c[1]] = index;
}
static void equal_and(u32 f, u32 g, u32 h) { /* f if and only if g and h */
    clause((u32[]){f ^ 1, g}, 2), clause((u32[]){f ^ 1, h}, 2), clause((u32[]){f, g ^ 1, h ^ 1}, 3);
}
static void clauses(void) {
    u32 most = 4 * n + 4 * total + 4, next = 2 * n + 2, a, b, w, empty = 0;
    literal = make(n, 4), several = make(most, 4), watched = make(most, 4);
    truth = make(most, 1), trail = make(most, 4);
    for (w = 0; w < n; w++)
        if (literal[w] = 2 * w + 2, rank[w] == NONE) reject("wire %u has no rank", w);
    for (w = 0; w < n; w++)
        if (follower[w] != NONE) clause((u32[]){literal[w] ^ 1, literal[follower[w]]}, 2);
    for (struct comparator *c = net; c < net + total; c++, next += 4) { /* all are kept */
        a = literal[c->lo], b = literal[c->hi], literal[c->lo] = next, literal[c->hi] = next + 3;
        equal_and(next, a, b), equal_and(next + 2, a ^ 1, b ^ 1);
    }
    for (w = 0; w + 1 < n; w++, next += 2)
        equal_and(several[w] = next, literal[wire_of[w]], literal[wire_of[w + 1]] ^ 1);
    for (clause(several, n - 1); !empty; need("\n")) {
        u32 before = assigned, count = 0, follows = refuted, known, minus, x;
        for (empty = 1; minus = (u32)word("-"), w = number("", next / 2), w; empty = 0, need(" "))
            if (x = 2 * w + minus, follows |= (u32)truth[x], !truth[x] && !truth[x ^ 1])
                several[count++] = x, assign(x ^ 1);
        if (known = follows, minus || (!follows && !propagate())) reject("it does not follow");
        while (assigned > before) truth[trail[--assigned]] = 0;
        if (propagated = before, !known) clause(several, count);
    }
}
int main(int count, char **arguments) {
    const char *names[] = {"exhaustion", "primitive", "merges", "patterns", "clauses"}, *text;
    void (*const methods[])(void) = {join_all, primitive, merges, join_all, clauses};
    u64 length;
    if (count != 2 && count != 3) stop("usage: check CERTIFICATE [NETWORK]");
    at = text = read_file(arguments[1], &length), read_network(), link_network(), need("proof ");
    if (count == 3) compare_network(arguments[2]);
    while (method < 5 && !word(names[method])) method++;
    if (method == 5) reject("there is no such method");
    need("\n"), methods[method](), need("end"), need("\n");
    if (at != text + length) reject("text follows the end");
    printf("accepted: %u wire%s, %u comparator%s, %u layer%s: %u claim%s, by %s\n", n,
           "s" + (n == 1), size, "s" + (size == 1), layers, "s" + (layers == 1), claims,
           "s" + (claims == 1), names[method]);
    return 0;
}
