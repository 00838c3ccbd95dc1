/** WGSL of a part of a formula. */
export interface Written {
  readonly text: string;
  /** How tightly its outermost operator binds: comparisons and `&` 0, sums 1, products 2, signs 3, names, literals and calls 4. */
  readonly binding: 0 | 1 | 2 | 3 | 4;
}

/** As many elements as the CPU computes at once; longer arrays cost cache, shorter ones cost calls. */
export const stripLength = 256;

/** The elements of one value that are computed at once. Conditions are 1 and 0. */
export type Strip = Float64Array;

/** A function of up to three values, in WGSL and in JavaScript. */
export interface Operator {
  /**
   * Its WGSL. What is one number for the whole launch is an `f32` or a `bool`, everything else four of them.
   *
   * @param isQuad whether the result is four.
   * @param name what its {@link functions} are called.
   */
  wgsl(operands: readonly Written[], isQuad: boolean, name: string): Written;
  /** WGSL functions that it calls: `name`, and others whose names begin with it. */
  functions?(name: string): string;
  /** With what the names of those functions end. */
  readonly name?: string;
  /** Places of operands that are four numbers wherever the result is. */
  readonly alike?: readonly number[];
  /** Whether the result is four numbers even of operands that are one. */
  readonly isQuad?: boolean;
  /** Whether it adds, multiplies or negates, and does nothing else. */
  readonly isArithmetic?: boolean;
  /** Computes the first `count` elements of `out`, which may be one of the operands. */
  run(out: Strip, count: number, a: Strip, b: Strip, c: Strip): void;
}

const tight = ({ text, binding }: Written, least: number): string =>
  binding < least ? `(${text})` : text;

/** WGSL of operands between commas. */
export const listed = (operands: readonly Written[]): string =>
  operands.map(({ text }) => text).join(", ");

/** Text that needs no parentheses wherever it stands. */
export const whole = (text: string): Written => ({ text, binding: 4 });

/** Text in parentheses, unless it is a name, a literal or a call. */
export const atom = (written: Written): string => tight(written, 4);

const infix =
  (symbol: string, binding: 1 | 2): Operator["wgsl"] =>
  ([a, b]) => ({
    // What stands on the right binds more tightly: operators group from the left.
    text: `${tight(a as Written, binding)} ${symbol} ${tight(b as Written, binding + 1)}`,
    binding,
  });

const prefix =
  (symbol: string): Operator["wgsl"] =>
  ([x]) => ({ text: `${symbol}${atom(x as Written)}`, binding: 3 });

/** An operator of numbers or conditions of which WGSL wants all in parentheses. */
const apart =
  (symbol: string): Operator["wgsl"] =>
  (operands) => ({ text: operands.map(atom).join(` ${symbol} `), binding: 0 });

const call =
  (name: string): Operator["wgsl"] =>
  (operands) =>
    whole(`${name}(${listed(operands)})`);

// Each has a loop of its own: one that calls what it computes would be compiled once for all of them, and call.

export const add: Operator = {
  wgsl: infix("+", 1),
  isArithmetic: true,
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = (a[i] as number) + (b[i] as number);
  },
};

export const sub: Operator = {
  wgsl: infix("-", 1),
  isArithmetic: true,
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = (a[i] as number) - (b[i] as number);
  },
};

export const mul: Operator = {
  wgsl: infix("*", 2),
  isArithmetic: true,
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = (a[i] as number) * (b[i] as number);
  },
};

export const div: Operator = {
  wgsl: infix("/", 2),
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = (a[i] as number) / (b[i] as number);
  },
};

export const neg: Operator = {
  wgsl: prefix("-"),
  isArithmetic: true,
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = -(x[i] as number);
  },
};

export const abs: Operator = {
  wgsl: call("abs"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = Math.abs(x[i] as number);
  },
};

export const sqrt: Operator = {
  wgsl: call("sqrt"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = Math.sqrt(x[i] as number);
  },
};

export const rsqrt: Operator = {
  wgsl: call("inverseSqrt"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = 1 / Math.sqrt(x[i] as number);
  },
};

export const exp: Operator = {
  wgsl: call("exp"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = Math.exp(x[i] as number);
  },
};

export const floor: Operator = {
  wgsl: call("floor"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = Math.floor(x[i] as number);
  },
};

export const ceil: Operator = {
  wgsl: call("ceil"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = Math.ceil(x[i] as number);
  },
};

export const round: Operator = {
  wgsl: call("round"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) {
      const low = Math.floor(x[i] as number);
      const part = (x[i] as number) - low;
      // Of two that are equally near, the even one, as in WGSL.
      const isLow = part < 0.5 || (part === 0.5 && low % 2 === 0);
      out[i] = isLow ? low : low + 1;
    }
  },
};

export const min: Operator = {
  wgsl: call("min"),
  alike: [0, 1],
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = Math.min(a[i] as number, b[i] as number);
  },
};

export const max: Operator = {
  wgsl: call("max"),
  alike: [0, 1],
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = Math.max(a[i] as number, b[i] as number);
  },
};

export const lt: Operator = {
  wgsl: apart("<"),
  alike: [0, 1],
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = (a[i] as number) < (b[i] as number) ? 1 : 0;
  },
};

export const le: Operator = {
  wgsl: apart("<="),
  alike: [0, 1],
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = (a[i] as number) <= (b[i] as number) ? 1 : 0;
  },
};

export const gt: Operator = {
  wgsl: apart(">"),
  alike: [0, 1],
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = (a[i] as number) > (b[i] as number) ? 1 : 0;
  },
};

export const ge: Operator = {
  wgsl: apart(">="),
  alike: [0, 1],
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = (a[i] as number) >= (b[i] as number) ? 1 : 0;
  },
};

export const eq: Operator = {
  wgsl: apart("=="),
  alike: [0, 1],
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = a[i] === b[i] ? 1 : 0;
  },
};

/**
 * A test of a number's bits without the sign. WGSL's compilers may assume that NaN and the infinities do not occur, and turn a
 * comparison with a selection into a `max` that swallows NaN.
 */
const ofMagnitude =
  (symbol: string): Operator["wgsl"] =>
  ([x], isQuad) => {
    const of = (bits: string): string => (isQuad ? `vec4u(${bits})` : bits);
    const magnitude = `bitcast<${isQuad ? "vec4u" : "u32"}>(${x?.text}) & ${of("0x7fffffffu")}`;
    return { text: `(${magnitude}) ${symbol} ${of("0x7f800000u")}`, binding: 0 };
  };

export const hasNanBits: Operator = {
  wgsl: ofMagnitude(">"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = Number.isNaN(x[i]) ? 1 : 0;
  },
};

export const hasFiniteBits: Operator = {
  wgsl: ofMagnitude("<"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = Number.isFinite(x[i]) ? 1 : 0;
  },
};

export const and: Operator = {
  wgsl: apart("&"),
  alike: [0, 1],
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = (a[i] as number) * (b[i] as number);
  },
};

export const or: Operator = {
  wgsl: apart("|"),
  alike: [0, 1],
  run(out, count, a, b) {
    for (let i = 0; i < count; i++) out[i] = a[i] === 0 ? (b[i] as number) : 1;
  },
};

export const not: Operator = {
  wgsl: prefix("!"),
  run(out, count, x) {
    for (let i = 0; i < count; i++) out[i] = 1 - (x[i] as number);
  },
};

/** Of a condition, what holds where it does, and what holds elsewhere; WGSL has them the other way round. */
export const select: Operator = {
  wgsl: ([condition, a, b]) => whole(`select(${b?.text}, ${a?.text}, ${condition?.text})`),
  alike: [1, 2],
  run(out, count, condition, a, b) {
    for (let i = 0; i < count; i++) out[i] = (condition[i] === 0 ? b[i] : a[i]) as number;
  },
};
