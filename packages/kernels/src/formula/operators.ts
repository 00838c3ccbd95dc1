/** WGSL of a part of a formula. */
export interface Written {
  readonly text: string;
  /** The precedence of its outermost operator: comparisons and `&` 0, sums 1, products 2, signs 3, names, literals and calls 4. */
  readonly binding: 0 | 1 | 2 | 3 | 4;
}

/** Number of elements that the CPU computes at once: longer arrays exceed the cache, shorter ones need more calls. */
export const stripLength = 256;

/** The elements of one value that are computed at once. Conditions are 1 and 0. */
export type Strip = Float64Array;

/** A function of up to three values, in WGSL and in JavaScript. */
export interface Operator {
  /**
   * Its WGSL. Values that are one number for the whole launch are `f32` or `bool`; all others are vectors of four.
   *
   * @param isQuad whether the result is a vector of four.
   * @param name the name of its {@link functions}.
   */
  wgsl(operands: readonly Written[], isQuad: boolean, name: string): Written;
  /** WGSL functions that it calls: `name`, and others whose names begin with it. */
  functions?(name: string): string;
  /** The suffix of the names of those functions. */
  readonly name?: string;
  /** Indices of operands that are vectors of four where the result is one. */
  readonly alike?: readonly number[];
  /** Whether the result is a vector of four even if the operands are single numbers. */
  readonly isQuad?: boolean;
  /** Whether it only adds, multiplies or negates. */
  readonly isArithmetic?: boolean;
  /** Computes the first `count` elements of `out`, which may be one of the operands. */
  run(out: Strip, count: number, a: Strip, b: Strip, c: Strip): void;
}

const tight = ({ text, binding }: Written, least: number): string =>
  binding < least ? `(${text})` : text;

/** WGSL of operands between commas. */
export const listed = (operands: readonly Written[]): string =>
  operands.map(({ text }) => text).join(", ");

/** Text that never needs parentheses. */
export const whole = (text: string): Written => ({ text, binding: 4 });

/** Text in parentheses, unless it is a name, a literal or a call. */
export const atom = (written: Written): string => tight(written, 4);

const infix =
  (symbol: string, binding: 1 | 2): Operator["wgsl"] =>
  ([a, b]) => ({
    // Operators group from the left, so the right operand needs a higher precedence.
    text: `${tight(a as Written, binding)} ${symbol} ${tight(b as Written, binding + 1)}`,
    binding,
  });

const prefix =
  (symbol: string): Operator["wgsl"] =>
  ([x]) => ({ text: `${symbol}${atom(x as Written)}`, binding: 3 });

/** An operator whose operands WGSL requires in parentheses. */
const apart =
  (symbol: string): Operator["wgsl"] =>
  (operands) => ({ text: operands.map(atom).join(` ${symbol} `), binding: 0 });

const call =
  (name: string): Operator["wgsl"] =>
  (operands) =>
    whole(`${name}(${listed(operands)})`);

// Each operator has a loop of its own: a shared loop with a callback would be compiled once for all and call for each element.

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
      // Ties go to the even number, as in WGSL.
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
 * A test of a number's bits without the sign. WGSL compilers may assume that NaN and infinities do not occur, and turn a
 * comparison with a selection into a `max` that drops NaN.
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

/** Takes a condition, the value where it holds, and the value elsewhere; WGSL's `select` has the reverse order. */
export const select: Operator = {
  wgsl: ([condition, a, b]) => whole(`select(${b?.text}, ${a?.text}, ${condition?.text})`),
  alike: [1, 2],
  run(out, count, condition, a, b) {
    for (let i = 0; i < count; i++) out[i] = (condition[i] === 0 ? b[i] : a[i]) as number;
  },
};
