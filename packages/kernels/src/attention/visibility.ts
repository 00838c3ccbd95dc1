import type { DType, KernelBinding, KernelView } from "@halfstep/device";
import { bitsOfQuad, quadsOf } from "../random-bits.js";
import { expOf } from "../wgsl/transcendental.js";
import type { AttentionMaskKind, AttentionParts } from "./shape.js";

/** The operand along the rows of a tile of scores; the other one lies along its columns. */
export type TileRows = "queries" | "keys";

const maskDTypes: Record<AttentionMaskKind, readonly DType[]> = {
  added: ["float32", "float16", "bfloat16"],
  flags: ["uint32", "int32"],
  lengths: ["uint32", "int32"],
};

const offsets = "vec4u(0u, 1u, 2u, 3u)";

/** The binding of a mask, where there is one. */
export const maskBinding = ({ mask }: AttentionParts): readonly KernelBinding[] =>
  mask ? [{ name: "mask", access: "read", dtypes: maskDTypes[mask] }] : [];

/**
 * WGSL functions: `seen_keys(entry)`, the number of keys of an entry; `shown(x, is_visible)`, scores with −∞ for hidden keys;
 * `row_exp`; and the functions that {@link tileVisibility} and {@link seenColumns} call.
 */
export function visibilityFunctions({ mask, isDropping }: AttentionParts): string {
  const place = /* wgsl */ `
fn mask_start(entry: u32) -> u32 { return entry / s.mask_inner * s.mask_outer + entry % s.mask_inner * s.mask_entry; }
`;
  const element = /* wgsl */ `
fn mask_of(entry: u32, queries: vec4u, keys: vec4u) -> vec4u { return mask_start(entry) + queries * s.mask_query + keys * s.mask_key; }
`;
  const four = (value: (i: string) => string): string =>
    ["x", "y", "z", "w"].map((lane) => value(`i.${lane}`)).join(", ");
  return `${expOf("row_exp")}${mask ? place : ""}
fn seen_keys(entry: u32) -> u32 {
  return ${mask === "lengths" ? "min(s.keys, u32(max(0, i32(at_mask(mask_start(entry))))))" : "s.keys"};
}
// A row of a tile sees the columns from first up to end.
fn between(column: u32, first: u32, end: u32) -> vec4<bool> {
  return vec4u(column - first) + ${offsets} < vec4u(end - min(first, end));
}
// −∞ is no constant of WGSL. Its exponential about any finite maximum is 0.
fn shown(x: vec4f, is_visible: vec4<bool>) -> vec4f {
  let minus_infinity = bitcast<vec4f>((min(bitcast<vec4u>(x), vec4u(1u)) & vec4u(0u)) | vec4u(0xff800000u));
  return select(minus_infinity, x, is_visible);
}
fn flags(bits: u32) -> vec4<bool> { return (vec4u(bits) & vec4u(1u, 2u, 4u, 8u)) != vec4u(0u); }
${
  mask === "flags"
    ? `${element}fn mask_bits(entry: u32, queries: vec4u, keys: vec4u) -> u32 {
  let i = mask_of(entry, queries, keys);
  return dot(select(vec4u(0u), vec4u(1u, 2u, 4u, 8u), vec4u(${four((i) => `u32(at_mask(${i}))`)}) != vec4u(0u)), vec4u(1u));
}
`
    : ""
}${
  mask === "added"
    ? `${element}fn mask_quad(entry: u32, queries: vec4u, keys: vec4u) -> vec4f {
  let i = mask_of(entry, queries, keys);
  return vec4f(${four((i) => `at_mask(${i})`)});
}
`
    : ""
}${isDropping ? droppingFunctions : ""}`;
}

/**
 * `kept_bits(element)`: which of four neighbours in the tensor [entries, queries, keys] dropout keeps. They may lie in two quads.
 */
const droppingFunctions = /* wgsl */ `${bitsOfQuad}
fn kept_bits(element: u32) -> u32 {
  var kept = 0u;
  let last = (element + 3u) >> 2u;
  for (var q = element >> 2u; q <= last; q++) {
    let words = bits_of_quad(q);
    for (var j = 0u; j < 4u; j++) {
      let place = q * 4u + j - element;
      kept |= select(0u, 1u << (place & 3u), place < 4u && words[j] < s.threshold);
    }
  }
  return kept;
}
`;

/** Four queries and four keys of row `r` of a tile whose lane has the columns from `column` on. */
const coordinates = (along: TileRows, r: string): readonly [queries: string, keys: string] => {
  const [row, column] = [`vec4u(row + ${r})`, `vec4u(column) + ${offsets}`];
  return along === "queries" ? [row, column] : [column, row];
};

/**
 * Statements that load the masks and dropout bits of a tile of `rows` rows: bits for four columns a row, eight rows a word. They
 * are loops, because each of these functions is larger than a row of the tile.
 */
export function tileVisibility(
  { mask, isDropping }: AttentionParts,
  along: TileRows,
  rows: number,
): string {
  const [queries, keys] = coordinates(along, "r");
  const words = Array.from({ length: Math.ceil(rows / 8) }, (_, w) => w);
  const byRow = (name: string, bits: string): string =>
    words
      .map(
        (w) => `    var ${name}${w} = 0u;
    for (var r = ${w * 8}u; r < ${Math.min(rows, w * 8 + 8)}u; r++) { ${name}${w} |= ${bits} << (r % 8u * 4u); }
`,
      )
      .join("");
  let code = "";
  if (mask === "flags") code += byRow("mask", `mask_bits(entry, ${queries}, ${keys})`);
  if (mask === "added")
    code += `    var added: array<vec4f, ${rows}>;
    for (var r = 0u; r < ${rows}u; r++) { added[r] = mask_quad(entry, ${queries}, ${keys}); }
`;
  if (!isDropping) return code;
  if (along === "queries")
    return code + byRow("kept", "kept_bits((entry * s.queries + row + r) * s.keys + column)");
  // Neighbours are keys, which lie along the rows here: the bits of four keys and one query are spread over four rows.
  return `${code}${words.map((w) => `    var kept${w} = 0u;\n`).join("")}    for (var u = 0u; u < 4u; u++) {
${words
  .map(
    (w) => `      for (var r = 0u; r < ${Math.min(8, rows - w * 8)}u; r += 4u) {
        let bits = kept_bits((entry * s.queries + column + u) * s.keys + row + ${w * 8}u + r);
        kept${w} |= ((bits & 1u) | ((bits & 2u) << 3u) | ((bits & 4u) << 6u) | ((bits & 8u) << 9u)) << (r * 4u + u);
      }
`,
  )
  .join("")}    }
`;
}

/** A vec4f expression: the scaled scores of row r plus an added mask. */
export const scaledScores = ({ mask }: AttentionParts, r: number): string =>
  `score${r} * s.scale${mask === "added" ? ` + added[${r}]` : ""}`;

/** A vec4<bool> expression: the columns that are visible in row r. For rows that are not stored, any value is valid. */
export function seenColumns(
  { mask, isWindowed }: AttentionParts,
  along: TileRows,
  r: number,
): string {
  // Rows of keys behind the length are stored, too.
  const [first, end] =
    along === "queries"
      ? ["0u", `min(seen, select(seen, row + ${r + 1}u, s.causal != 0u))`]
      : [`s.causal * (row + ${r}u)`, `select(0u, s.queries, row + ${r}u < seen)`];
  const seen = isWindowed
    ? `between(column, max(${first}, ${windowStart(`row + ${r}u`)}), min(${end}, row + ${r + 1}u + s.window))`
    : `between(column, ${first}, ${end})`;
  return mask === "flags" ? `${seen} & ${bitsOf("mask", r)}` : seen;
}

/** WGSL: the first position in the window about a position. */
export const windowStart = (position: string): string => `${position} - min(${position}, s.window)`;

/** A vec4f expression: `value` where row r is kept, else 0. */
export const keptOf = ({ isDropping }: AttentionParts, r: number, value: string): string =>
  isDropping ? `select(vec4f(), ${value}, ${bitsOf("kept", r)})` : value;

const bitsOf = (name: string, r: number): string =>
  `flags(${name}${Math.floor(r / 8)} >> ${(r % 8) * 4}u)`;

/** Visibility on the CPU. */
export interface Visibility {
  /** The keys visible to a query, before a mask of flags: from the first one up to the limit. */
  first(query: number): number;
  limit(entry: number, query: number): number;
  /** A scaled score plus an added mask; −∞ for hidden keys. */
  shown(score: number, entry: number, query: number, key: number): number;
  /** A number after dropout. */
  kept(value: number, entry: number, query: number, key: number): number;
}

export function visibilityOf(
  { mask: kind, isDropping }: AttentionParts,
  mask: KernelView | undefined,
  scalars: Readonly<Record<string, number>>,
): Visibility {
  const { queries = 0, keys = 0, causal, window = Infinity, threshold = 0, factor = 0 } = scalars;
  const { mask_inner = 1, mask_outer = 0, mask_entry = 0, mask_query = 0, mask_key = 0 } = scalars;
  const start = (entry: number): number =>
    Math.floor(entry / mask_inner) * mask_outer + (entry % mask_inner) * mask_entry;
  const maskAt = (entry: number, query: number, key: number): number =>
    mask?.[start(entry) + query * mask_query + key * mask_key] as number;
  const seenKeys = (entry: number): number =>
    kind === "lengths" ? Math.min(keys, Math.max(0, mask?.[start(entry)] as number)) : keys;
  const bitsOfQuadAt = isDropping ? quadsOf(scalars) : undefined;
  let quad = -1;
  let words: readonly number[] = [];
  return {
    first: (query) => Math.max(0, query - window),
    limit: (entry, query) => Math.min(seenKeys(entry), query + 1 + (causal ? 0 : window)),
    shown(score, entry, query, key) {
      if (kind === "added") return score + maskAt(entry, query, key);
      if (kind === "flags" && maskAt(entry, query, key) === 0) return Number.NEGATIVE_INFINITY;
      return score;
    },
    kept(value, entry, query, key) {
      if (!bitsOfQuadAt) return value;
      const element = (entry * queries + query) * keys + key;
      const wanted = Math.floor(element / 4);
      if (wanted !== quad) {
        quad = wanted;
        words = bitsOfQuadAt(quad);
      }
      return (words[element % 4] as number) < threshold ? value * factor : 0;
    },
  };
}
