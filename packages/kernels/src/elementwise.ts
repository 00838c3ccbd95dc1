import type {
  Binding,
  HalfDType,
  Kernel,
  KernelScalar,
  KernelView,
  Launch,
  ProgramContext,
} from "@halfstep/device";
import { dtypes } from "@halfstep/formats/dtypes";
import { ByObjects } from "./by-objects.js";
import { type Domain, domainOf, dtypesOf, quadType } from "./domain.js";
import { type Form, formOf, type IntegerForms } from "./forms.js";
import { stripLength } from "./formula/operators.js";
import { type Indexing, indexingOf, indexingWgsl, inputIndex, stridedRank } from "./indexing.js";
import { defineWovenKernel, walkMain, walkWorkgroups, zeroBehind } from "./kernel.js";
import {
  bitsOfElement,
  drawBits,
  drawnBits,
  type RandomSource,
  sourceScalars,
  sourceWords,
} from "./random-bits.js";
import { withPrefix } from "./wgsl/helper-names.js";
import type { UnitQuads } from "./wgsl/quad-units.js";

/**
 * A function of a few numbers, as WGSL over quads and as JavaScript: `formula` makes both from one tree. The members `wgsl` and `evaluate`
 * are for floats; integer operands stay integers and need a form of their own (`integers`). Expressions are identified by their objects:
 * make each once, outside of steps, because kernels and plans are cached by it.
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
  /** The domain of the result for floats: "uint32" for masks. Default "float". */
  readonly result?: Domain;
  /** The exact function where some operands are integers. Default: none, and integers are refused. */
  readonly integers?: IntegerForms;
  /** An expression of type `vec4f`, or that of `result`, of the operands `x` (vec4f), the scalars `c` (f32) and the bits drawn (vec4u). */
  wgsl(x: readonly string[], c: readonly string[], bits: string): string;
  evaluate(x: ArrayLike<number>, c: ArrayLike<number>, bits: number): number;
  /** The same for `count` elements of each operand, 256 at most: faster. An expression that draws bits has none. */
  evaluateStrip?(
    x: readonly Float64Array[],
    c: ArrayLike<number>,
    out: Float64Array,
    count: number,
  ): void;
}

/** One application of an expression. Operands number the inputs first, then the steps before this one. */
export interface ElementwiseStep {
  readonly expression: Expression;
  readonly operands: readonly number[];
  /** Rounded to this format, as if the step had stored its result. */
  readonly rounding?: HalfDType;
}

/** A small program over elements of equal shape: a single op, or several fused ones. */
export interface ElementwiseProgram {
  readonly inputs: readonly Indexing[];
  /** The domain of each input. Default: floats. The domain of each step follows from its operands: see `formsOf`. */
  readonly domains?: readonly Domain[];
  readonly steps: readonly ElementwiseStep[];
  /** The steps whose values are stored, one output each. */
  readonly outputs: readonly number[];
}

/** A kernel that computes an expression for each element. */
export interface ElementwiseKernel extends Kernel {
  readonly elementwise: ElementwiseProgram;
}

/** Whether a kernel computes an expression for each element. */
export const isElementwise = (kernel: Kernel): kernel is ElementwiseKernel =>
  "elementwise" in kernel;

/** A tensor operand with its shape, which is broadcast to the shape of the result. */
export interface ShapedBinding<B> extends Binding<B> {
  readonly shape: readonly number[];
}

/**
 * out = expression(...inputs), with the inputs broadcast to the output's shape as in NumPy. `constants` are the expression's runtime
 * scalars, and `source` has the random bits of a random one.
 *
 * @throws TypeError where the expression does not compute with integers and an operand is one, and where the domain of its result is not
 * that of the output
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
  const bindings: Binding<B>[] = [];
  let place = singleKernels(expression);
  for (let i = 0; i < inputs.length; i++) {
    const input = inputs[i] as ShapedBinding<B>;
    const { kind, sizes, strides } = indexingOf(input.shape, out.shape);
    for (let d = 0; d < sizes.length; d++) scalars[sizeName(i, d)] = sizes[d] as number;
    for (let d = 0; d < strides.length; d++) scalars[strideName(i, d)] = strides[d] as number;
    place = placeAfter(place, kind, domainOf(input.dtype));
    bindings.push(bindingOf(input));
  }
  bindings.push(bindingOf(out));
  const { kernel, form } = kernelAt(place);
  if (domainOf(out.dtype) !== form.result)
    throw new TypeError(
      `${expression.name} gives ${form.result} of these operands, and its output is ${out.dtype}`,
    );
  const values = form.scalarsOf?.(constants) ?? constants;
  for (let j = 0; j < values.length; j++) scalars[constantName(0, j)] = values[j] as number;
  if (source)
    for (const [name, word] of Object.entries(sourceWords(source)))
      scalars[stepPrefix(0) + name] = word;
  return { kernel, bindings, scalars };
}

/** Names with two numbers, each made once: engines look up a text that was just joined several times as slowly. */
function numberedNames(join: (i: number, j: number) => string): (i: number, j: number) => string {
  const names: string[][] = [];
  return (i, j) => {
    names[i] ??= [];
    const row = names[i];
    row[j] ??= join(i, j);
    return row[j];
  };
}

const sizeName = numberedNames((input, d) => `x${input}_size${d}`);
const strideName = numberedNames((input, d) => `x${input}_stride${d}`);
const constantName = numberedNames((step, j) => `c${step}_${j}`);

const bindingOf = <B>({ buffer, offset, length, dtype, rounding }: Binding<B>): Binding<B> =>
  rounding ? { buffer, offset, length, dtype, rounding } : { buffer, offset, length, dtype };

/**
 * The kernels of one expression, as a tree by the indexing and the domains of its operands. A launch looks its kernel up here without
 * building its program.
 */
interface KernelPlace {
  readonly expression: Expression;
  /** The indexing of the operands so far. */
  readonly inputs: readonly Indexing[];
  readonly domains: readonly Domain[];
  readonly after: Readonly<Record<Domain, Map<Indexing, KernelPlace>>>;
  made: { readonly kernel: ElementwiseKernel; readonly form: Form } | undefined;
}

const roots = new WeakMap<Expression, KernelPlace>();

const emptyPlace = (
  expression: Expression,
  inputs: readonly Indexing[],
  domains: readonly Domain[],
): KernelPlace => ({
  ...{ expression, inputs, domains, made: undefined },
  after: { float: new Map(), int32: new Map(), uint32: new Map() },
});

function singleKernels(expression: Expression): KernelPlace {
  let root = roots.get(expression);
  if (!root) {
    root = emptyPlace(expression, [], []);
    roots.set(expression, root);
  }
  return root;
}

function placeAfter(before: KernelPlace, kind: Indexing, domain: Domain): KernelPlace {
  const { expression, inputs, domains, after } = before;
  let place = after[domain].get(kind);
  if (!place) {
    place = emptyPlace(expression, [...inputs, kind], [...domains, domain]);
    after[domain].set(kind, place);
  }
  return place;
}

function kernelAt(place: KernelPlace): NonNullable<KernelPlace["made"]> {
  const { expression, inputs, domains } = place;
  place.made ??= {
    form: formOf(expression, domains),
    kernel: elementwiseKernel({
      inputs,
      domains,
      steps: [{ expression, operands: inputs.map((_, i) => i) }],
      outputs: [0],
    }),
  };
  return place.made;
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
export function programVariant(program: ElementwiseProgram): string {
  const { inputs, steps, outputs } = program;
  const domains = domainsOf(program);
  const kinds = inputs.map((kind, i) => (domains[i] === "float" ? kind : `${kind} ${domains[i]}`));
  return `${kinds.join(",")};${steps
    .map(({ operands, rounding }) => operands.join(",") + (rounding ? `:${rounding}` : ""))
    .join(";")};${outputs.join(",")}`;
}

const quadsPerWorkgroup = 512;

/** The domain of each input of a program. */
export const domainsOf = ({ inputs, domains }: ElementwiseProgram): readonly Domain[] =>
  domains ?? inputs.map(() => "float");

/** The form of each step of a program. */
function formsOf(program: ElementwiseProgram): readonly Form[] {
  const { steps } = program;
  const values = [...domainsOf(program)];
  return steps.map(({ expression, operands }) => {
    const form = formOf(
      expression,
      operands.map((o) => values[o] as Domain),
    );
    values.push(form.result);
    return form;
  });
}

function makeKernel(name: string, variant: string, program: ElementwiseProgram): ElementwiseKernel {
  const { inputs, steps, outputs } = program;
  const forms = formsOf(program);
  const kernel = defineWovenKernel({
    name,
    variant,
    bindings: [
      ...domainsOf(program).map((domain, i) => ({
        name: `x${i}`,
        access: "read" as const,
        dtypes: dtypesOf(domain),
      })),
      ...outputs.map((step, i) => ({
        name: `y${i}`,
        access: "write" as const,
        dtypes: dtypesOf((forms[step] as Form).result),
      })),
    ],
    factors: readsAreArithmetic(program) ? inputs.length : 0,
    one: "one",
    storedOnce: outputs.map((_, i) => `y${i}`),
    scalars: [{ name: "count", type: "u32" }, ...programScalars(program)],
    conversions: steps.flatMap(({ rounding }) => rounding ?? []),
    streams: (i) => (inputs[i] ?? "same") === "same",
    body: (context, _, quads) => wgslOf(program, forms, context, quads),
    // With pairs an invocation of as many workgroups moves half as many units.
    workgroups: ({ count }, _, context) =>
      walkWorkgroups(Math.ceil((count as number) / 4), context, quadsPerWorkgroup),
    reference: (views, values) => evaluateProgram(program, views, values),
  });
  return { ...kernel, elementwise: program };
}

/** Whether a program only adds and multiplies its inputs before any comparison. */
export const readsAreArithmetic = ({ inputs, steps }: ElementwiseProgram): boolean =>
  steps.every(
    ({ expression, operands }) =>
      expression.isArithmetic || operands.every((o) => o >= inputs.length),
  );

/** The scalars that a program reads: a one, the scalars of its operands' indexing, and the constants of its steps. */
export function programScalars(program: ElementwiseProgram): KernelScalar[] {
  const { inputs, steps } = program;
  const forms = formsOf(program);
  const scalars: KernelScalar[] = [{ name: "one", type: "f32", runtime: true }];
  for (const [i, kind] of inputs.entries())
    for (const member of indexingScalars(kind))
      scalars.push({ name: `x${i}_${member}`, type: "u32" });
  for (const [k, { expression }] of steps.entries()) {
    for (const [j, type] of (forms[k] as Form).scalars.entries())
      scalars.push({ name: `c${k}_${j}`, type, runtime: true });
    if (expression.isRandom)
      for (const scalar of sourceScalars)
        scalars.push({ ...scalar, name: stepPrefix(k) + scalar.name });
  }
  return scalars;
}

/** The prefix of the names of a step's scalars. */
export const stepPrefix = (step: number): string => `c${step}_`;

/** Whether a program draws random numbers. It then needs the index of each quad in the result. */
export const isRandom = ({ steps }: ElementwiseProgram): boolean =>
  steps.some(({ expression }) => expression.isRandom);

function indexingScalars(kind: Indexing): string[] {
  const rank = kind === "row" ? 1 : stridedRank(kind);
  const sizes = Array.from({ length: rank }, (_, d) => `size${d}`);
  return kind === "row" ? sizes : [...sizes, ...sizes.map((_, d) => `stride${d}`)];
}

/** The forms in a program that call functions of their own, once each, with a function that makes their names unique. */
function helpersOf(forms: readonly Form[]): Map<Form, (code: string) => string> {
  const helpers = new Map<Form, (code: string) => string>();
  for (const [k, form] of forms.entries())
    if (form.functions && !helpers.has(form))
      helpers.set(form, withPrefix(form.functions, `step${k}_`));
  return helpers;
}

/** The WGSL functions that the steps of a program call. */
export function stepFunctions(program: ElementwiseProgram): string {
  let code = isRandom(program) ? drawBits : "";
  for (const [{ functions = "" }, renamed] of helpersOf(formsOf(program)))
    code += renamed(functions);
  return code;
}

/**
 * Statements that compute `vK`, a vector of its domain, for each step from the inputs `v0 …`; K counts the inputs first. They compute quad
 * `quad` of the result, a WGSL expression. `nameOf` maps the program's scalars to their names in scope.
 */
export function stepStatements(
  program: ElementwiseProgram,
  quad: string,
  nameOf = (scalar: string): string => scalar,
): string {
  const { inputs, steps } = program;
  const forms = formsOf(program);
  const helpers = helpersOf(forms);
  let code = "";
  for (const [k, { expression, operands, rounding: format }] of steps.entries()) {
    const form = forms[k] as Form;
    const x = operands.map((o) => `v${o}`);
    const c = form.scalars.map((_, j) => `s.${nameOf(`${stepPrefix(k)}${j}`)}`);
    if (expression.isRandom)
      code += `  let bits${k} = ${drawnBits(quad, nameOf(stepPrefix(k)))};\n`;
    const written = form.wgsl(x, c, `bits${k}`);
    const value = helpers.get(form)?.(written) ?? written;
    // The factor 1, unknown to the compiler, prevents it from contracting two steps into one rounding.
    const kept =
      k < steps.length - 1 && form.result === "float" ? `(${value}) * s.${nameOf("one")}` : value;
    const rounded = format ? `round4_${format}(${value})` : kept;
    code += `  let v${inputs.length + k} = ${rounded};\n`;
  }
  return code;
}

function wgslOf(
  program: ElementwiseProgram,
  forms: readonly Form[],
  context: ProgramContext,
  quads: UnitQuads = 1,
): string {
  const { inputs, outputs } = program;
  const domains = domainsOf(program);
  let code = stepFunctions(program);
  let loads = "";
  for (const [i, kind] of inputs.entries())
    if (quads === 1 || kind !== "same") code += indexingWgsl(kind, `x${i}`, domains[i]);
    else loads += `  let x${i}_pair = load_x${i}(index);\n`;
  code += walkMain(`(s.count + ${4 * quads - 1}u) / ${4 * quads}u`, context);
  // The statements of quad `index`: alone, or as one half of a pair.
  const quad = (half: string): string =>
    `${inputs
      .map(
        (kind, i) =>
          `  let v${i} = ${half && kind === "same" ? `x${i}_pair${half}` : `quad_x${i}(index)`};\n`,
      )
      .join("")}${stepStatements(program, "index")}${outputs
      .map((step, i) => {
        const type = quadType((forms[step] as Form).result);
        const value = zeroBehind(`v${inputs.length + step}`, "s.count", type);
        return half ? `  y${i}_pair${half} = ${value};\n` : `  store_y${i}(index, ${value});\n`;
      })
      .join("")}`;
  if (quads === 1) return `${code}${quad("")}  }\n}\n`;
  code += `${loads}  let pair = index;\n`;
  for (const i of outputs.keys()) code += `  var y${i}_pair: mat2x4f;\n`;
  for (const half of [0, 1])
    code += `  { let index = pair * 2u + ${half}u;\n${quad(`[${half}]`)}  }\n`;
  // The memory of a quad behind the end may belong to another.
  for (const i of outputs.keys())
    code += `  if (pair * 8u + 4u < s.count) { store_y${i}(pair, y${i}_pair); } else { store_first_y${i}(pair, y${i}_pair[0]); }\n`;
  return `${code}  }\n}\n`;
}

/** Evaluates a program on the CPU: `views` are its inputs, then its outputs. */
export function evaluateProgram(
  program: ElementwiseProgram,
  views: readonly KernelView[],
  scalars: Readonly<Record<string, number>>,
): void {
  const { inputs, steps, outputs } = program;
  const forms = formsOf(program);
  const isWide = views[inputs.length] instanceof Float64Array;
  const total = scalars.count as number;
  const fills = inputs.map((kind, i) =>
    stripFiller(kind, `x${i}`, views[i] as KernelView, scalars),
  );
  const constants = forms.map((form, k) =>
    form.scalars.map((type, j) => {
      const value = scalars[`c${k}_${j}`] as number;
      return isWide || type !== "f32" ? value : Math.fround(value);
    }),
  );
  const drawn = steps.map(({ expression }, k) =>
    expression.isRandom ? bitsOfElement(scalars, stepPrefix(k)) : undefined,
  );
  const length = Math.min(total, stripLength);
  const values = [...inputs, ...steps].map(() => new Float64Array(length));
  const operands = steps.map((step) => step.operands.map((o) => values[o] as Float64Array));
  for (let start = 0; start < total; start += stripLength) {
    const count = Math.min(stripLength, total - start);
    for (const [i, fill] of fills.entries()) fill(values[i] as Float64Array, start, count);
    for (const [k, { rounding }] of steps.entries()) {
      const form = forms[k] as Form;
      const x = operands[k] as readonly Float64Array[];
      const out = values[inputs.length + k] as Float64Array;
      const c = constants[k] as readonly number[];
      if (form.evaluateStrip) form.evaluateStrip(x, c, out, count);
      else evaluateEach(form, x, c, out, count, (e) => drawn[k]?.(start + e) ?? 0);
      if (!isWide && form.result === "float") roundStrip(out, count, rounding);
    }
    for (const [o, step] of outputs.entries()) {
      const strip = values[inputs.length + step] as Float64Array;
      const view = views[inputs.length + o] as KernelView;
      view.set(count < length ? strip.subarray(0, count) : strip, start);
    }
  }
}

/** Copies the elements of an input in the order of the result's elements. */
function stripFiller(
  kind: Indexing,
  x: string,
  view: KernelView,
  scalars: Readonly<Record<string, number>>,
): (strip: Float64Array, start: number, count: number) => void {
  if (kind === "same")
    return (strip, start, count) => strip.set(view.subarray(start, start + count));
  const indexOf = inputIndex(kind, x, scalars);
  return (strip, start, count) => {
    for (let e = 0; e < count; e++) strip[e] = view[indexOf(start + e)] as number;
  };
}

/** Evaluates a form element by element. */
function evaluateEach(
  form: Form,
  operands: readonly Float64Array[],
  constants: readonly number[],
  out: Float64Array,
  count: number,
  bitsOf: (element: number) => number,
): void {
  const x = new Float64Array(operands.length);
  for (let e = 0; e < count; e++) {
    for (let o = 0; o < x.length; o++) x[o] = operands[o]?.[e] as number;
    out[e] = form.evaluate(x, constants, bitsOf(e));
  }
}

function roundStrip(strip: Float64Array, count: number, rounding: HalfDType | undefined): void {
  for (let e = 0; e < count; e++) strip[e] = Math.fround(strip[e] as number);
  if (!rounding) return;
  const { format } = dtypes[rounding];
  for (let e = 0; e < count; e++) strip[e] = format.round(strip[e] as number);
}
