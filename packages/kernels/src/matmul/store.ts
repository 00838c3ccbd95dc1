import { type Domain, pairType, quadType, scalarType } from "../domain.js";
import { indexingWgsl } from "../indexing.js";
import type { Epilogue } from "../woven-definition.js";

/** WGSL that stores the rows of a tile: declarations, and the last statements of the entry point. */
export interface TileStore {
  readonly functions: string;
  readonly statements: string;
}

/**
 * Stores `sum0 …`, the `rows` × `width` results of an invocation, through the epilogue. Their first is in row `row` and at
 * `column * width` of product `slice`. A loop over the rows compiles conversion and epilogue once: unrolled, they take three
 * times as long to compile as the product itself. The loop counts rows of the matrix, because drivers unroll loops from zero
 * to a constant.
 */
export function storeTile(rows: number, width: 2 | 4, epilogue?: Epilogue): TileStore {
  // Programs compute quads, so that pairs are processed two rows at a time.
  const together = epilogue ? 4 / width : 1;
  const sums = Array.from({ length: rows / together }, (_, i) =>
    together === 1 ? `sum${i}` : `vec4f(sum${2 * i}, sum${2 * i + 1})`,
  );
  const { functions, before, call } = throughEpilogue(width, epilogue);
  const store =
    together === 1
      ? "store_out(at, value);"
      : "store_out(at, value.xy);\n    if (r + 1u < bottom) { store_out(at + s.columns, value.zw); }";
  return {
    functions,
    statements: `  var sums = array<vec${width * together}f, ${sums.length}>(${sums.join(", ")});
  let first = (slice * s.m + row) * s.columns + column;
  let bottom = min(row + ${rows}u, s.m);
${before}  for (var r = row; r < bottom; r += ${together}u) {
    let at = first + (r - row) * s.columns;
    let value = ${call(`sums[(r - row) / ${together}u]`)};
    ${store}
  }
`,
  };
}

/** WGSL that passes values through an epilogue: functions, preceding statements, and a call that uses `at`. */
interface EpilogueCode {
  readonly functions: string;
  readonly before: string;
  call(value: string): string;
}

/** The epilogue, if there is one, of a quad at `at`, or of two pairs at `at` and below it. */
export function throughEpilogue(width: 2 | 4, epilogue: Epilogue | undefined): EpilogueCode {
  if (!epilogue) return { functions: "", before: "", call: (value) => value };
  let { functions } = epilogue;
  let before = "";
  const operands = epilogue.operands.map(({ name, kind, domain }) => {
    const [quad, scalar] = [quadType(domain), scalarType(domain)];
    switch (kind) {
      case "row":
        before += `  let ${name}_all = ${quadOf(width, domain, () => `load_${name}(column)`)};\n`;
        return `${name}_all`;
      case "scalar":
        before += `  let ${name}_all = ${quad}(${scalar}(at_${name}(0u)));\n`;
        return `${name}_all`;
      case "same":
        return quadOf(width, domain, (store) => `load_${name}(${store})`);
      default:
        functions += indexingWgsl(kind, name, domain);
        return `${quad}(${elementsOf(width)
          .map((element) => `${scalar}(at_${name}(offset_${name}(${element})))`)
          .join(", ")})`;
    }
  });
  return {
    functions,
    before,
    call: (value) => epilogue.call(value, operands, quadAt(width)),
  };
}

/**
 * `store_quad(slice, row, quad, value)`: stores four columns of a row through the epilogue, where the result has them.
 */
export function storeQuad(width: 2 | 4, epilogue?: Epilogue): string {
  let functions = epilogue?.functions ?? "";
  const operands = (epilogue?.operands ?? []).map(({ name, kind, domain }) => {
    const [quad, pair, scalar] = [quadType(domain), pairType(domain), scalarType(domain)];
    const both = (at: string): string =>
      width === 4
        ? `${quad}(load_${name}(${at}))`
        : `${quad}(${pair}(load_${name}(${at})), ${pair}(load_${name}(${at} + 1u)))`;
    if (kind === "same") return both("at");
    if (kind === "row") return both("column");
    if (kind === "scalar") return `${quad}(${scalar}(at_${name}(0u)))`;
    functions += indexingWgsl(kind, name, domain);
    const elements = [0, 1, 2, 3].map(
      (e) => `${scalar}(at_${name}(offset_${name}(at * ${width}u + ${e}u)))`,
    );
    return `${quad}(${elements.join(", ")})`;
  });
  const store =
    width === 4
      ? "store_out(at, value);"
      : "store_out(at, value.xy);\n  if (column + 1u < s.columns) { store_out(at + 1u, value.zw); }";
  return `${functions}
fn store_quad(slice: u32, row: u32, quad: u32, result: vec4f) {
  let column = quad${width === 4 ? "" : " * 2u"};
  if (row >= s.m || column >= s.columns) { return; }
  let at = (slice * s.m + row) * s.columns + column;
  let value = ${epilogue ? epilogue.call("result", operands, quadAt(width)) : "result"};
  ${store}
}
`;
}

/** The index in the result of the quad that is stored at `at`. Two pairs may belong to two quads. */
const quadAt = (width: 2 | 4): string | undefined => (width === 4 ? "at" : undefined);

const quadOf = (width: 2 | 4, domain: Domain, load: (store: string) => string): string => {
  const [quad, pair] = [quadType(domain), pairType(domain)];
  return width === 4
    ? `${quad}(${load("at")})`
    : `${quad}(${pair}(${load("at")}), ${pair}(${load("at + s.columns")}))`;
};

const elementsOf = (width: 2 | 4): readonly string[] =>
  [0, 1, 2, 3].map((e) =>
    width === 2 && e > 1 ? `(at + s.columns) * 2u + ${e - 2}u` : `at * ${width}u + ${e}u`,
  );
