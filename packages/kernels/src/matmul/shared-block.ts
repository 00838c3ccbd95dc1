import { type BlockFactors, blockMain } from "./block.js";
import type { SharedBlock } from "./block-table.js";
import type { Copies } from "./copies.js";
import { sharedInvocations, sharedQuads } from "./engine.js";
import { noRowSums } from "./row-sums.js";
import { type Staging, singles, stage } from "./staging.js";

/**
 * A product by blocks in workgroup memory, exact in float32, for devices whose barriers are fast. The memory holds quads of the
 * factors in their own order. A quad has four k of a row or column, or four rows or columns at one k.
 *
 * An invocation computes every
 * (rows / perInvocation · 4)-th group of four rows and columns, so that neighbours read neighbouring quads. The next block is
 * loaded during the products of the present one. `store` declares `store_quad`.
 */
export function sharedBlockProgram(
  block: SharedBlock,
  width: 2 | 4,
  { functions, range, left, right, rowSums }: BlockFactors,
  store: string,
  copies: Copies,
): string {
  const { rows, columns, depth, perInvocation } = block;
  const invocations = sharedInvocations(block);
  const acrossInvocations = columns / perInvocation;
  const staged = (factor: typeof left, name: "a" | "b", size: number, first: string): Staging =>
    stage(factor, { name, size, depth, first }, singles, invocations, copies[name] !== undefined);
  const a = partOf(staged(left, "a", rows, "row0"), "a", rows, depth);
  const b = partOf(staged(right, "b", columns, "column0"), "b", columns, depth);
  const groups = perInvocation / 4;
  const sums = rowSums
    ? rowSums.ofBlock(
        { rows, invocations },
        a.registers.map((register) => [register]),
        {
          // The left factor's block, after its last read.
          capacity: sharedQuads(rows, depth),
          get: (place) => `a_block[${place}]`,
          put: (place, value) => `a_block[${place}] = ${value};`,
        },
      )
    : noRowSums;
  const load = (step: string): string => a.load(step) + b.load(step);
  const products = numbers(perInvocation).flatMap((i) =>
    numbers(groups).map((g) => [i, g] as const),
  );
  const multiply = numbers(4)
    .map((k) => {
      const columnsAt = numbers(groups).map((g) => `      let column${g} = ${b.across(g, k)};\n`);
      const add = products.map(
        ([i, g]) =>
          `      sum${i}_${g} = fma(vec4f(${a.one(Math.floor(i / 4), i % 4, k)}), column${g}, sum${i}_${g});\n`,
      );
      return `      {\n${columnsAt.join("")}${add.join("")}      }\n`;
    })
    .join("");
  return `${functions}${a.functions}${b.functions}${rowSums?.store ?? ""}${store}
var<workgroup> a_block: array<vec4f, ${sharedQuads(rows, depth)}>;
var<workgroup> b_block: array<vec4f, ${sharedQuads(columns, depth)}>;
${blockMain(block, width, invocations)}${range(1)}  let x = local % ${acrossInvocations}u;
  let y = local / ${acrossInvocations}u;
${products.map(([i, g]) => `  var sum${i}_${g} = vec4f();\n`).join("")}${a.before}${b.before}${sums.before}  if (begin < end) {
${load("begin")}  }
  for (var step = begin; step < end; step += ${depth / 4}u) {
    workgroupBarrier();
${a.put}${b.put}${sums.each}    workgroupBarrier();
    if (step + ${depth / 4}u < end) {
${load(`(step + ${depth / 4}u)`)}    }
    for (var k = 0u; k < ${depth / 4}u; k++) {
${a.read("y", groups)}${b.read("x", groups)}${multiply}    }
  }
${sums.after}${products
  .map(([i, g]) => {
    const row = `row0 + ${(Math.floor(i / 4) * rows) / groups + (i % 4)}u + y * 4u`;
    const column = `(column0 + ${(g * columns) / groups}u) / 4u + x`;
    return `  store_quad(slice, ${row}, ${column}, sum${i}_${g});\n`;
  })
  .join("")}}
`;
}

interface SharedPart extends Staging {
  /** Statements that put the loaded quads into the array. */
  readonly put: string;
  /** Statements that read `groups` of four lines at quad `k` of k, those of invocation `lane` among its neighbours. */
  read(lane: string, groups: number): string;
  /** WGSL (f32): one of four lines of a group at the k number `k` of the quad. */
  one(group: number, line: number, k: number): string;
  /** WGSL (vec4f): the four lines. */
  across(group: number, k: number): string;
}

/** A factor's part in its array, whose lines have one quad more than elements, so that neighbours lie in different banks. */
function partOf(staging: Staging, name: "a" | "b", size: number, depth: number): SharedPart {
  const { along, registers, line, place } = staging;
  const isAlongK = along === "k";
  const lineQuads = (isAlongK ? depth : size) / 4 + 1;
  // Along k, lines 0, 4, 8 … lie together: neighbouring invocations read them at the same time.
  const order = isAlongK ? `(line % 4u * ${size / 4}u + line / 4u)` : "line";
  const put = registers.map(
    (register, i) =>
      `    { let line = ${line(i)}; ${name}_block[${order} * ${lineQuads}u + ${place(i)}] = ${register}; }\n`,
  );
  return {
    ...staging,
    put: put.join(""),
    read: (lane, groups) =>
      numbers(groups)
        .flatMap((g) => {
          const first = (g * size) / groups / 4;
          return numbers(4).map((e) => {
            const at = isAlongK
              ? `(${(e * size) / 4 + first}u + ${lane}) * ${lineQuads}u + k`
              : `(k * 4u + ${e}u) * ${lineQuads}u + ${first}u + ${lane}`;
            return `      let ${name}${g}_${e} = ${name}_block[${at}];\n`;
          });
        })
        .join(""),
    one: (group, element, k) =>
      isAlongK ? `${name}${group}_${element}[${k}]` : `${name}${group}_${k}[${element}]`,
    across: (group, k) =>
      isAlongK
        ? `vec4f(${numbers(4)
            .map((e) => `${name}${group}_${e}[${k}]`)
            .join(", ")})`
        : `${name}${group}_${k}`,
  };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
