import type { Binding, KernelBinding, KernelView } from "@halfstep/device";
import {
  bfloat16,
  type FloatFormat,
  float16,
  joinRemainder,
  remainderCode,
} from "@halfstep/formats";
import { join4Float32, split4Float32 } from "@halfstep/formats/wgsl";
import { bitsOf, floatOf, stochasticBfloat16 } from "./bits.js";
import type { Draws } from "./draws.js";

/**
 * The storage of the float32 number that a rule calls `p`:
 *
 * - `"inPlace"`: as the values themselves, rounded to nearest where they have 16 bits;
 * - `"copied"`: as float32 values with a rounded `copy` for readers of 16 bits;
 * - `"master"`: as a float32 `master`, from which the values are rounded;
 * - `"remainder"`: as bfloat16 values and the remaining 16 bits, which is exact;
 * - `"kahanFloat16"`, `"kahanBfloat16"`: as 16-bit values and a 16-bit `compensation`, the accumulated rounding error of the
 *   values;
 * - `"stochastic"`: as bfloat16 values with stochastic rounding.
 */
export type ParameterKind =
  | "inPlace"
  | "copied"
  | "master"
  | "remainder"
  | "kahanFloat16"
  | "kahanBfloat16"
  | "stochastic";

/** Buffers of a storage besides the values, by the names of its bindings. */
export type StorageBuffers<B> = Readonly<Record<string, Binding<B>>>;

/** The same elements on the CPU. */
interface ParameterView {
  load(index: number): number;
  store(index: number, p: number): void;
}

/** Code that reads and writes quad `q` of a storage of parameters. */
export interface ParameterStorage {
  /** Buffers besides the values. */
  readonly buffers: readonly KernelBinding[];
  /** True where `p` is read from `values`. */
  readonly readsValues: boolean;
  /** True where storing draws random bits. */
  readonly draws: boolean;
  /** WGSL declarations. */
  readonly functions: string;
  /** A `vec4f` expression. */
  readonly load: string;
  /** Statements that store `p`. */
  readonly store: string;
  view(views: Readonly<Record<string, KernelView>>, draws: Draws): ParameterView;
}

const inPlace: ParameterStorage = {
  buffers: [],
  readsValues: true,
  draws: false,
  functions: "",
  load: "load_values(q)",
  store: "store_values(q, p);",
  view({ values }) {
    const own = values as KernelView;
    return {
      load: (i) => own[i] as number,
      store(i, p) {
        own[i] = p;
      },
    };
  },
};

const copied: ParameterStorage = {
  buffers: [{ name: "copy", access: "readwrite", dtypes: ["float16", "bfloat16"] }],
  readsValues: true,
  draws: false,
  functions: "",
  load: "load_values(q)",
  store: "store_values(q, p);\n    store_copy(q, p);",
  view({ values, copy }) {
    const own = values as KernelView;
    const rounded = copy as KernelView;
    return {
      load: (i) => own[i] as number,
      store(i, p) {
        own[i] = p;
        // Rounded again, from the stored value.
        rounded[i] = own[i] as number;
      },
    };
  },
};

const master: ParameterStorage = {
  buffers: [{ name: "master", access: "readwrite", dtypes: ["float32"] }],
  readsValues: false,
  draws: false,
  functions: "",
  load: "load_master(q)",
  store: "store_master(q, p);\n    store_values(q, p);",
  view({ values, master: exact }) {
    const copy = values as KernelView;
    const own = exact as KernelView;
    return {
      load: (i) => own[i] as number,
      store(i, p) {
        own[i] = p;
        // The values are rounded from the stored master, not from the unrounded result.
        copy[i] = own[i] as number;
      },
    };
  },
};

const remainder: ParameterStorage = {
  buffers: [{ name: "remainder", access: "readwrite", unit: 2, dtypes: ["uint32"] }],
  readsValues: true,
  draws: false,
  functions: split4Float32 + join4Float32,
  load: "join4_float32(values_data[q], load_remainder(q))",
  store:
    "let parts = split4_float32(p);\n    values_data[q] = parts.xy;\n    store_remainder(q, parts.zw);",
  view({ values, remainder: halves }) {
    const codes = values as KernelView;
    const own = halves as KernelView;
    return {
      load(i) {
        const code = bitsOf(codes[i] as number) >>> 16;
        return floatOf(joinRemainder(code, ((own[i >> 1] as number) >>> ((i & 1) * 16)) & 0xffff));
      },
      store(i, p) {
        const bits = bitsOf(p);
        codes[i] = floatOf((remainderCode(bits) << 16) >>> 0);
        const shift = (i & 1) * 16;
        const kept = (own[i >> 1] as number) & ~(0xffff << shift);
        own[i >> 1] = (kept | ((bits & 0xffff) << shift)) >>> 0;
      },
    };
  },
};

const kahan = (format: FloatFormat): ParameterStorage => ({
  buffers: [{ name: "compensation", access: "readwrite", dtypes: ["float16", "bfloat16"] }],
  readsValues: true,
  draws: false,
  functions: "",
  load: "load_values(q) + load_compensation(q)",
  // Reads the stored value back: the difference to it is exact.
  store: `store_values(q, p);
    let stored = load_values(q);
    let lost = select(p - stored, vec4f(), (bitcast<vec4u>(stored) & vec4u(0x7f800000u)) == vec4u(0x7f800000u));
    store_compensation(q, lost);`,
  view({ values, compensation }) {
    const own = values as KernelView;
    const lost = compensation as KernelView;
    return {
      load: (i) => Math.fround((own[i] as number) + (lost[i] as number)),
      store(i, p) {
        const exact = Math.fround(p);
        const stored = format.decode(format.encode(exact));
        own[i] = stored;
        lost[i] = Number.isFinite(stored) ? exact - stored : 0;
      },
    };
  },
});

const stochastic: ParameterStorage = {
  buffers: [],
  readsValues: true,
  draws: true,
  functions: "",
  load: "load_values(q)",
  store: "values_data[q] = encode4_bfloat16_stochastic(p, draw(q, step_drawn, 0u));",
  view({ values }, draws) {
    const own = values as KernelView;
    return {
      load: (i) => own[i] as number,
      store(i, p) {
        own[i] = stochasticBfloat16(p, draws.at(i, 0));
      },
    };
  },
};

export const parameterStorages: Readonly<Record<ParameterKind, ParameterStorage>> = {
  inPlace,
  copied,
  master,
  remainder,
  kahanFloat16: kahan(float16),
  kahanBfloat16: kahan(bfloat16),
  stochastic,
};
