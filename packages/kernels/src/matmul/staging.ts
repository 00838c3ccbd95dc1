import { type CopiedLines, type FactorQuads, factorLoads, type GroupForm } from "./block.js";

/** How elements lie in the workgroup memory of a block: as a number of them in each element of an array. */
export interface BlockForm extends GroupForm {
  /** WGSL of four loaded elements (`vec4f`) in this form; for eight there is none, because they are only copied. */
  encode(quad: string): string;
  /** WGSL (`vec4f`) of each four of the elements. */
  decode(value: string): readonly string[];
}

const asHalves = (words: string): string => `vec4f(bitcast<vec4<f16>>(${words}))`;

/** Four of float32. */
export const singles: BlockForm = {
  elements: 4,
  type: "vec4f",
  encode: (quad) => quad,
  decode: (value) => [value],
};

/** Four of float16. */
export const halves: BlockForm = {
  elements: 4,
  type: "vec2u",
  encode: (quad) => `bitcast<vec2u>(vec4<f16>(${quad}))`,
  decode: (value) => [asHalves(value)],
};

/** Eight of float16, which are only copied. */
export const copiedHalves: BlockForm = {
  elements: 8,
  type: "vec4u",
  encode: (value) => value,
  decode: (value) => [asHalves(`${value}.xy`), asHalves(`${value}.zw`)],
};

/** A factor's part of a block: `size` × `depth`, the first at `first` (WGSL, u32) across k. */
export interface FactorPart {
  readonly name: "a" | "b";
  readonly size: number;
  readonly depth: number;
  readonly first: string;
}

/** WGSL by which each invocation moves its share of a factor from its binding to workgroup memory. */
export interface Staging {
  readonly along: "k" | "across";
  /** Functions that the loads call. */
  readonly functions: string;
  /** Statements before the loop over k. */
  readonly before: string;
  /** Statements that load into registers the part that begins at quad `step` of k. Parts are loaded one after the other. */
  load(step: string): string;
  /** The registers of what was loaded. */
  readonly registers: readonly string[];
  /** WGSL (u32): the line of a register's elements (along k: the row or column; across: the k), and their place in the line. */
  line(i: number): string;
  place(i: number): string;
}

const loadsIn = (
  along: "k" | "across",
  { size, depth }: Pick<FactorPart, "size" | "depth">,
  elements: number,
  invocations: number,
) => ({
  perLine: (along === "k" ? depth : size) / elements,
  count: (size * depth) / elements / invocations,
});

/** Whether invocations can divide the loads of a part so that each has the same place in every line that it loads. */
export const canLoad = (part: Pick<FactorPart, "size" | "depth">, invocations: number): boolean =>
  ([4, 8] as const).every((elements) =>
    (["k", "across"] as const).every((along) => {
      const { perLine, count } = loadsIn(along, part, elements, invocations);
      return Number.isInteger(count) && invocations % perLine === 0;
    }),
  );

/** Moves a factor that `isCopied` as it is stored, and any other through its `vec4f`s. */
export function stage(
  factor: FactorQuads,
  part: FactorPart,
  form: BlockForm,
  invocations: number,
  isCopied: boolean,
): Staging {
  const { along, copied } = factor;
  if (!isCopied || !copied) return stageLoads(factor, part, form, invocations, 4);
  if (!("inGroups" in copied)) return stageLines(along, copied, part, form, invocations);
  const { elements, type } = form;
  const groups: FactorQuads = { along, isBounded: true, ...copied.inGroups(form) };
  const asStored = { type, encode: (group: string) => group };
  return stageLoads(groups, part, asStored, invocations, elements);
}

function stageLoads(
  factor: FactorQuads,
  part: FactorPart,
  { type, encode }: Pick<BlockForm, "type" | "encode">,
  invocations: number,
  elements: 4 | 8,
): Staging {
  const { count, before, load, advance, line, place } = factorLoads(
    factor,
    part,
    invocations,
    elements,
  );
  const registers = registersOf(part.name, count);
  return {
    along: factor.along,
    functions: factor.functions ?? "",
    before: before + declared(registers, type),
    load: (step) =>
      registers.map((register, i) => `    ${register} = ${encode(load(i, step))};\n`).join("") +
      advance,
    registers,
    line,
    place,
  };
}

/**
 * The address of the first load is computed before the loop, and advances by a constant number of lines or of elements. The other
 * loads follow it at equal distances. Only the last part along k needs zeros past the end.
 */
function stageLines(
  along: "k" | "across",
  copied: CopiedLines,
  { name, size, depth, first }: FactorPart,
  { elements, type }: BlockForm,
  invocations: number,
): Staging {
  const { perLine, count } = loadsIn(along, { size, depth }, elements, invocations);
  const registers = registersOf(name, count);
  const linesApart = invocations / perLine;
  const [line, place, at, stride, end] = ["line", "place", "at", "stride", "end"].map(
    (of) => `${name}_${of}`,
  );
  const start =
    along === "k"
      ? `(${first} + ${line}) * ${stride} + begin * 4u / ${elements}u + ${place}`
      : `(begin * 4u + ${line}) * ${stride} + ${first} / ${elements}u + ${place}`;
  const advance = along === "k" ? `${depth / elements}u` : `${depth}u * ${stride}`;
  const values = registers.map((_, i) =>
    copied.load(i === 0 ? `${at}` : `${at} + ${i * linesApart}u * ${stride}`),
  );
  const kOf = (i: number, step: string): string =>
    along === "k"
      ? `${step} * 4u + ${place} * ${elements}u`
      : `${step} * 4u + ${line} + ${i * linesApart}u`;
  const each = (value: (i: number) => string): string =>
    registers.map((register, i) => `      ${register} = ${value(i)};\n`).join("");
  return {
    along,
    functions: "",
    before: `  let ${line} = local / ${perLine}u;
  let ${place} = local % ${perLine}u;
  let ${stride} = ${copied.stride} / ${elements}u;
  let ${end} = ${copied.end};
  var ${at} = ${copied.start} / ${elements}u + ${start};
${declared(registers, type)}`,
    load: (step) => `    if (${step} * 4u + ${depth}u <= ${end}) {
${each((i) => values[i] as string)}    } else {
${each((i) => `select(${type}(), ${values[i]}, ${kOf(i, step)} < ${end})`)}    }
    ${at} += ${advance};
`,
    registers,
    line: (i) => (i === 0 ? `${line}` : `(${line} + ${i * linesApart}u)`),
    place: () => `${place}`,
  };
}

const registersOf = (name: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `next_${name}${i}`);

const declared = (registers: readonly string[], type: string): string =>
  registers.map((register) => `  var ${register}: ${type};\n`).join("");
