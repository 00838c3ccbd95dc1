import type { ProgramContext } from "@halfstep/device";
import { dtypes } from "@halfstep/formats/dtypes";

/**
 * The quads that an invocation loads or stores at a time: one, or a pair of neighbours. In WGSL a pair is a `mat2x4f`, whose columns
 * are the quads.
 */
export type UnitQuads = 1 | 2;

/**
 * Whether a program that streams an operand with this storage can move pairs of its quads. On GPUs a lane moves 16 bytes at a time: two
 * quads where all operands have 16 bits. Beside one of 32 bits quads stay alone: its pairs would lie 32 bytes apart from lane to lane.
 */
export const hasPairs = (storage: ProgramContext["bindings"][number] | undefined): boolean =>
  storage !== undefined && dtypes[storage.dtype].bits === 16 && !storage.rounding;

/**
 * How a program visits the elements of rows. Where rows have whole quads, an invocation handles one; in "pairs" it handles two where they
 * are moved together, and one elsewhere. Otherwise each of its four lanes has an element with a row of its own.
 */
export type RowWalk = "pairs" | "quads" | "gather";

/** The walk through rows of so many elements. */
export function rowWalk(width: number): RowWalk {
  if (width % 8 === 0) return "pairs";
  return width % 4 === 0 ? "quads" : "gather";
}

/** The elements that scalars of a program count as one. */
export const unitOf = (walk: RowWalk): 1 | 4 => (walk === "gather" ? 1 : 4);

/** A value for each walk, such as a kernel. */
export const byRowWalk = <T>(make: (walk: RowWalk) => T): Readonly<Record<RowWalk, T>> => ({
  pairs: make("pairs"),
  quads: make("quads"),
  gather: make("gather"),
});

/** A quad of a unit, in WGSL. */
export interface Quad {
  /** Its elements in an operand. */
  of(operand: string): string;
  /** Its index, where units are counted by quads. */
  readonly index: string;
}

/**
 * Statements on the quads of the units with these indices, WGSL expressions, after those that load each operand that they read. Operands
 * have unit i at `base + i`.
 */
export function holding(
  quads: UnitQuads,
  indices: readonly string[],
  statements: (units: readonly (readonly Quad[])[]) => string,
): string {
  const operands = new Set<string>();
  const loadedUnit = (index: string, u: number): readonly Quad[] => {
    const quad = (half: string, at: string): Quad => ({
      of(operand) {
        operands.add(operand);
        return `${operand}_${u}${half}`;
      },
      index: at,
    });
    return quads === 1
      ? [quad("", index)]
      : [0, 1].map((half) => quad(`[${half}]`, `(${index} * 2u + ${half}u)`));
  };
  const code = statements(indices.map(loadedUnit));
  const load = (x: string): string =>
    indices.map((index, u) => `    let ${x}_${u} = load_${x}(base + ${index});\n`).join("");
  return [...operands].map(load).join("") + code;
}

/** Statements on the quads of one unit. A quad alone is loaded where they read it. */
export const loadingUnit = (
  quads: UnitQuads,
  index: string,
  load: (operand: string) => string,
  statements: (unit: readonly Quad[]) => string,
): string =>
  quads === 1
    ? statements([{ of: load, index }])
    : holding(quads, [index], (units) => units.map(statements).join(""));

/** The same statements for each quad of a unit. Names that they declare are known to them only, where there are two quads. */
export const eachQuad = <Q extends Quad>(
  unit: readonly Q[],
  statements: (quad: Q) => string,
): string =>
  unit.length === 1
    ? unit.map(statements).join("")
    : unit.map((quad) => `    {\n${statements(quad)}    }\n`).join("");

/** A value, and the statements before it with the indentation of the next one. */
export interface Computed {
  readonly before: string;
  readonly value: string;
}

/** Statements that store a value in each quad of the unit at `place` of `out`. */
export function storeUnit<Q extends Quad>(
  unit: readonly Q[],
  place: string,
  out: string,
  stored: (quad: Q) => Computed,
): string {
  if (unit.length === 1)
    return eachQuad(unit, (quad) => {
      const { before, value } = stored(quad);
      return `${before}store_${out}(${place}, ${value});\n`;
    });
  let half = 0;
  const code = eachQuad(unit, (quad) => {
    const { before, value } = stored(quad);
    return `${before}${out}_pair[${half++}] = ${value};\n`;
  });
  return `    var ${out}_pair: mat2x4f;\n${code}    store_${out}(${place}, ${out}_pair);\n`;
}
