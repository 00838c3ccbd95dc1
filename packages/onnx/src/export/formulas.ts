import * as kernels from "@halfstep/kernels";
import { type DataType, dataType } from "../data-type.js";
import type { Emission } from "./emission.js";
import type { Attributes, Reference } from "./graph-builder.js";
import { ComputedSource, orderOf, plain, take, type Value } from "./values.js";

/** Writes a formula: nodes on operands of one type, and constants of that type. */
interface Pen {
  node(operator: string, inputs: readonly Reference[], attributes?: Attributes): Reference;
  number(value: number): Reference;
  readonly opset: number;
}

type Formula = (pen: Pen, x: readonly Reference[], c: readonly number[]) => Reference;

/** A formula, with what its operands and its result are. */
interface Entry {
  readonly write: Formula;
  /** "masks": its operands are conditions. "tests": it compares numbers. Default: floats give floats. */
  readonly kind?: "masks" | "tests";
  /** The place of an operand that is a condition. */
  readonly mask?: number;
}

const same =
  (operator: string, attributes?: Attributes): Formula =>
  (pen, x) =>
    pen.node(operator, x, attributes);

const withNumber =
  (operator: string): Formula =>
  (pen, x, [c = 0]) =>
    pen.node(operator, [...x, pen.number(c)]);

const gelu: Formula = (pen, [x]) => {
  const operand = x as Reference;
  if (pen.opset >= 20) return pen.node("Gelu", [operand]);
  const erf = pen.node("Erf", [pen.node("Mul", [operand, pen.number(Math.SQRT1_2)])]);
  const twice = pen.node("Mul", [operand, pen.node("Add", [erf, pen.number(1)])]);
  return pen.node("Mul", [twice, pen.number(0.5)]);
};

const geluTanh: Formula = (pen, [x]) => {
  const operand = x as Reference;
  if (pen.opset >= 20) return pen.node("Gelu", [operand], { approximate: "tanh" });
  const square = pen.node("Mul", [operand, operand]);
  const cubic = pen.node("Add", [pen.node("Mul", [square, pen.number(0.044715)]), pen.number(1)]);
  const inner = pen.node("Mul", [
    pen.node("Mul", [operand, cubic]),
    pen.number(Math.sqrt(2 / Math.PI)),
  ]);
  const twice = pen.node("Mul", [
    operand,
    pen.node("Add", [pen.node("Tanh", [inner]), pen.number(1)]),
  ]);
  return pen.node("Mul", [twice, pen.number(0.5)]);
};

/** NaN stays NaN, as in the kernels: Clip may lose it. */
const clamp: Formula = (pen, [x], [low = 0, high = 0]) => {
  let result = x as Reference;
  if (low !== Number.NEGATIVE_INFINITY) result = pen.node("Max", [result, pen.number(low)]);
  if (high !== Number.POSITIVE_INFINITY) result = pen.node("Min", [result, pen.number(high)]);
  return result;
};

const test = (operator: string): Entry => ({ write: same(operator), kind: "tests" });
const testOfNumber = (operator: string): Entry => ({ write: withNumber(operator), kind: "tests" });
const not =
  (write: Formula): Formula =>
  (pen, x, c) =>
    pen.node("Not", [write(pen, x, c)]);

const floats: readonly (readonly [kernels.Expression, Formula])[] = [
  [kernels.add, same("Add")],
  [kernels.sub, same("Sub")],
  [kernels.mul, same("Mul")],
  [kernels.div, same("Div")],
  [kernels.maximum, same("Max")],
  [kernels.minimum, same("Min")],
  [kernels.powTensor, same("Pow")],
  [kernels.scale, withNumber("Mul")],
  [kernels.addScalar, withNumber("Add")],
  [kernels.pow, withNumber("Pow")],
  [kernels.square, (pen, [x]) => pen.node("Mul", [x, x] as Reference[])],
  [kernels.sqrt, same("Sqrt")],
  [kernels.rsqrt, (pen, x) => pen.node("Reciprocal", [pen.node("Sqrt", x)])],
  [kernels.reciprocal, same("Reciprocal")],
  [kernels.abs, same("Abs")],
  [kernels.sign, same("Sign")],
  [kernels.floor, same("Floor")],
  [kernels.ceil, same("Ceil")],
  [kernels.round, same("Round")],
  [kernels.exp, same("Exp")],
  [kernels.log, same("Log")],
  [
    kernels.log1p,
    (pen, [x]) => pen.node("Log", [pen.node("Add", [x as Reference, pen.number(1)])]),
  ],
  [kernels.expm1, (pen, x) => pen.node("Sub", [pen.node("Exp", x), pen.number(1)])],
  [kernels.erf, same("Erf")],
  [kernels.sin, same("Sin")],
  [kernels.cos, same("Cos")],
  [kernels.tan, same("Tan")],
  [kernels.asin, same("Asin")],
  [kernels.acos, same("Acos")],
  [kernels.atan, same("Atan")],
  [kernels.sinh, same("Sinh")],
  [kernels.cosh, same("Cosh")],
  [kernels.tanh, same("Tanh")],
  [kernels.sigmoid, same("Sigmoid")],
  [kernels.relu, same("Relu")],
  [kernels.silu, (pen, x) => pen.node("Mul", [x[0] as Reference, pen.node("Sigmoid", x)])],
  [kernels.gelu, gelu],
  [kernels.geluTanh, geluTanh],
  [kernels.elu, (pen, x, [alpha = 1]) => pen.node("Elu", x, { alpha: { float: alpha } })],
  [kernels.leakyRelu, (pen, x, [c = 0]) => pen.node("LeakyRelu", x, { alpha: { float: c } })],
  [kernels.prelu, same("PRelu")],
  [kernels.clamp, clamp],
];

const formulas: ReadonlyMap<kernels.Expression, Entry> = new Map<kernels.Expression, Entry>([
  ...floats.map(([expression, write]) => [expression, { write }] as const),
  [kernels.eq, test("Equal")],
  [kernels.ne, { write: not(same("Equal")), kind: "tests" }],
  [kernels.lt, test("Less")],
  [kernels.le, test("LessOrEqual")],
  [kernels.gt, test("Greater")],
  [kernels.ge, test("GreaterOrEqual")],
  [kernels.eqScalar, testOfNumber("Equal")],
  [kernels.neScalar, { write: not(withNumber("Equal")), kind: "tests" }],
  [kernels.ltScalar, testOfNumber("Less")],
  [kernels.leScalar, testOfNumber("LessOrEqual")],
  [kernels.gtScalar, testOfNumber("Greater")],
  [kernels.geScalar, testOfNumber("GreaterOrEqual")],
  [kernels.isNan, test("IsNaN")],
  [kernels.isInf, test("IsInf")],
  [kernels.logicalAnd, { write: same("And"), kind: "masks" }],
  [kernels.logicalOr, { write: same("Or"), kind: "masks" }],
  [kernels.logicalXor, { write: same("Xor"), kind: "masks" }],
  [kernels.logicalNot, { write: same("Not"), kind: "masks" }],
  [kernels.where, { write: same("Where"), mask: 0 }],
  [
    kernels.keepWhere,
    {
      write: (pen, [x, mask]) => pen.node("Where", [mask, x, pen.number(0)] as Reference[]),
      mask: 1,
    },
  ],
  [
    kernels.maskedFill,
    {
      write: (pen, [x, mask], [c = 0]) =>
        pen.node("Where", [mask, pen.number(c), x] as Reference[]),
      mask: 1,
    },
  ],
]);

/** What is computed of integers, too. */
const ofIntegers: ReadonlySet<kernels.Expression> = new Set([
  ...[kernels.add, kernels.sub, kernels.mul, kernels.neg, kernels.square],
  ...[kernels.addScalar, kernels.scale],
]);

/** An int64 modulo 2^32, as 32 bits hold it. */
function in32Bits(emission: Emission, x: Reference): Reference {
  const of = (operator: string, y: Reference, c: number): Reference =>
    emission.node(operator, [y, emission.number(dataType.INT64, c)]);
  if (emission.dtypeOf() === "uint32") return of("Mod", x, 2 ** 32);
  return of("Sub", of("Mod", of("Add", x, 2 ** 31), 2 ** 32), 2 ** 31);
}

/** Writes an op that computes each element of its result by an expression. */
export function emitPointwise(
  emission: Emission,
  expression: kernels.Expression,
  scalars: readonly number[],
): void {
  const entry = formulas.get(expression);
  if (!entry) throw emission.unsupported("there is no operator for it");
  const inputs = Array.from({ length: emission.inputCount }, (_, place) => emission.input(place));
  if (expression === kernels.where && isOneValue(inputs[1] as Value, inputs[2] as Value)) {
    emission.alias(inputs[1] as Value);
    return;
  }
  const isMask = entry.kind !== undefined;
  const given = (inputs.find((_, place) => place !== entry.mask) as Value).type;
  const type =
    entry.kind === "masks" ? dataType.BOOL : given === dataType.BOOL ? dataType.INT64 : given;
  const isWhole = !isMask && type === dataType.INT64;
  const wraps = isWhole && ofIntegers.has(expression);
  if (isWhole && !wraps && expression !== kernels.where)
    throw emission.unsupported("of integers only sums, differences and products are written");
  const order = orderFor(inputs, emission.shapeOf().length);
  const references = inputs.map((value, place) =>
    operandOf(emission, value, place === entry.mask ? dataType.BOOL : type, order),
  );
  const pen: Pen = {
    opset: emission.builder.opset,
    node: (operator, x, attributes) => emission.node(operator, x, attributes),
    number: (value) => emission.number(type, value),
  };
  const result = entry.write(pen, references, scalars);
  emission.result(wraps ? in32Bits(emission, result) : result, {
    type: isMask ? dataType.BOOL : type,
    order,
  });
}

/** Whether two values are the same numbers, in the same order. */
const isOneValue = (a: Value, b: Value): boolean =>
  a.source === b.source && a.type === b.type && a.view.join() === b.view.join();

/** The order in which an operand of full rank already is, so that it needs no node; weights come last. */
function orderFor(inputs: readonly Value[], rank: number): readonly number[] {
  const whole = inputs.filter(({ shape }) => shape.length === rank);
  const computed = whole.find(({ source }) => source instanceof ComputedSource);
  const [first = computed] = whole;
  const leading = computed ?? first;
  return leading ? orderOf(leading) : plain(rank);
}

/** An operand whose dimensions are in the order of the result; fewer dimensions are the last ones. */
function operandOf(
  emission: Emission,
  value: Value,
  type: DataType,
  order: readonly number[],
): Reference {
  const own = value.shape.length;
  const missing = order.length - own;
  if (missing === 0) return take(value, type, order);
  const isPlain = order.every((d, place) => d === place);
  if (isPlain || own === 0) return take(value, type, plain(own));
  const kept = order.filter((d) => d >= missing).map((d) => d - missing);
  const axes = order.flatMap((d, place) => (d < missing ? [place] : []));
  return emission.node("Unsqueeze", [take(value, type, kept), emission.integers(axes)]);
}
