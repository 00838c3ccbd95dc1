import {
  type Binding,
  type DType,
  floatingDTypes,
  type HalfDType,
  type Kernel,
  type KernelScalar,
  type KernelView,
  type Launch,
  type ProgramContext,
} from "@halfstep/device";
import { bfloat16, float16 } from "@halfstep/formats";
import { ByObjects } from "./by-objects.js";
import { type Indexing, indexingOf, indexingWgsl, inputIndex, stridedRank } from "./indexing.js";
import { defineKernel, walkMain, walkWorkgroups, zeroBehind } from "./kernel.js";
import {
  bitsOfElement,
  drawBits,
  drawnBits,
  type RandomSource,
  sourceScalars,
  sourceWords,
} from "./random-bits.js";
import { withPrefix } from "./wgsl/helper-names.js";

/**
 * A function of a few floats, as WGSL over quads and as JavaScript. Two expressions are the same only where they are one object: make
 * each once, outside of steps, because kernels and plans are found again by it.
 */
export interface Expression {
  /** For people: plans as text, messages. */
  readonly name: string;
  /** Number of tensor operands. */
  readonly arity: number;
  /** Number of runtime scalars. Default 0. */
  readonly scalars?: number;
  /** WGSL functions that `wgsl` calls. Their names are the expression's own: programs rename them where they use them. */
  readonly functions?: string;
  /** True where the operands are added and multiplied, and compared with nothing: CPU adapters then decode them faster. */
  readonly isArithmetic?: boolean;
  /** True where each element of the result draws 24 random bits, from a {@link RandomSource} of the launch. */
  readonly isRandom?: boolean;
  /** A `vec4f` expression of the operands `x` (vec4f), the scalars `c` (f32) and the bits drawn (vec4u). */
  wgsl(x: readonly string[], c: readonly string[], bits: string): string;
  evaluate(x: ArrayLike<number>, c: ArrayLike<number>, bits: number): number;
}

/** One application of an expression. Operands number the inputs first, then the steps before this one. */
export interface ElementwiseStep {
  readonly expression: Expression;
  readonly operands: readonly number[];
  /** Rounded to this format, as if the step had stored its result. */
  readonly rounding?: HalfDType;
}

/** A small program over elements of equal shape: what a single op is, and what fusion makes longer. */
export interface ElementwiseProgram {
  readonly inputs: readonly Indexing[];
  readonly steps: readonly ElementwiseStep[];
  /** The steps whose values are stored, one output each. */
  readonly outputs: readonly number[];
}

export interface ElementwiseKernel extends Kernel {
  readonly elementwise: ElementwiseProgram;
}

export const isElementwise = (kernel: Kernel): kernel is ElementwiseKernel =>
  "elementwise" in kernel;

/** A tensor operand with its shape, which is broadcast to the shape of the result. */
export interface ShapedBinding<B> extends Binding<B> {
  readonly shape: readonly number[];
}

/**
 * out = expression(...inputs), with the inputs broadcast to the output's shape as in NumPy.
 * `constants` are the expression's runtime scalars, `source` is where a random one draws.
 */
export function elementwise<B>(
  expression: Expression,
  inputs: readonly ShapedBinding<B>[],
  out: ShapedBinding<B>,
  constants: readonly number[] = [],
  source?: RandomSource,
): Launch<B> {
  if (inputs.length !== expression.arity)
    throw new RangeError(
      `${expression.name} takes ${expression.arity} operands, not ${inputs.length}`,
    );
  const scalars: Record<string, number> = { count: out.length, one: 1 };
  let place = singleKernels(expression);
  for (let i = 0; i < inputs.length; i++) {
    const input = inputs[i] as ShapedBinding<B>;
    const { kind, sizes, strides } = indexingOf(input.shape, out.shape);
    for (let d = 0; d < sizes.length; d++) scalars[`x${i}_size${d}`] = sizes[d] as number;
    for (let d = 0; d < strides.length; d++) scalars[`x${i}_stride${d}`] = strides[d] as number;
    place = placeAfter(place, kind);
  }
  for (let j = 0; j < constants.length; j++) scalars[`c0_${j}`] = constants[j] as number;
  if (source)
    for (const [name, word] of Object.entries(sourceWords(source)))
      scalars[stepPrefix(0) + name] = word;
  return { kernel: kernelAt(place), bindings: [...inputs, out].map(bindingOf), scalars };
}

const bindingOf = <B>({ buffer, offset, length, dtype, rounding }: Binding<B>): Binding<B> =>
  rounding ? { buffer, offset, length, dtype, rounding } : { buffer, offset, length, dtype };

/**
 * The kernels of one expression, as a tree by the indexing of its operands. Nearly every launch asks for one, and finds it so
 * without spelling out its program.
 */
interface KernelPlace {
  readonly expression: Expression;
  /** Of the operands so far. */
  readonly inputs: readonly Indexing[];
  readonly after: Map<Indexing, KernelPlace>;
  kernel: ElementwiseKernel | undefined;
}

const roots = new WeakMap<Expression, KernelPlace>();

function singleKernels(expression: Expression): KernelPlace {
  let root = roots.get(expression);
  if (!root) {
    root = { expression, inputs: [], after: new Map(), kernel: undefined };
    roots.set(expression, root);
  }
  return root;
}

function placeAfter({ expression, inputs, after }: KernelPlace, kind: Indexing): KernelPlace {
  let place = after.get(kind);
  if (!place) {
    place = { expression, inputs: [...inputs, kind], after: new Map(), kernel: undefined };
    after.set(kind, place);
  }
  return place;
}

function kernelAt(place: KernelPlace): ElementwiseKernel {
  const { expression, inputs } = place;
  place.kernel ??= elementwiseKernel({
    inputs,
    steps: [{ expression, operands: inputs.map((_, i) => i) }],
    outputs: [0],
  });
  return place.kernel;
}

const kernels = new ByObjects<ElementwiseKernel>();

/** The kernel of a program; programs of the same expressions and equal choices share one. */
export function elementwiseKernel(program: ElementwiseProgram): ElementwiseKernel {
  const expressions = program.steps.map(({ expression }) => expression);
  const variant = programVariant(program);
  return kernels.get(expressions, variant, () =>
    makeKernel(programName(program), variant, program),
  );
}

/** The names of a program's expressions, for people. */
export const programName = ({ steps }: ElementwiseProgram): string =>
  steps.map(({ expression }) => expression.name).join("+");

/** Every static choice of a program besides its expressions. */
export const programVariant = ({ inputs, steps, outputs }: ElementwiseProgram): string =>
  `${inputs.join(",")};${steps
    .map(({ operands, rounding }) => operands.join(",") + (rounding ? `:${rounding}` : ""))
    .join(";")};${outputs.join(",")}`;

const quadsPerWorkgroup = 512;

/** Integers are floats in between: exact up to 2^24 in magnitude, which is enough for masks and classes. */
export const programDTypes: readonly DType[] = [...floatingDTypes, "uint32", "int32"];

function makeKernel(name: string, variant: string, program: ElementwiseProgram): ElementwiseKernel {
  const { inputs, steps, outputs } = program;
  const kernel = defineKernel({
    name,
    variant,
    bindings: [
      ...inputs.map((_, i) => ({ name: `x${i}`, access: "read" as const, dtypes: programDTypes })),
      ...outputs.map((_, i) => ({
        name: `y${i}`,
        access: "write" as const,
        dtypes: programDTypes,
      })),
    ],
    factors: readsAreArithmetic(program) ? inputs.length : 0,
    scalars: [{ name: "count", type: "u32" }, ...programScalars(program)],
    conversions: steps.flatMap(({ rounding }) => rounding ?? []),
    body: (context) => wgslOf(program, context),
    workgroups: ({ count }, _, context) =>
      walkWorkgroups(Math.ceil((count as number) / 4), context, quadsPerWorkgroup),
    reference: (views, values) => evaluateProgram(program, views, values),
  });
  return { ...kernel, elementwise: program };
}

/** Whether all that a program reads is added or multiplied, before it is compared with anything. */
export const readsAreArithmetic = ({ inputs, steps }: ElementwiseProgram): boolean =>
  steps.every(
    ({ expression, operands }) =>
      expression.isArithmetic || operands.every((o) => o >= inputs.length),
  );

/** The scalars that a program reads: a one, what finds its operands' elements, and the constants of its steps. */
export function programScalars({ inputs, steps }: ElementwiseProgram): KernelScalar[] {
  const scalars: KernelScalar[] = [{ name: "one", type: "f32", runtime: true }];
  for (const [i, kind] of inputs.entries())
    for (const member of indexingScalars(kind))
      scalars.push({ name: `x${i}_${member}`, type: "u32" });
  for (const [k, { expression }] of steps.entries()) {
    for (let j = 0; j < (expression.scalars ?? 0); j++)
      scalars.push({ name: `c${k}_${j}`, type: "f32", runtime: true });
    if (expression.isRandom)
      for (const scalar of sourceScalars)
        scalars.push({ ...scalar, name: stepPrefix(k) + scalar.name });
  }
  return scalars;
}

/** With what the names of a step's scalars begin. */
export const stepPrefix = (step: number): string => `c${step}_`;

/** Whether a program draws random numbers. It then has to know the place of each quad in the result. */
export const isRandom = ({ steps }: ElementwiseProgram): boolean =>
  steps.some(({ expression }) => expression.isRandom);

function indexingScalars(kind: Indexing): string[] {
  const rank = kind === "row" ? 1 : stridedRank(kind);
  const sizes = Array.from({ length: rank }, (_, d) => `size${d}`);
  return kind === "row" ? sizes : [...sizes, ...sizes.map((_, d) => `stride${d}`)];
}

/** The expressions of a program that call functions of their own, once each, with what gives these names that no other has. */
function helpersOf({ steps }: ElementwiseProgram): Map<Expression, (code: string) => string> {
  const helpers = new Map<Expression, (code: string) => string>();
  for (const [k, { expression }] of steps.entries())
    if (expression.functions && !helpers.has(expression))
      helpers.set(expression, withPrefix(expression.functions, `step${k}_`));
  return helpers;
}

/** The WGSL functions that the steps of a program call. */
export function stepFunctions(program: ElementwiseProgram): string {
  let code = isRandom(program) ? drawBits : "";
  for (const [{ functions = "" }, renamed] of helpersOf(program)) code += renamed(functions);
  return code;
}

/**
 * Statements that compute `vK` (vec4f) for each step from the inputs `v0 …`; K counts the inputs first. They are of quad `quad` of
 * the result, a WGSL expression.
 */
export function stepStatements(program: ElementwiseProgram, quad: string): string {
  const { inputs, steps } = program;
  const helpers = helpersOf(program);
  let code = "";
  for (const [k, { expression, operands, rounding: format }] of steps.entries()) {
    const x = operands.map((o) => `v${o}`);
    const c = Array.from({ length: expression.scalars ?? 0 }, (_, j) => `s.c${k}_${j}`);
    if (expression.isRandom) code += `  let bits${k} = ${drawnBits(quad, stepPrefix(k))};\n`;
    const written = expression.wgsl(x, c, `bits${k}`);
    const value = helpers.get(expression)?.(written) ?? written;
    // A product with a one that the compiler cannot know keeps it from contracting two steps into one rounding.
    const kept = k < steps.length - 1 ? `(${value}) * s.one` : value;
    const rounded = format ? `round4_${format}(${value})` : kept;
    code += `  let v${inputs.length + k} = ${rounded};\n`;
  }
  return code;
}

function wgslOf(program: ElementwiseProgram, context: ProgramContext): string {
  const { inputs, outputs } = program;
  let code = stepFunctions(program);
  for (const [i, kind] of inputs.entries()) code += indexingWgsl(kind, `x${i}`);
  code += walkMain("(s.count + 3u) / 4u", context);
  for (const i of inputs.keys()) code += `  let v${i} = quad_x${i}(index);\n`;
  code += stepStatements(program, "index");
  for (const [i, step] of outputs.entries()) {
    const dtype = context.bindings[inputs.length + i]?.dtype;
    const stored = dtype === "uint32" ? "vec4u" : dtype === "int32" ? "vec4i" : "";
    code += `  store_y${i}(index, ${stored}(${zeroBehind(`v${inputs.length + step}`, "s.count")}));\n`;
  }
  return `${code}  }\n}\n`;
}

/** Evaluates a program on the CPU: `views` are its inputs, then its outputs. */
export function evaluateProgram(
  { inputs, steps, outputs }: ElementwiseProgram,
  views: readonly KernelView[],
  scalars: Readonly<Record<string, number>>,
): void {
  const isWide = views[inputs.length] instanceof Float64Array;
  const count = scalars.count as number;
  const index = inputs.map((kind, i) => inputIndex(kind, `x${i}`, scalars));
  const constants = steps.map(({ expression }, k) =>
    Array.from({ length: expression.scalars ?? 0 }, (_, j) => {
      const value = scalars[`c${k}_${j}`] as number;
      return isWide ? value : Math.fround(value);
    }),
  );
  const drawn = steps.map(({ expression }, k) =>
    expression.isRandom ? bitsOfElement(scalars, stepPrefix(k)) : undefined,
  );
  const values = new Float64Array(inputs.length + steps.length);
  const operands = steps.map((step) => new Float64Array(step.operands.length));
  for (let e = 0; e < count; e++) {
    for (let i = 0; i < inputs.length; i++)
      values[i] = (views[i] as KernelView)[(index[i] as (e: number) => number)(e)] as number;
    for (let k = 0; k < steps.length; k++) {
      const step = steps[k] as ElementwiseStep;
      const x = operands[k] as Float64Array;
      for (let o = 0; o < x.length; o++) x[o] = values[step.operands[o] as number] as number;
      const value = step.expression.evaluate(x, constants[k] as number[], drawn[k]?.(e) ?? 0);
      values[inputs.length + k] = isWide ? value : roundStep(value, step.rounding);
    }
    for (let o = 0; o < outputs.length; o++)
      (views[inputs.length + o] as KernelView)[e] = values[
        inputs.length + (outputs[o] as number)
      ] as number;
  }
}

function roundStep(value: number, rounding: HalfDType | undefined): number {
  const single = Math.fround(value);
  if (!rounding) return single;
  return (rounding === "float16" ? float16 : bfloat16).round(single);
}
